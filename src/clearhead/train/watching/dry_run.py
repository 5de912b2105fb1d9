"""`clearhead train RECIPE --dry-run`: do what a run does up to its first steps, show it, write no run."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator

from rich.console import Console
from rich.table import Table
from rich.text import Text
from torch import Tensor

from clearhead.config import Recipe
from clearhead.data.batches import IGNORE, Batch
from clearhead.data.loader import Batches, open_batches
from clearhead.data.sources import open_corpus
from clearhead.data.subwords import COPIES
from clearhead.device import busy_cores_warning
from clearhead.tasks import TASKS
from clearhead.terminal.colour import visible
from clearhead.terminal.console import plain_console
from clearhead.terminal.progress import track
from clearhead.text.tokenizer import Tokenizer, Tokenizers
from clearhead.train.cost import BatchShape, memory_lines, readable, readable_time, total
from clearhead.train.loop import finish_steps, train_step
from clearhead.train.prepare import (
    batches_from_step,
    complete_recipe,
    open_train_batches,
    open_valid_batches,
    prepare_tokenizers,
)
from clearhead.train.run import check_initial_tokenizers, initial_state
from clearhead.train.schedule import learning_rate
from clearhead.train.state import TrainState
from clearhead.train.trained import count_parameters
from clearhead.train.watching.dashboards import require_packages
from clearhead.train.watching.log import Log
from clearhead.train.watching.speed import peak_memory

SHOWN_ROWS = 3  # of the first batch
SHOWN_TOKENS = 40  # of each row
TRIED_STEPS = 3  # optimiser steps
LONG_STEP = 10.0  # seconds; after such a step on a CPU, which prepares little for later ones, no other is tried
EVALUATION_COST = 1 / 3  # the time of evaluating a batch over that of training on it: no backward pass

Row = tuple[str, str | Text]  # of a table


def dry_run(recipe: Recipe) -> None:
    """Open the data, show a batch, build the model, take a few steps, and estimate the time of the whole run."""
    require_packages(recipe.train)
    console = plain_console()
    tokenizers = prepare_tokenizers(recipe)
    batches = open_train_batches(recipe, tokenizers, 0, 1)
    recipe = complete_recipe(recipe, tokenizers, batches[0].labels)
    if recipe.train.init:
        check_initial_tokenizers(recipe, tokenizers)
    valid = open_valid_batches(recipe, tokenizers)
    splits = {"valid": valid} if valid else {}
    if "test" in open_corpus(recipe.data).splits:
        splits["test"] = open_batches(recipe.data, tokenizers, "test", recipe.train.seed)
    steps_per_epoch = max(1, min(each.steps(0) for each in batches))
    show_data(console, recipe, {"train": batches[0], **splits}, steps_per_epoch)
    sides = (tokenizers.target,) if tokenizers.shared else (tokenizers.source, tokenizers.target)
    section(console, "tokens", " and ".join(f"{side.vocab:,}" for side in sides) + " different ones")
    state = initial_state(recipe)
    first = [next(batches_from_step(each, 0)) for each in batches]
    show_batch(console, first[0], tokenizers, batches[0].labels)
    show_model(console, recipe, first[0], state)
    seconds = take_steps(console, recipe, state, first)
    if state.machine.device.type == "cpu" and (busy := busy_cores_warning()):
        console.print(f"  {busy}", style="yellow", soft_wrap=True)
    show_time(console, recipe, seconds, valid.steps(0) / len(batches) if valid else 0.0)


def section(console: Console, title: str, text: str, rows: Iterable[Row] = ()) -> None:
    """Print the first line of a section, and a table without borders."""
    console.print(Text.assemble((f"\n{title}", "bold"), f": {text}"), soft_wrap=True)
    if rows:
        console.print(borderless(rows))


def borderless(rows: Iterable[Row]) -> Table:
    """A table without borders."""
    table = Table(box=None, show_header=False, padding=(0, 1, 0, 2))
    table.add_column(style="cyan", no_wrap=True)
    table.add_column()
    for row in rows:
        table.add_row(*row)
    return table


def show_data(console: Console, recipe: Recipe, splits: dict[str, Batches], steps_per_epoch: int) -> None:
    """Show the size of each split, and what was left out of it."""
    data = recipe.data
    unit = "blocks" if data.pack and "pack" in TASKS[data.task].settings else "examples"
    rows: list[Row] = []
    for name, batches in splits.items():
        examples = sum(len(bucket.members) for bucket in batches.dataset.buckets(0))
        count = batches.steps(0) * batches.world
        rows.append((name, f"{examples:,} {unit} in {count:,} {'batch' if count == 1 else 'batches'}"))
    epochs = f", {recipe.train.steps / steps_per_epoch:.1f} epochs in {recipe.train.steps:,} steps"
    rows[0] = ("train", f"{rows[0][1]}{epochs}")
    if data.bpe_dropout:
        copies = f"each pair {COPIES} times, in different tokens (data.bpe_dropout = {data.bpe_dropout})"
        rows.insert(1, ("", copies))
    section(console, "data", f"{data.corpus or data.path}, {data.task}", rows)
    for name, batches in splits.items():
        for line in batches.report.lines():
            console.print(f"  {name}: {line}", style="yellow")


# --- a batch as text --------------------------------------------------------------------------------------------------


def show_batch(console: Console, batch: Batch, tokenizers: Tokenizers, labels: tuple[str, ...]) -> None:
    """Show the first rows as the model sees them: every token, padding included, and the targets."""
    shapes = ", ".join(f"{name} {tuple(t.shape)}" for name, t in batch.inputs.items())
    section(console, "first batch", f"{shapes}; {batch.tokens:,} targets (· has no target)")
    for row in range(min(SHOWN_ROWS, len(batch.targets))):
        console.print(borderless(describe_row(batch, row, tokenizers, labels)), "")


def describe_row(batch: Batch, row: int, tokenizers: Tokenizers, labels: tuple[str, ...]) -> Iterator[Row]:
    """The inputs and targets of a row, each with its name."""
    inputs = batch.inputs
    targets = batch.targets
    if "source" in inputs:
        yield "source", render_tokens(inputs["source"][row], tokenizers.source)
    own = "target" if "source" in inputs else "ids"
    yield own, render_tokens(inputs[own][row], tokenizers.target)
    if targets.dim() == 2:
        yield "to learn", render_tokens(targets[row], tokenizers.target)
    elif labels:
        yield "to learn", labels[int(targets[row])]
    else:
        yield "and", render_tokens(inputs["ids"][len(targets) + row], tokenizers.target)
        yield "to learn", f"a similarity of {targets[row]:.2f}"


def render_tokens(ids: Tensor, tokenizer: Tokenizer) -> Text:
    """Tokens separated by bars: special ones such as padding in colour, · for positions without a target."""
    shown = Text()
    for position, number in enumerate(ids[:SHOWN_TOKENS].tolist()):
        shown.append("│" if position else "", style="dim")
        if number == IGNORE:
            shown.append("·", style="dim")
        else:
            special = number == tokenizer.pad or not tokenizer.decode([number])
            shown.append(visible(tokenizer.piece(number)), style="magenta" if special else "")
    if len(ids) > SHOWN_TOKENS:
        shown.append(f" … {len(ids) - SHOWN_TOKENS:,} more", style="dim")
    return shown


# --- the model and its cost -------------------------------------------------------------------------------------------


def show_model(console: Console, recipe: Recipe, batch: Batch, state: TrainState) -> None:
    """Show the number of parameters, and an estimate of the memory of a step."""
    counts = count_parameters(state.model, recipe.train.optimiser)
    section(console, "model", f"{recipe.model.family}, {counts.stored:,} parameters, on {state.machine}")
    sides = [ids for name, ids in batch.inputs.items() if name in ("source", "target", "ids")]
    rows = len(sides[0]) * recipe.train.passes
    shape = BatchShape(rows, round(sum(ids.size(1) for ids in sides) / len(sides)))
    lines = memory_lines(recipe.model, shape, counts)
    twice = ", each row twice (train.r_drop)" if recipe.train.passes > 1 else ""
    about = (
        f"about {readable(total(lines), 'B')} for a step of {shape.batch} × {shape.length} tokens{twice}, in float32"
    )
    section(console, "memory", about, [(line.what, readable(line.value, "B")) for line in lines])


def take_steps(console: Console, recipe: Recipe, state: TrainState, batches: list[Batch]) -> float:
    """Take a few steps on the same batches, show the first loss and the memory, and return the shortest time of a step.

    The first step is slower: it includes compiling, loading kernels and allocating memory.
    """
    config = recipe.train
    device = state.machine.device
    where = "on the GPU" if device.type == "cuda" else "by the whole process"
    log = Log(None, recipe, state.machine, 0, quiet=True)
    seconds = math.inf
    first = ""
    for step in track(range(1, TRIED_STEPS + 1), "trying a few steps", TRIED_STEPS, "steps"):
        begin = time.perf_counter()
        rate = learning_rate(config, recipe.model.d_model, step)
        train_step(state, [batch.to(device) for batch in batches], rate, config, log)
        finish_steps(state, config, log)
        seconds = min(seconds, time.perf_counter() - begin)
        first = first or log.describe_loss(log.loss)
        if seconds > LONG_STEP and device.type == "cpu" and not state.machine.compiled:
            break
    uniform = f"; guessing among {recipe.model.vocab:,} tokens gives {math.log(recipe.model.vocab):.2f}"
    section(console, "first step", first + (uniform if TASKS[recipe.data.task].predicts_tokens else ""))
    if step < TRIED_STEPS:
        console.print("  the only one that was tried, because it took long: later ones are faster, and so is the run")
    console.print(f"  {readable(peak_memory(device), 'B')} in use at most, {where}")
    return seconds


def show_time(console: Console, recipe: Recipe, seconds: float, evaluation: float) -> None:
    """Show an estimate of the run's time, with `seconds` per step, and evaluations as large as `evaluation` steps."""
    config = recipe.train
    evaluations = math.ceil(config.steps / (config.evaluate_every or config.steps))
    total_seconds = config.steps * seconds + evaluations * evaluation * seconds * EVALUATION_COST / config.passes
    steps = f"{config.steps:,} steps × {seconds:.3g} s, and evaluations"
    section(console, "time", f"about {readable_time(total_seconds)}: {steps}")
    console.print("\nNo run was written. Without --dry-run, the run starts.")
