"""`clearhead train RECIPE --dry-run`: everything a run would do, up to its first steps, and nothing written."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

from rich.console import Console
from rich.table import Table
from rich.text import Text
from torch import Tensor

from clearhead.config import Recipe
from clearhead.data.batches import IGNORE, Batch
from clearhead.data.loader import Batches, open_batches
from clearhead.data.sources import open_corpus
from clearhead.tasks import TASKS
from clearhead.terminal.colour import visible
from clearhead.text.tokenizer import Tokenizer, Tokenizers
from clearhead.train.cost import Load, memory_lines, readable, readable_time, total
from clearhead.train.loop import Learner, take_step
from clearhead.train.parallel import ALONE
from clearhead.train.prepare import complete, endless, open_train, prepare_tokenizers
from clearhead.train.run import begin
from clearhead.train.schedule import learning_rate
from clearhead.train.watching.log import Log
from clearhead.train.watching.speed import memory_used

ROWS = 3  # of the first batch that are shown
TOKENS = 40  # of each row
STEPS = 3  # to take
EVALUATION = 1 / 3  # of the time of a step, for as many tokens: forward without backward


def dry_run(recipe: Recipe) -> None:
    """Find the data, show a batch, build the model, take some steps, say what the whole run will need."""
    console = Console(highlight=False)
    tokenizers = prepare_tokenizers(recipe)
    batches = open_train(recipe, tokenizers, 0, 1)
    recipe = complete(recipe, tokenizers, batches[0].labels)
    others = [name for name in open_corpus(recipe.data).splits if name in ("valid", "test")]
    splits = {name: open_batches(recipe.data, tokenizers, name, recipe.train.seed) for name in others}
    steps = max(1, min(lane.steps(0) for lane in batches))
    show_data(console, recipe, {"train": batches[0], **splits}, steps)
    show_tokenizers(console, tokenizers)
    learner = begin(recipe, ALONE)
    first = [next(endless(lane, 0)) for lane in batches]
    show_batch(console, first[0], tokenizers, batches[0].labels)
    show_model(console, recipe, first[0], learner)
    seconds = run_steps(console, recipe, learner, first)
    show_time(console, recipe, seconds, splits["valid"].steps(0) / len(batches))


def heading(console: Console, title: str, text: str) -> None:
    """A line that begins a part."""
    console.print(f"\n[bold]{title}[/]: {text}", soft_wrap=True)


def show_data(console: Console, recipe: Recipe, splits: dict[str, Batches], steps: int) -> None:
    """What was found, and what was left out of it."""
    data = recipe.data
    heading(console, "data", f"{data.corpus or data.path}, {data.task}")
    unit = "blocks" if data.pack and "pack" in TASKS[data.task].settings else "examples"
    table = plain()
    for name, batches in splits.items():
        count, cut = sum(len(bucket.members) for bucket in batches.dataset.buckets(0)), batches.steps(0) * batches.world
        each = f", {recipe.train.steps / steps:.1f} epochs in {recipe.train.steps:,} steps" if name == "train" else ""
        table.add_row(name, f"{count:,} {unit} in {cut:,} {'batch' if cut == 1 else 'batches'}{each}")
    console.print(table)
    for name, batches in splits.items():
        for line in batches.report.lines():
            console.print(f"  [yellow]{name}: {line}[/]")


def show_tokenizers(console: Console, tokenizers: Tokenizers) -> None:
    """How many words there are."""
    sides = (tokenizers.target,) if tokenizers.shared else (tokenizers.source, tokenizers.target)
    heading(console, "tokens", " and ".join(f"{side.vocab:,}" for side in sides) + " different ones")


# --- a batch in words -------------------------------------------------------------------------------------------------


def show_batch(console: Console, batch: Batch, tokenizers: Tokenizers, labels: tuple[str, ...]) -> None:
    """The first rows as the model will see them: every token, its padding, and what is (not) to be learned."""
    shapes = ", ".join(f"{name} {tuple(t.shape)}" for name, t in batch.inputs.items())
    heading(console, "first batch", f"{shapes}; {batch.tokens:,} targets (· is nothing to learn)")
    for row in range(min(ROWS, len(batch.targets))):
        table = plain()
        for name, text in row_in_words(batch, row, tokenizers, labels):
            table.add_row(name, text)
        console.print(table, "")


def row_in_words(
    batch: Batch, row: int, tokenizers: Tokenizers, labels: tuple[str, ...]
) -> Iterator[tuple[str, Text | str]]:
    """What goes in and what is to come out, by name."""
    inputs, targets = batch.inputs, batch.targets
    if "source" in inputs:
        yield "source", in_words(inputs["source"][row], tokenizers.source)
    own = "target" if "source" in inputs else "ids"
    yield own, in_words(inputs[own][row], tokenizers.target)
    if targets.dim() == 2:
        yield "to learn", in_words(targets[row], tokenizers.target)
    elif labels:
        yield "to learn", labels[int(targets[row])]
    else:
        yield "and", in_words(inputs["ids"][len(targets) + row], tokenizers.target)
        yield "to learn", f"{targets[row]:.2f} alike"


def in_words(ids: Tensor, tokenizer: Tokenizer) -> Text:
    """Tokens between bars; padding and other special ones in colour, · for what is not to be learned."""
    shown = Text()
    for place, number in enumerate(ids[:TOKENS].tolist()):
        shown.append("│" if place else "", style="dim")
        if number == IGNORE:
            shown.append("·", style="dim")
        else:
            special = number == tokenizer.pad or not tokenizer.decode([number])
            shown.append(visible(tokenizer.piece(number)), style="magenta" if special else "")
    if len(ids) > TOKENS:
        shown.append(f" … {len(ids) - TOKENS:,} more", style="dim")
    return shown


# --- the model and its cost -------------------------------------------------------------------------------------------


def show_model(console: Console, recipe: Recipe, batch: Batch, learner: Learner) -> None:
    """Parameters, and the memory of a step by its parts."""
    parameters = sum(p.numel() for p in learner.model.parameters())
    sides = [ids for name, ids in batch.inputs.items() if name in ("source", "target", "ids")]
    load = Load(len(sides[0]), round(sum(ids.size(1) for ids in sides) / len(sides)))
    lines = memory_lines(recipe.model, load, recipe.train.optimiser)
    heading(console, "model", f"{recipe.model.family}, {parameters:,} parameters, on {learner.machine}")
    need = readable(total(lines), "B")
    heading(console, "memory", f"about {need} for a step of {load.batch} × {load.length} tokens, in float32")
    table = plain()
    for line in lines:
        table.add_row(line.what, readable(line.value, "B"))
    console.print(table)


def run_steps(console: Console, recipe: Recipe, learner: Learner, batches: list[Batch]) -> float:
    """Take the first step a few times, say what came of it, and give the seconds of the fastest.

    The first time includes what is done but once: compiling, loading kernels, making room.
    """
    config, device = recipe.train, learner.machine.device
    where = "on the GPU" if device.type == "cuda" else "by the whole program"
    log, seconds = Log(None, recipe, learner.machine, 0, quiet=True), math.inf
    for step in range(1, STEPS + 1):
        begin = time.perf_counter()
        rate = learning_rate(config, recipe.model.d_model, step, config.steps)
        take_step(learner, [batch.to(device) for batch in batches], rate, config, log)
        seconds = min(seconds, time.perf_counter() - begin)
        if step == 1:
            words = f"; guessing among {recipe.model.vocab:,} words gives {math.log(recipe.model.vocab):.2f}"
            words = words if TASKS[recipe.data.task].predicts_tokens else ""
            heading(console, "first step", log.loss_in_words(log.loss) + words)
    console.print(f"  {readable(memory_used(device), 'B')} in use at most, {where}")
    return seconds


def show_time(console: Console, recipe: Recipe, seconds: float, evaluation: float) -> None:
    """How long the run will take, from one measured step and an evaluation of so many."""
    config = recipe.train
    evaluations = math.ceil(config.steps / (config.evaluate_every or config.steps))
    whole = config.steps * seconds + evaluations * evaluation * seconds * EVALUATION
    heading(console, "time", f"about {readable_time(whole)}: {config.steps:,} steps × {seconds:.3g} s, and evaluations")
    console.print("\nNothing was written. Without --dry-run the run begins.")


def plain() -> Table:
    """A table without lines."""
    table = Table(box=None, show_header=False, padding=(0, 1, 0, 2))
    table.add_column(style="cyan", no_wrap=True)
    table.add_column()
    return table
