"""Decoding on this machine: ours against Hugging Face transformers and CTranslate2, all with the same weights.

    python bench/decoding.py [--rounds 5] [--threads 2] [--only translation|generation] [--tokens 32]

Translation: paper-base's shape (transformers' Marian), beam width 4, 32 sources of 24 tokens, 24 new tokens.
Generation: gpt2's shape, greedy search, 32 new tokens after 32, batches of 1 and of 16; and how long it takes to read
its weights once, which is the least that a token of one row can take. Both with weights in float32, float16 and int8.

Each runs in its own process, since in one process their threads slow each other down; they take turns, so that a busy
machine slows all of them alike. A ratio is the median over the rounds, and above 1 if ours is faster. With one thread,
CPU time is measured, which other processes affect less. Before anything is timed, the texts of float32 are compared
token by token.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from decoding_peers import END, START, convert, from_marian, gpt2, marian
from measure import median_ratio, seconds
from torch import Tensor

from clearhead.config import Weights
from clearhead.decode.packed import pack
from clearhead.decode.search import Ending, beam, greedy
from clearhead.presets import PRESETS

Search = Callable[[], list[list[int]]]
Maker = Callable[[], Search]
PRECISIONS: tuple[Weights, ...] = ("float32", "float16", "int8")


class Contender:
    """A search in its own process: each call runs it once."""

    def __init__(self, make: Maker, threads: int) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, far = context.Pipe()
        self.process = context.Process(target=serve, args=(far, make, threads), daemon=True)
        self.process.start()
        far.close()

    def __call__(self) -> tuple[float, list[list[int]]]:
        """Run the search: return its seconds, and the ids of each row."""
        self.pipe.send(True)
        return self.pipe.recv()

    def stop(self) -> None:
        """End the process."""
        self.pipe.close()
        self.process.join()


def serve(pipe: Any, make: Maker, threads: int) -> None:
    """Run in a contender's process: search whenever asked to."""
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    search = make()
    clock = time.process_time if threads == 1 else time.perf_counter
    while True:
        try:
            pipe.recv()
        except EOFError:
            return
        began = clock()
        found = search()
        pipe.send((clock() - began, found))


def translation_source() -> Tensor:
    """32 sentences of 24 tokens."""
    return torch.randint(2, 36_000, (32, 24), generator=torch.Generator().manual_seed(1))


def our_translation(weights: Weights, new: int) -> Search:
    """Our beam search."""
    model = from_marian(marian())
    source = translation_source()
    pack(model, weights)

    def search() -> list[list[int]]:
        with torch.inference_mode():
            prefill = model.start(source, torch.full((len(source), 1), START))
        return [row[0].ids for row in beam(model, prefill, Ending((), START, new), 4, 0.0)]

    return search


def their_translation(new: int) -> Search:
    """The beam search of transformers."""
    peer = marian()
    source = translation_source()
    settings = {"num_beams": 4, "do_sample": False, "max_new_tokens": new, "min_new_tokens": new, "length_penalty": 0.0}
    return lambda: peer.generate(source, **settings)[:, 1:].tolist()


def ctranslate(folder: str, weights: str, new: int, threads: int) -> Search:
    """CTranslate2's beam search."""
    import ctranslate2

    translator = ctranslate2.Translator(folder, compute_type=weights, intra_threads=threads)
    sentences = [[str(i) for i in row] for row in translation_source().tolist()]
    settings: dict[str, Any] = {"beam_size": 4, "length_penalty": 0.0, "min_decoding_length": new}

    def search() -> list[list[int]]:
        results = translator.translate_batch(sentences, max_decoding_length=new, **settings)
        return [[int(word) for word in result.hypotheses[0]] for result in results]

    return search


def prompts(rows: int) -> Tensor:
    """Rows of 32 tokens."""
    return torch.randint(2, 50_000, (rows, 32), generator=torch.Generator().manual_seed(1))


