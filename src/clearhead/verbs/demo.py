"""`clearhead demo`: an English-French translator, trained from scratch in minutes, and what it does."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from clearhead.config import Recipe
from clearhead.data.examples import Pair
from clearhead.recipes import load_recipe
from clearhead.terminal.console import plain_console
from clearhead.terminal.program import program_name
from clearhead.verbs.options import NewRunFolder

if TYPE_CHECKING:
    from torch import Tensor

    from clearhead.decode.translate import Translation
    from clearhead.runs import Run

SENTENCE = "the red car is fast"
ALIGNED_WORDS = (
    ("la", "car"),
    ("rouge", "red"),
)  # French and English words whose attention is shown
SPLITS = {"test": "ordinary ones", "compositional": "words never seen together"}
BEAM_WIDTH = 4
SHOWN = 10  # translations
DIFFERENT = 3  # translations that greedy and beam search disagree on


def demo(*overrides: str, run: NewRunFolder = Path("runs/demo")) -> None:
    """Train an English-French translator from scratch in minutes and show what it does; later without training.

    Parameters
    ----------
    overrides
        Changes to the settings of the recipe `phrasebook`: train.steps=100
    run
        The folder to train into.

    """
    from clearhead.runs import open_run

    console = plain_console(width=min(100, plain_console().width))
    if stopped := train_once(run, load_recipe("phrasebook", overrides), console):
        sys.exit(128 + stopped)
    opened = open_run(run)
    tests = {split: take_test(opened, split) for split in SPLITS}
    show_scores(tests, console)
    show_translations(tests["test"], console)
    show_searches(opened, tests["test"], console)
    show_attention(opened, SENTENCE, console)
    show_commands(run, console)


@dataclass(frozen=True)
class Test:
    """Pairs that the run was not trained on, and its translations."""

    pairs: list[Pair]
    greedy: list[Translation]
    beam: list[Translation]  # the best of BEAM_WIDTH hypotheses


def take_test(run: Run, split: str) -> Test:
    """Translate a split of the run's corpus greedily and by beam search."""
    from clearhead.data.sources import open_corpus
    from clearhead.decode.translate import SearchSettings, translate

    pairs = [pair for pair in open_corpus(run.recipe.data).read(split) if isinstance(pair, Pair)]
    sources = [pair.source for pair in pairs]
    greedy = [best for [best] in translate(run, sources, SearchSettings(1))]
    beam = [best for [best] in translate(run, sources, SearchSettings(BEAM_WIDTH))]
    return Test(pairs, greedy, beam)


def train_once(folder: Path, recipe: Recipe, console: Console) -> int:
    """Train the run of the folder, or continue it, unless it is trained already; return the signal that stopped it."""
    from clearhead.train.run import train

    if finished(folder):
        console.print(f"The translator in {folder} is already trained; --run DIR trains another.\n")
        return 0
    begun = (folder / "run.toml").is_file()
    what = "Continuing to train an" if begun else "Training from scratch an"
    console.print(f"{what} English-French Transformer; three to four minutes on two cores.\n")
    stopped = train(recipe, folder, resume=begun)
    console.print()
    return stopped


def finished(folder: Path) -> bool:
    """Return whether a run has its weights and has taken all its steps; an interrupted run has weights, too."""
    from clearhead.train.checkpoint import checkpoint_folders
    from clearhead.train.watching.snapshots import step_of

    if not (folder / "model.safetensors").is_file():
        return False
    checkpoints = checkpoint_folders(folder)
    return not checkpoints or step_of(checkpoints[-1]) >= load_recipe(str(folder / "run.toml")).train.steps


