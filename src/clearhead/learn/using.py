"""A student's piece in the place of the project's own: the demo is trained with both, or translates with both."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table
from rich.text import Text
from torch.nn.utils.rnn import pad_sequence

from clearhead.bundled import TRANSLATOR
from clearhead.config import Recipe
from clearhead.decode import beam, search
from clearhead.decode.steps import StopCriteria
from clearhead.files import read_metrics
from clearhead.learn.exercise import Exercise, Patch, Piece
from clearhead.learn.prefixes import START
from clearhead.model import EncoderDecoder
from clearhead.recipes import load_recipe
from clearhead.runs import Run, open_run
from clearhead.terminal.chart import Curve, draw
from clearhead.train.run import train

SHORT_DEMO = (
    "data.size=3000 tokenizer.vocab=1000 train.warmup=10 train.evaluate_every=0 train.samples=0 train.snapshots=0 "
    "train.device=cpu"
)
LOSS_ROWS = 6  # of the table of losses
EXTRA_DEMO_TOKENS = 8  # by which a translation may be longer than the longest source
SENTENCES = (
    "Where is the nearest station?",
    "I am very hungry.",
    "She has lived in Paris for ten years.",
    "There is a cat on the mat.",
    "Could you speak more slowly, please?",
    "The red car is fast.",
)
FEW_SENTENCES = ("I am very hungry.", "The red car is fast.")  # for a search that lists all tokens, in Python
CHART_GAP = 4  # characters between two charts


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


def short_demo(steps: int, cache: Path, *settings: str) -> Recipe:
    """The recipe of the demo, with few steps and little data, and with what an exercise is about."""
    return load_recipe("phrasebook", [*SHORT_DEMO.split(), f"train.steps={steps}", f"data.cache={cache}", *settings])


def train_losses(recipe: Recipe, run: Path) -> list[float]:
    """Train a recipe; return the loss of each step."""
    train(recipe, run, quiet=True)
    return [row["loss"] for row in read_metrics(run) if row["kind"] == "train"]


# --- training ---------------------------------------------------------------------------------------------------------


def use_in_training(exercise: Exercise, piece: Piece, steps: int, console: Console) -> None:
    """Train the demo for a few steps with the project's own code and with the student's; show both curves."""
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder) / "cache"
        settings = exercise.settings
        if exercise.fine_tunes:
            trained = Path(folder) / "trained"
            console.print(f"Training the demo for {steps} steps. Its weights are frozen then ...")
            train(short_demo(steps, cache), trained, quiet=True)
            settings = [*settings, f"train.init={trained}", f"tokenizer.path={trained}"]
        recipe = short_demo(steps, cache, *settings)
        further = " further, on a few sentences," if exercise.fine_tunes else ""
        console.print(f"Training the demo{further} for {steps} steps with the project's own {exercise.name} ...")
        ours = train_losses(recipe, Path(folder) / "ours")
        console.print(f"The same with your {exercise.name} ...\n")
        with swapped(exercise.swap(piece)):
            yours = train_losses(recipe, Path(folder) / "yours")
    width = (min(console.width, 120) - CHART_GAP) // 2
    numbers = range(1, len(ours) + 1)
    charts = Table.grid(padding=(0, CHART_GAP, 0, 0))
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
    for index in sorted({round(number * last / (LOSS_ROWS - 1)) for number in range(LOSS_ROWS)}):
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


def use_in_decoding(exercise: Exercise, piece: Piece, console: Console) -> None:
    """Translate some sentences with the project's own code and with the student's; show both."""
    console.print(f"Translating with {TRANSLATOR}, the translator that comes with clearhead.\n")
    run = open_run(TRANSLATOR)
    width = 1 if exercise.name == "greedy" else 4
    sentences = FEW_SENTENCES if exercise.name == "beam" else SENTENCES
    ours = translate(run, sentences, width)
    with swapped(exercise.swap(piece)):
        yours = translate(run, sentences, width)
    equal = sum(one == other for one, other in zip(ours, yours, strict=True))
    table = Table(box=None, pad_edge=False, header_style="dim")
    headings = ("", "English", f"French, with your {exercise.name}", "with the project's own, where it differs")
    for heading in headings[: 3 if equal == len(ours) else 4]:
        table.add_column(heading)
    for source, one, other in zip(sentences, ours, yours, strict=True):
        mark = Text("✓", style="green") if one == other else Text("✗", style="red")
        table.add_row(mark, source, other, *([] if equal == len(ours) else ["" if one == other else one]))
    console.print(table, f"\n{equal} of {len(ours)} translations are the same as with the project's own.")


@torch.inference_mode()
def translate(run: Run, texts: Sequence[str], width: int) -> list[str]:
    """Translate sentences with the plain model, without the faster decoding paths."""
    model = run.model
    source = run.tokenizers.source
    target = run.tokenizers.target
    assert isinstance(model, EncoderDecoder)
    assert target.start == START
    rows = [torch.tensor([*ids, source.end]) for ids in source.encode_batch(texts)]
    ids = pad_sequence(rows, batch_first=True, padding_value=source.pad)
    prefill = model.start(ids, torch.full((len(rows), 1), target.start), ids != source.pad)
    ending = StopCriteria((target.end,), target.pad, ids.size(1) + EXTRA_DEMO_TOKENS)
    if width == 1:
        found = search.greedy(model, prefill, ending)
    else:
        found = [best for [best] in beam.beam(model, prefill, ending, width)]
    return [target.decode(best.ids) for best in found]