def our_generation(weights: Weights, rows: int, new: int) -> Search:
    """Our greedy search."""
    model, _ = gpt2()
    prompt = prompts(rows)
    pack(model, weights)

    def search() -> list[list[int]]:
        with torch.inference_mode():
            prefill = model.start(prompt)
        return [row.ids for row in greedy(model, prefill, Ending((), END, new))]

    return search


def their_generation(rows: int, new: int) -> Search:
    """The greedy search of transformers."""
    _, peer = gpt2()
    prompt = prompts(rows)
    mask = torch.ones_like(prompt)
    settings = {"do_sample": False, "max_new_tokens": new, "min_new_tokens": new, "attention_mask": mask}
    return lambda: peer.generate(prompt, **settings)[:, prompt.size(1) :].tolist()


@torch.inference_mode()
def reading_time(rounds: int) -> float:
    """Seconds to read as many weights as gpt2 multiplies a token by: the time of their sum."""
    width = 768
    rows = PRESETS["gpt2"].vocab + 12 * 12 * width  # the table, and 12 blocks of 12 x 768 x 768
    weights = torch.ones(rows * width)
    return statistics.median(seconds(weights.sum) for _ in range(rounds + 1))


def agreement(actual: list[list[int]], expected: list[list[int]]) -> float:
    """The fraction of rows that are equal."""
    return statistics.mean(a == b for a, b in zip(actual, expected, strict=True))


def compare(title: str, makers: dict[str, Maker], unit: str, amount: int, rounds: int, threads: int) -> None:
    """Time all contenders in turns; print their throughput, and their times as multiples of ours."""
    contenders = {name: Contender(make, threads) for name, make in makers.items()}
    texts = {name: contender()[1] for name, contender in contenders.items()}  # warms up as well
    same = {name: agreement(text, texts["clearhead float32"]) for name, text in texts.items()}
    for name, share in same.items():
        assert share == 1 or name.endswith(PRECISIONS[1:]), f"{name} differs in {1 - share:.0%} of the rows"
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, contender in contenders.items():
            times[name].append(contender()[0])
    for contender in contenders.values():
        contender.stop()
    print(f"\n{title}, {threads} threads, torch {torch.__version__}")
    ours = [name for name in contenders if name.startswith("clearhead")]
    for name, spent in times.items():
        ratios = [median_ratio(spent, times[own]) for own in ours]
        compared = "   ".join(f"time / {own} {ratio:5.2f}" for own, ratio in zip(ours, ratios, strict=True))
        print(f"  {name:22} {amount / statistics.median(spent):7.1f} {unit}/s   {compared}   same {same[name]:4.0%}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--tokens", type=int, default=32, help="new tokens of each generated text")
    parser.add_argument("--only", choices=["translation", "generation"])
    arguments = parser.parse_args()
    rounds = arguments.rounds
    threads = arguments.threads
    if arguments.only != "generation":
        with tempfile.TemporaryDirectory() as folder:
            convert(folder)
            makers: dict[str, Maker] = {
                **{f"clearhead {weights}": partial(our_translation, weights, 24) for weights in PRECISIONS},
                "transformers Marian": partial(their_translation, 24),
                **{
                    f"CTranslate2 {weights}": partial(ctranslate, folder, weights, 24, threads)
                    for weights in PRECISIONS[::2]
                },
            }
            title = "paper-base, beam 4, 32 sentences of 24 tokens, 24 new tokens"
            compare(title, makers, "sentences", 32, rounds, threads)
    if arguments.only != "translation":
        new = arguments.tokens
        for rows in (1, 16):
            makers = {
                **{f"clearhead {weights}": partial(our_generation, weights, rows, new) for weights in PRECISIONS},
                "transformers GPT2": partial(their_generation, rows, new),
            }
            compare(f"gpt2, greedy, {rows} x {new} new tokens", makers, "tokens", new * rows, rounds, threads)
        torch.set_num_threads(threads)
        least = reading_time(rounds)
        print(f"\nreading its float32 weights once: {1000 * least:.1f} ms, so one row at most {1 / least:.1f} tokens/s")


if __name__ == "__main__":
    main()