def show_scores(tests: dict[str, Test], console: Console) -> None:
    """Print how many translations of unseen sentences are exactly right, and their BLEU."""
    from clearhead.evaluate import measures

    console.print("Unseen sentences: how many translations are exactly right", style="italic")
    table = Table(box=None, pad_edge=False)
    for heading in ("", "sentences", "greedy", "BLEU", f"beam of {BEAM_WIDTH}", "BLEU"):
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
    """Print some translations, with the reference where they differ from it."""
    console.print(f"{SHOWN} of them", style="italic")
    table = Table(box=None, pad_edge=False, show_header=False)
    for pair, best in zip(test.pairs[:SHOWN], test.beam, strict=False):
        right = best.text == pair.target
        mark = Text("✓", style="green") if right else Text("✗", style="red")
        table.add_row(mark, pair.source, best.text if right else f"{best.text}\n(reference: {pair.target})")
    console.print(table, "")


def show_searches(run: Run, test: Test, console: Console) -> None:
    """Print where greedy and beam search differ, and all hypotheses of one beam."""
    from clearhead.decode.translate import SearchSettings, translate

    both = list(zip(test.pairs, test.greedy, test.beam, strict=True))
    other = [(pair, greedy, best) for pair, greedy, best in both if greedy.text != best.text]
    console.print(
        f"Greedy against a beam of {BEAM_WIDTH}: {len(other):,} of {len(both):,} translations differ", style="italic"
    )
    for pair, greedy, best in other[:DIFFERENT]:
        console.print(pair.source, soft_wrap=True)
        for name, written in (("greedy", greedy), ("beam", best)):
            right = " ✓" if written.text == pair.target else ""
            found = f"  {name:6}  log p {written.log_probability:7.3f}  {written.text}{right}"
            console.print(found, soft_wrap=True)
    console.print(f"{SENTENCE}: the whole beam")
    for written in translate(run, [SENTENCE], SearchSettings(BEAM_WIDTH, nbest=BEAM_WIDTH))[0]:
        console.print(f"          log p {written.log_probability:7.3f}  {written.text}", soft_wrap=True)
    console.print()


def show_attention(run: Run, text: str, console: Console) -> None:
    """Print the cross-attention weights of the head that aligns the words of ALIGNED_WORDS best."""
    import torch

    from clearhead.inspect.trace import trace
    from clearhead.terminal.drawing import cell

    with trace(run, text) as seen:
        names = [name for name in seen.names() if name.endswith("cross_attention.weights")]
        heads = torch.stack([seen[name][0] for name in names])  # (blocks, H, T, S)
        target = [word.strip() for word in seen.tokens["target"]]
        source = [word.strip() for word in seen.tokens["source"]]
    target = [*target[1:], "<end>"]  # the row of each word that is predicted, not of the word that is read
    block, head = best_aligned(heads, target, source)
    title = f"Attention of each French word to the English words in percent, block {block} head {head}"
    console.print(title, style="italic")
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column()
    for word in source:
        table.add_column(word, justify="right")
    for word, row in zip(target, heads[block, head].tolist(), strict=True):
        table.add_row(word, *(cell(weight, seen=True, size=4) for weight in row))
    console.print(table, "")


def best_aligned(heads: Tensor, target: list[str], source: list[str]) -> tuple[int, int]:
    """Return the block and the head whose weights (blocks, H, T, S) between the words of ALIGNED_WORDS are largest."""
    present = [(row, column) for row, column in ALIGNED_WORDS if row in target and column in source]
    rows = [target.index(row) for row, _ in present]
    columns = [source.index(column) for _, column in present]
    weights = heads.flatten(0, 1)[:, rows, columns].sum(-1)  # (blocks * H,)
    return divmod(int(weights.argmax()), heads.size(1))


def show_commands(folder: Path, console: Console) -> None:
    """Print what to try next."""
    console.print("Try next", style="italic")
    program = program_name()
    for command, why in (
        (f'translate {folder} "there is a cat on the mat"', "your own sentences"),
        (f'walk {folder} "{SENTENCE}"', "every step and number in between"),
        (f"explore {folder}", "the same in the browser"),
    ):
        console.print(Text(f"  {program} {command}", style="bold"), Text(f"# {why}", style="dim"), soft_wrap=True)
