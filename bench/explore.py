"""Response times of the explorer in a real browser: a gpt2-sized model with 128 tokens and with 1,000.

    python bench/explore.py [--model gpt2] [--tokens 128] [--long 1000] [--rounds 3]

Weights are random, which does not change the cost. A click is timed from the change of the address until its view is
drawn, each round on another sentence, so that the page has nothing cached. Targets: first paint within 1 second; any
click within 200 ms with 128 tokens. A click that needs a forward pass, which may take longer, must show progress within
this time.
"""

from __future__ import annotations

import resource
import shutil
import statistics
import tempfile
import threading
import time
from collections import defaultdict
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import torch
from measure import options, seconds
from playwright.sync_api import Page, sync_playwright

from clearhead.config import DataConfig, Recipe, TokenizerConfig
from clearhead.inspect.inputs import encode_inputs
from clearhead.inspect.web.explorer import Explorer
from clearhead.inspect.web.server import Server
from clearhead.model import build_model
from clearhead.presets import PRESETS
from clearhead.recipes import write_recipe
from clearhead.runs import write_weights
from clearhead.text.tokenizer import Tokenizers, train_tokenizer

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
OFF = '{"decoder.blocks.3.attention.head_outputs":[{"kind":"scale","value":0,"at":{"head":[2]}}]}'
CLICKS: dict[str, dict[str, Any]] = {
    "a new sentence": {"view": "overview"},
    "tokenization": {"view": "tokenization"},
    "embedding": {"view": "embedding"},
    "position": {"view": "position"},
    "attention": {"view": "attention"},
    "another head": {"view": "attention", "head": 5},
    "another block": {"view": "attention", "layer": 7},
    "add & norm": {"view": "addnorm"},
    "feed-forward": {"view": "feedforward"},
    "next token": {"view": "next"},
    "all heads": {"view": "heads"},
    "alignment": {"view": "alignment"},
    "residual stream": {"view": "residual"},
    "logit lens": {"view": "lens"},
    "head switched off": {"view": "attention", "changes": OFF},
}
CLICK = """hash => new Promise(done => {
    const stage = document.getElementById("stage"), began = performance.now();
    let answered = 0;
    const seen = new MutationObserver(() => {
        if (stage.hasAttribute("aria-busy"))
            requestAnimationFrame(() => (answered ||= performance.now() - began));
        else {
            seen.disconnect();
            requestAnimationFrame(() => done([answered || performance.now() - began, performance.now() - began]));
        }
    });
    seen.observe(stage, {attributes: true});
    location.hash = hash;
})"""


def write_run(name: str, folder: Path) -> None:
    """Write an untrained run of a preset's size."""
    tokenizer = train_tokenizer(TokenizerConfig(vocab=400), ["the cat and the dog"] * 20, progress=False)
    recipe = Recipe(name=name, model=PRESETS[name], data=DataConfig(task="language", corpus="stories"))
    write_recipe(recipe, folder / "run.toml")
    Tokenizers(tokenizer, tokenizer).save(folder)
    write_weights(dict(build_model(recipe.model).named_parameters()), folder / "model.safetensors")


def click(page: Page, **state: Any) -> tuple[float, float]:
    """Milliseconds until the page shows progress, and until the view of the new address is drawn."""
    answered, drawn = page.evaluate(CLICK, f"#{urlencode(state)}")
    for error in page.locator("#stage .error").all_text_contents():
        raise SystemExit(f"{state}: {error}")
    return answered, drawn


def sentence(tokens: int, number: int) -> str:
    """A text of `tokens` tokens including [start], different for each number."""
    words = ["the", " dog" if number % 2 else " cat"] + [" and" if (number >> i) % 2 else " the" for i in range(1, 8)]
    return "".join(words) + " cat" * (tokens - 1 - len(words))


def forward_time(explorer: Explorer, tokens: int) -> float:
    """Milliseconds of a forward pass of the model alone: the best of three."""
    run = explorer.runs[0]
    inputs = encode_inputs(run, sentence(tokens, 0)).tensors(run.device)
    with explorer.lock, torch.inference_mode():  # the text that a change writes may still be on its way
        return min(1000 * seconds(lambda: run.model(*inputs)) for _ in range(3))


def click_times(page: Page, tokens: int, rounds: int) -> dict[str, float]:
    """The median time of each click."""
    times: defaultdict[str, list[float]] = defaultdict(list)
    for number in range(rounds):
        text = sentence(tokens, number)
        for name, state in CLICKS.items():
            answered, drawn = click(page, text=text, **state)
            times[name].append(drawn)
            times["(first sign)"].append(answered)
            began = time.perf_counter()
            page.wait_for_selector("#stage:not(:has([aria-busy]))", timeout=300_000)
            if name in ("embedding", "logit lens"):
                times[f"{name}, the rest"].append(drawn + 1000 * (time.perf_counter() - began))
    return {name: statistics.median(values) for name, values in times.items()}


def main() -> None:
    arguments = options(__doc__, model="gpt2", tokens=128, long=1000, rounds=3)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        write_run(arguments.model, Path(folder))
        server = Server(Explorer([folder]))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        path = shutil.which("chromium") or playwright.chromium.executable_path
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.goto(f"{server.address}#text=the")
        page.wait_for_selector("#stage h1")
        paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
        print(f"{arguments.model}, milliseconds; first paint {paint:.0f}")
        short = click_times(page, arguments.tokens, arguments.rounds)
        long = click_times(page, arguments.long, 1)
        short["(forward pass alone)"] = forward_time(server.explorer, arguments.tokens)
        long["(forward pass alone)"] = forward_time(server.explorer, arguments.long)
        print(f"{'':20} {arguments.tokens:>8} tokens {arguments.long:>8} tokens")
        for name, value in short.items():
            print(f"{name:20} {value:>8.0f} {long[name]:>15.0f}")
        cached = server.explorer.passes.bytes() / 2**20
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
        print(f"tensors cached at the end: {cached:.0f} MB; peak memory of the server: {peak:.0f} MB")
        browser.close()
        server.shutdown()


if __name__ == "__main__":
    main()
