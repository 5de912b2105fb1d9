"""`clearhead demo`: an English-French translator, trained from nothing in minutes, and then shown at work."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table
from rich.text import Text
from torch import Tensor

from clearhead.decode.translate import Searching, translate
from clearhead.evaluate.scores import evaluate
from clearhead.glass.drawing import cell
from clearhead.glass.trace import trace
from clearhead.recipes import load_recipe
from clearhead.runs import Run, open_run
from clearhead.text.corpora.sources import open_corpus
from clearhead.text.examples import Pair
from clearhead.train.checkpoint import checkpoint_folders
from clearhead.train.run import train

SENTENCE = "the red car is fast"
LOOKS = (("la", "car"), ("rouge", "red"))  # what there is to see: an article that knows the noun behind it
SHOWN = 10  # translations
DIFFERENT = 3  # translations that greedy and beam search disagree on


def demo(folder: Path, overrides: Sequence[str] = ()) -> None:
    """Train a translator, unless the folder has one already, and show what it can do."""
    console = Console(width=min(100, Console().width))
    run = trained(folder, overrides, console)
    pairs = [pair for pair in open_corpus(run.recipe.data).read("test") if isinstance(pair, Pair)]
    show_scores(run, console)
    show_translations(run, pairs[:SHOWN], console)
    show_searches(run, pairs, console)
    show_attention(run, SENTENCE, console)
    show_commands(folder, console)


def trained(folder: Path, overrides: Sequence[str], console: Console) -> Run:
    """The run of the folder: as it is, finished, or trained from the start."""
    if (folder / "model.safetensors").is_file():
        console.print(f"The translator in {folder} is trained already; remove the folder to train it again.\n")
        return open_run(folder)
    console.print("A Transformer that knows nothing yet learns English to French; this takes two or three minutes.\n")
    train(load_recipe("phrasebook", overrides), folder, resume=bool(checkpoint_folders(folder)))
    console.print()
    return open_run(folder)


def show_scores(run: Run, console: Console) -> None:
    """How many translations of unseen sentences are right."""
    console.print("Sentences it has never seen, translated greedily", style="italic")
    table = Table(box=None, pad_edge=False)
    for heading in ("", "sentences", "exactly right", "BLEU"):
        table.add_column(heading, justify="right" if heading else "left")
    about = {"test": "test", "compositional": "compositional: words never seen together"}
    for split, name in about.items():
        scores = evaluate(run, split, beam=1)
        table.add_row(name, f"{scores.examples:,}", f"{scores['exact']:.1f} %", f"{scores['bleu']:.1f}")
    console.print(table, "")


def show_translations(run: Run, pairs: Sequence[Pair], console: Console) -> None:
    """Some translations; what differs from the reference has it beside."""
    console.print(f"{len(pairs)} of them", style="italic")
    table = Table(box=None, pad_edge=False, show_header=False)
    for pair, [best] in zip(pairs, translate(run, [pair.source for pair in pairs]), strict=True):
        right = best.text == pair.target
        mark = Text("✓", style="green") if right else Text("✗", style="red")
        table.add_row(mark, pair.source, best.text if right else f"{best.text}\n(the book has: {pair.target})")
    console.print(table, "")


def show_searches(run: Run, pairs: Sequence[Pair], console: Console) -> None:
    """What a beam finds that always taking the likeliest word does not; and what it has beside its best."""
    sources = [pair.source for pair in pairs]
    greedy, wide = (translate(run, sources, Searching(beam=width)) for width in (1, 4))
    other = [row for row, ([one], [best]) in enumerate(zip(greedy, wide, strict=True)) if one.text != best.text]
    console.print(f"Greedy against a beam of 4: {len(other)} of {len(sources)} translations differ", style="italic")
    for row in other[:DIFFERENT]:
        console.print(Text(sources[row]))
        for name, [written] in (("greedy", greedy[row]), ("beam", wide[row])):
            right = " ✓" if written.text == pairs[row].target else ""
            console.print(Text(f"  {name:6}  log p {written.log_probability:7.3f}  {written.text}{right}"))
    console.print(Text(f"{SENTENCE}: all four of the beam"))
    for written in translate(run, [SENTENCE], Searching(beam=4, nbest=4))[0]:
        console.print(Text(f"          log p {written.log_probability:7.3f}  {written.text}"))
    console.print()


def show_attention(run: Run, text: str, console: Console) -> None:
    """Where each French word looks while it is written, in the head that shows LOOKS best."""
    with trace(run, text) as seen:
        names = [name for name in seen.names() if name.endswith("cross_attention.weights")]
        heads = torch.stack([seen[name][0] for name in names])  # (blocks, H, T, S)
        written, source = ([word.strip() for word in seen.tokens[side]] for side in ("target", "source"))
    written = [*written[1:], "<end>"]
    block, head = clearest(heads, written, source)
    title = f"Where it looks while it writes each row, in percent: head {head} of block {block}"
    console.print(title, style="italic")
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column()
    for word in source:
        table.add_column(word, justify="right")
    for word, row in zip(written, heads[block, head].tolist(), strict=True):
        table.add_row(word, *(cell(weight, seen=True, size=4) for weight in row))
    console.print(table, "")


def clearest(heads: Tensor, written: list[str], source: list[str]) -> tuple[int, int]:
    """The block and the head whose weights (blocks, H, T, S) are largest where LOOKS expects them."""
    places = [
        (written.index(row), source.index(column)) for row, column in LOOKS if row in written and column in source
    ]
    found = heads.flatten(0, 1)[:, [row for row, _ in places], [column for _, column in places]].sum(-1)
    return divmod(int(found.argmax()), heads.size(1))


def show_commands(folder: Path, console: Console) -> None:
    """What to try next."""
    console.print("Try next", style="italic")
    for command, why in (
        (f'clearhead translate {folder} "there is a cat on the mat"', "your own sentences"),
        (f'clearhead walk {folder} "{SENTENCE}"', "every step and number on the way"),
        (f"clearhead explore {folder}", "the same in the browser"),
    ):
        console.print(Text(f"  .venv/bin/{command}", style="bold"), Text(f"# {why}", style="dim"), soft_wrap=True)
