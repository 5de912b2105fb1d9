"""A student's piece in the place of the project's own: the demo is trained with both, or translates with both."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from clearhead.config import Recipe
from clearhead.data.examples import Pair
from clearhead.data.sources import open_corpus
from clearhead.decode.translate import Searching, translate
from clearhead.files import read_metrics
from clearhead.learn.exercise import Exercise, Patch, Piece
from clearhead.recipes import load_recipe
from clearhead.runs import Run, open_run
from clearhead.terminal.chart import Curve, draw
from clearhead.train.run import train

DEMO = Path("runs/demo")  # is used for decoding, if `clearhead demo` has trained it
SHORT = (
    "data.size=3000 tokenizer.vocab=1000 train.warmup=10 train.evaluate_every=0 train.samples=0 train.snapshots=0 "
    "train.device=cpu"
)
TRAINING_STEPS = 60  # of each of the two trainings that are compared
DECODING_STEPS = 300  # of a run that translates, so that its French has some words in it
ROWS = 6  # of the table of losses
SENTENCES = 8  # that are translated
GAP = 4  # characters between two charts


@contextmanager
def swapped(patches: Sequence[Patch]) -> Iterator[None]:
    """Put a student's piece into the project for a while."""
    before = [vars(patch.owner)[patch.name] for patch in patches]
    try:
        for patch in patches:
            setattr(patch.owner, patch.name, patch.replacement)
        yield
    finally:
        for patch, original in zip(patches, before, strict=True):
            setattr(patch.owner, patch.name, original)


def short_demo(exercise: Exercise, steps: int, cache: Path) -> Recipe:
    """The recipe of the demo, with few steps and little data, and with what the exercise is about."""
    settings = [*SHORT.split(), f"train.steps={steps}", f"data.cache={cache}", *exercise.settings.split()]
    return load_recipe("phrasebook", settings)


def train_losses(recipe: Recipe, run: Path) -> list[float]:
    """Train a recipe; return the loss of each step."""
    train(recipe, run, quiet=True)
    return [row["loss"] for row in read_metrics(run) if row["kind"] == "train"]


# --- training ---------------------------------------------------------------------------------------------------------


def use_in_training(exercise: Exercise, piece: Piece, steps: int, console: Console) -> None:
    """Train the demo for a few steps with the project's own code and with the student's; show both curves."""
    with tempfile.TemporaryDirectory() as folder:
        recipe = short_demo(exercise, steps, Path(folder) / "cache")
        console.print(f"Training the demo for {steps} steps with the project's own {exercise.name} ...")
        ours = train_losses(recipe, Path(folder) / "ours")
        console.print(f"The same with your {exercise.name} ...\n")
        with swapped(exercise.swap(piece)):
            yours = train_losses(recipe, Path(folder) / "yours")
    width = (min(console.width, 120) - GAP) // 2
    numbers = range(1, len(ours) + 1)
    charts = Table.grid(padding=(0, GAP, 0, 0))
    charts.add_row(
        draw([Curve("loss, the project's own", numbers, ours)], "step", width, 8),
        draw([Curve("loss, yours", numbers, yours)], "step", width, 8),
    )
    console.print(charts, "", loss_table(ours, yours))
    largest = max(abs(one - other) for one, other in zip(ours, yours, strict=True))
    console.print(f"\nThe largest difference in {len(ours)} steps is {largest:.2g}{meaning(largest)}")


def loss_table(ours: list[float], yours: list[float]) -> Table:
    """The losses of some steps side by side."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in ("step", "the project's own", "yours"):
        table.add_column(heading, justify="right")
    last = len(ours) - 1
    for index in sorted({round(number * last / (ROWS - 1)) for number in range(ROWS)}):
        table.add_row(f"{index + 1:,}", f"{ours[index]:.4f}", f"{yours[index]:.4f}")
    return table


def meaning(difference: float) -> str:
    """What the largest difference of two losses says."""
    if difference == 0:
        return ": your code computes exactly the same."
    small = difference < 0.02
    return (
        ": the same model, up to rounding." if small else ": rounding alone would give less. Is something random in it?"
    )


# --- decoding ---------------------------------------------------------------------------------------------------------


def use_in_decoding(exercise: Exercise, piece: Piece, steps: int, console: Console) -> None:
    """Translate some sentences with the project's own code and with the student's; show both."""
    with tempfile.TemporaryDirectory() as folder:
        run = trained_run(exercise, steps, Path(folder), console)
        corpus = open_corpus(run.recipe.data)
        sources = [pair.source for pair in islice(corpus.read("test"), SENTENCES) if isinstance(pair, Pair)]
        how = Searching(beam=1 if exercise.name == "greedy" else 4)
        ours = [best.text for [best] in translate(run, sources, how)]
        with swapped(exercise.swap(piece)):
            yours = [best.text for [best] in translate(run, sources, how)]
    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in ("", "English", f"French, with your {exercise.name}", "with the project's own, where it differs"):
        table.add_column(heading)
    for source, one, other in zip(sources, ours, yours, strict=True):
        mark = Text("✓", style="green") if one == other else Text("✗", style="red")
        table.add_row(mark, source, other, "" if one == other else one)
    equal = sum(one == other for one, other in zip(ours, yours, strict=True))
    console.print(table, f"\n{equal} of {len(sources)} translations are the same as with the project's own.")


def trained_run(exercise: Exercise, steps: int, folder: Path, console: Console) -> Run:
    """The run of the demo; if there is none, one that is trained for a few steps."""
    if (DEMO / "model.safetensors").is_file():
        console.print(f"Translating with {DEMO}.\n")
        return open_run(DEMO)
    console.print(
        f"Training the demo for {steps} steps: its French will be poor. "
        f"After `clearhead demo`, {DEMO} is used instead.\n"
    )
    train(short_demo(exercise, steps, folder / "cache"), folder / "run", quiet=True)
    return open_run(folder / "run")
