"""`clearhead demo`: an English-French translator, trained from nothing in minutes, and then shown at work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table
from rich.text import Text
from torch import Tensor

from clearhead.config import Recipe
from clearhead.data.examples import Pair
from clearhead.data.sources import open_corpus
from clearhead.decode.translate import Searching, Written, translate
from clearhead.evaluate import measures
from clearhead.glass.trace import trace
from clearhead.recipes import load_recipe
from clearhead.runs import Run, open_run
from clearhead.terminal.drawing import cell
from clearhead.train.checkpoint import checkpoint_folders
from clearhead.train.run import train
from clearhead.train.watching.snapshots import step_of

SENTENCE = "the red car is fast"
LOOKS = (("la", "car"), ("rouge", "red"))  # what there is to see: an article that knows the noun behind it
SPLITS = {"test": "ordinary ones", "compositional": "words never seen together"}
WIDTH = 4  # of the beam
SHOWN = 10  # translations
DIFFERENT = 3  # translations that greedy and beam search disagree on


def demo(folder: Path, overrides: Sequence[str] = ()) -> None:
    """Train a translator, unless the folder has one already, and show what it can do."""
    console = Console(width=min(100, Console().width))
    if not trained(folder, load_recipe("phrasebook", overrides), console):
        console.print("Stopped, and kept: the same command goes on with it.")
        return
    run = open_run(folder)
    tests = {split: Test.taken(run, split) for split in SPLITS}
    show_scores(tests, console)
    show_translations(tests["test"], console)
    show_searches(run, tests["test"], console)
    show_attention(run, SENTENCE, console)
    show_commands(folder, console)


@dataclass(frozen=True)
class Test:
    """Pairs that the run has never seen, and its translations."""

    pairs: list[Pair]
    greedy: list[Written]
    beam: list[Written]  # the best of WIDTH hypotheses

    @staticmethod
    def taken(run: Run, split: str) -> Test:
        """Let a run translate a split of its corpus, both ways."""
        pairs = [pair for pair in open_corpus(run.recipe.data).read(split) if isinstance(pair, Pair)]
        sources = [pair.source for pair in pairs]
        greedy, beam = ([best for [best] in translate(run, sources, Searching(width))] for width in (1, WIDTH))
        return Test(pairs, greedy, beam)


def trained(folder: Path, recipe: Recipe, console: Console) -> bool:
    """Train the run of the folder, from the start or from where it stopped, if it is not trained already; now it is.

    Unless somebody stops it on the way.
    """
    if finished(folder):
        console.print(f"The translator in {folder} is trained already; remove the folder to train it again.\n")
        return True
    console.print("A Transformer that knows nothing yet learns English to French; this takes two or three minutes.\n")
    train(recipe, folder, resume=bool(checkpoint_folders(folder)))
    console.print()
    return finished(folder)


def finished(folder: Path) -> bool:
    """Whether a run has its weights and has taken all its steps: one that was interrupted leaves weights, too."""
    if not (folder / "model.safetensors").is_file():
        return False
    checkpoints = checkpoint_folders(folder)
    return not checkpoints or step_of(checkpoints[-1]) >= load_recipe(str(folder / "run.toml")).train.steps


def show_scores(tests: dict[str, Test], console: Console) -> None:
    """How many translations of unseen sentences are right."""
    console.print("Sentences it has never seen: how many translations are exactly right", style="italic")
    table = Table(box=None, pad_edge=False)
    for heading in ("", "sentences", "greedy", "BLEU", f"beam of {WIDTH}", "BLEU"):
        table.add_column(heading, justify="right" if heading else "left")
    for split, test in tests.items():
        references = [pair.target for pair in test.pairs]
        scores = []
        for found in (test.greedy, test.beam):
            texts = [written.text for written in found]
            scores.append(f"{measures.exact_match(texts, references):.1%}")
            scores.append(f"{measures.bleu(texts, references).value:.1f}")
        table.add_row(SPLITS[split], f"{len(references):,}", *scores)
    console.print(table, "")


def show_translations(test: Test, console: Console) -> None:
    """Some translations; what differs from the reference has it beside."""
    console.print(f"{SHOWN} of them", style="italic")
    table = Table(box=None, pad_edge=False, show_header=False)
    for pair, best in zip(test.pairs[:SHOWN], test.beam, strict=False):
        right = best.text == pair.target
        mark = Text("✓", style="green") if right else Text("✗", style="red")
        table.add_row(mark, pair.source, best.text if right else f"{best.text}\n(the book has: {pair.target})")
    console.print(table, "")


def show_searches(run: Run, test: Test, console: Console) -> None:
    """What a beam finds that always taking the likeliest word does not; and what it has beside its best."""
    both = list(zip(test.pairs, test.greedy, test.beam, strict=True))
    other = [(pair, greedy, best) for pair, greedy, best in both if greedy.text != best.text]
    console.print(f"Greedy against a beam of {WIDTH}: {len(other)} of {len(both)} translations differ", style="italic")
    for pair, greedy, best in other[:DIFFERENT]:
        console.print(Text(pair.source))
        for name, written in (("greedy", greedy), ("beam", best)):
            right = " ✓" if written.text == pair.target else ""
            console.print(Text(f"  {name:6}  log p {written.log_probability:7.3f}  {written.text}{right}"))
    console.print(Text(f"{SENTENCE}: all of the beam"))
    for written in translate(run, [SENTENCE], Searching(WIDTH, nbest=WIDTH))[0]:
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
