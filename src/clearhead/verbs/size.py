"""`clearhead size`: what a model costs, as tables in the terminal or as JSON. The arithmetic is in `train/cost.py`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from rich.table import Table
from rich.text import Text

from clearhead.config import ModelConfig, Recipe, UserError, require, suggest
from clearhead.presets import PRESETS
from clearhead.recipes import build, load_recipe, override, recipe_names
from clearhead.terminal.console import plain_console
from clearhead.terminal.pipes import write_objects
from clearhead.train.cost import (
    BatchShape,
    Line,
    ParameterCounts,
    all_trained,
    cache_lines,
    forward_lines,
    memory_lines,
    parameter_lines,
    readable,
    readable_time,
    total,
    training_seconds,
)
from clearhead.train.scale import GPUS, MEASURED_UTILISATION, NODE_GPUS, Cluster, StepTime, gpu_memory_lines, step_time
from clearhead.verbs.options import JsonObject

NOTES = {  # what a token is, by family; texts that get one class or vector have a note of their own
    "encoder-decoder": "A token here is one target token together with one source token.",
    "decoder-only": "Each token is read and predicted once.",
    "encoder-only": "Each token is read once; all are predicted here, though masked training predicts only some.",
}
WHOLE_TEXT_NOTE = "Each token is read once; the class or vector of a whole text costs almost nothing."
R_DROP_NOTE = (
    "With train.r_drop each batch is computed twice: memory, FLOPs and time of training are those of two passes."
)
FLOAT_NOTE = "Memory is for plain float32 training; bfloat16 halves activations and logits."
SQUARE_NOTE = "Attention's FLOPs are those of the full square, though causal kernels skip half of it."


@Parameter(name="*")
@dataclass(frozen=True)
class TrainingOptions:
    """The training to estimate: its batches, its tokens and its GPUs."""

    batch: Annotated[
        int | None, Parameter(help="Sequences per step on each GPU; by default the recipe's, for a preset 32.")
    ] = None
    length: Annotated[
        int | None,
        Parameter(
            help="Tokens per sequence, in an encoder-decoder of source and target each; by default the recipe's, for a "
            "preset 128."
        ),
    ] = None
    tokens: Annotated[
        float | None,
        Parameter(
            help="Tokens to train on, in an encoder-decoder target tokens, with as many source tokens; by default the "
            "recipe's, for a preset 1e9."
        ),
    ] = None
    gpus: Annotated[int, Parameter(help="Number of GPUs, among which FSDP divides the model; 8 are a node.")] = 1
    gpu: Annotated[
        str,
        Parameter(
            help="Kind of GPU: p100, t4, v100, l4, a100, rtx4090, h100, h200, b200; here: this machine's GPU or CPU. "
            "By default here for a recipe, h100 for a preset."
        ),
    ] = ""
    utilisation: Annotated[
        float,
        Parameter(help="Fraction of its peak that one GPU reaches; the default was measured with gpt2 on an H200."),
    ] = MEASURED_UTILISATION


def size(name: str, *overrides: str, training: TrainingOptions = TrainingOptions(), json: JsonObject = False) -> None:
    """Show parameters, FLOPs, memory and training time of a model, with the arithmetic behind each number.

    Parameters
    ----------
    name
        A preset (paper-base, gpt2, bert-base, ...), the name of a recipe, or the path of a recipe.
    overrides
        Changes to its settings: model.layers=12 model.d_model=768

    """
    recipe = named_recipe(name, overrides)
    plan = planned_training(training, name, recipe)
    shape = plan.shape
    passes = recipe.train.passes
    trained_shape = replace(shape, batch=passes * shape.batch)
    recomputed = recipe.train.checkpoint_activations
    time = training_seconds(recipe.model, shape, passes * plan.tokens, plan.peak, plan.gpus, plan.utilisation)
    counts = parameter_counts(recipe)
    memory = memory_lines(recipe.model, trained_shape, counts)
    step = None
    if plan.device in NODE_GPUS:  # in bfloat16, and with communication
        step = step_time(recipe.model, trained_shape, Cluster(plan.device, plan.gpus, plan.utilisation), recomputed)
        time = passes * plan.tokens / step.throughput
        memory = gpu_memory_lines(recipe.model, trained_shape, counts, plan.gpus, recomputed)
    sections = {
        "parameters": parameter_lines(recipe.model),
        "forward FLOPs per token": forward_lines(recipe.model, shape),
        "training memory": memory,
        "decoding cache": cache_lines(recipe.model, shape),
    }
    if json:
        values: dict[str, Any] = {title: {line.what: line.value for line in lines} for title, lines in sections.items()}
        values["trained parameters"] = counts.trained
        estimate = {"training tokens": plan.tokens, "device": plan.device, "training seconds": time}
        steps = {"step seconds": step.seconds, "tokens per second": step.throughput} if step else {}
        write_objects([{"model": name, **values, **estimate, **steps}])
        return
    console = plain_console()
    parameters = readable(total(sections["parameters"]), "")
    console.print(Text.assemble((name, "bold"), f": {recipe.model.family}, {parameters} parameters"))
    for (title, lines), unit in zip(sections.items(), ("", "FLOP", "B", "B"), strict=True):
        if lines:
            console.print(section(title, lines, unit, shape))
    console.print(time_text(plan, passes * total(sections["forward FLOPs per token"]), time, step, recomputed))
    read = NOTES[recipe.model.family] if recipe.model.head == "vocabulary" else WHOLE_TEXT_NOTE
    square = [] if recipe.model.family == "encoder-only" else [SQUARE_NOTE]  # without causal attention
    twice = [R_DROP_NOTE] if passes > 1 else []
    notes = [*trained_notes(counts), *twice, read, cluster_note(plan, total(memory)) if step else FLOAT_NOTE, *square]
    console.print("\n".join(notes), style="dim")


def parameter_counts(recipe: Recipe) -> ParameterCounts:
    """Return how many parameters the recipe trains; torch is imported only if some are frozen."""
    if not (recipe.train.lora or recipe.train.freeze):
        return all_trained(recipe.model, recipe.train.optimiser)
    from clearhead.train.trained import estimate_counts

    return estimate_counts(recipe)


def trained_notes(counts: ParameterCounts) -> list[str]:
    """Say how many parameters are trained, unless all of them are."""
    if counts.trained == counts.stored:
        return []
    part = f"{counts.trained:,} parameters ({counts.trained / counts.stored:.2%})"
    return [f"{part} are trained, the others are frozen; activations and time are those of training all."]


def cluster_note(plan: Training, size: int) -> str:
    """Say what the memory is for, and whether the GPU has it."""
    has = NODE_GPUS[plan.device].memory * 1e9
    fits = "fits into" if size <= has else "does not fit into"
    shared = ", divided among the GPUs by FSDP" if plan.gpus > 1 else ""
    remedy = "" if size <= has else "; smaller: --batch, more --gpus, train.checkpoint_activations=true"
    return (
        f"Memory is that of each GPU in bfloat16{shared}: {readable(size, 'B')} {fits} its {readable(has, 'B')}"
        f"{remedy}. docs/scale.md compares estimates with measurements."
    )


def named_recipe(name: str, overrides: Sequence[str]) -> Recipe:
    """Return the recipe of that name, or the default recipe with the model of a preset, with overrides."""
    if name in PRESETS:
        return build(Recipe, override(Recipe, {"model": asdict(PRESETS[name])}, overrides))
    run = Path(name) / "run.toml"
    if name not in recipe_names() and run.is_file():
        name = str(run)
    if name.endswith(".toml") or name in recipe_names():
        recipe = load_recipe(name, overrides)
        model = recipe.model
        vocab = model.vocab or recipe.tokenizer.vocab  # an upper bound: training decides
        classes = model.classes or (2 if model.head == "classes" else 0)  # a lower bound: the labels decide
        return replace(recipe, model=replace(model, vocab=vocab, classes=classes))
    raise UserError(f"{name!r} is neither a preset, a recipe nor a run; {suggest(name, [*PRESETS, *recipe_names()])}")


@dataclass(frozen=True)
class Training:
    """The training that is estimated, with nothing left open."""

    shape: BatchShape
    tokens: float
    gpus: int
    utilisation: float
    device: str  # as it is named to the user
    peak: float  # TFLOP/s of one device
    peak_is: str  # where the peak is known from


def planned_training(options: TrainingOptions, name: str, recipe: Recipe) -> Training:
    """Return the training of the options; what they leave open is the recipe's own, or the default for presets."""
    batch, length, tokens, gpu = (32, 128, 1e9, "h100") if name in PRESETS else recipe_defaults(recipe, options.length)
    shape = BatchShape(
        batch if options.batch is None else options.batch, length if options.length is None else options.length
    )
    total_tokens = tokens if options.tokens is None else options.tokens
    check(shape, total_tokens, recipe.model)
    device, peak, peak_is = find_device(options.gpu or gpu, recipe)
    return Training(shape, total_tokens, options.gpus, options.utilisation, device, peak, peak_is)


def recipe_defaults(recipe: Recipe, length: int | None) -> tuple[int, int, float, str]:
    """Return batch, length, tokens and device of a recipe; its token budget counts source and target tokens."""
    sides = 2 if recipe.model.family == "encoder-decoder" else 1
    longest = length or min(recipe.data.max_length, recipe.model.position_limit or recipe.data.max_length)
    tokens = recipe.train.steps * (recipe.train.step_tokens or recipe.data.batch_tokens) / sides
    return max(1, recipe.data.batch_tokens // (sides * longest)), longest, tokens, "here"


def find_device(name: str, recipe: Recipe) -> tuple[str, float, str]:
    """Return the name of a device, its peak in TFLOP/s, and what kind of peak; "here": where the recipe would train."""
    if name != "here":
        require(name in GPUS, f"--gpu {name!r}: unknown; {suggest(name, [*GPUS, 'here'])}")
        return name, GPUS[name].peak, "a half-precision peak"
    from clearhead.device import choose_machine
    from clearhead.train.watching.speed import peak_flops

    machine = choose_machine(recipe.train)
    return str(machine), float(f"{peak_flops(machine) / 1e12:.2g}"), "the peak here"


def check(shape: BatchShape, tokens: float, model: ModelConfig) -> None:
    """Reject a training that the model cannot do."""
    for setting, value in (("batch", shape.batch), ("length", shape.length), ("tokens", tokens)):
        require(value > 0, f"--{setting} {value}: must be at least 1")
    require(
        model.position_limit is None or shape.length <= model.position_limit,
        f"--length {shape.length} is more than the model.max_length = {model.max_length} learned positions",
    )


def time_text(plan: Training, flops: int, seconds: float, step: StepTime | None, recomputed: bool) -> Text:
    """Return the training time and how it is computed from the forward FLOPs per token."""
    throughput = f"{plan.gpus} × {plan.peak:g}e12 × {plan.utilisation}"
    times = 4 if step and recomputed else 3
    text = Text.assemble(
        ("\ntraining time", "bold"),
        f" for {plan.tokens:.3g} tokens on {plan.gpus} × {plan.device}: ",
        (readable_time(seconds), "bold"),
        f"\n  {times} × {flops:,} FLOP × {plan.tokens:.3g} tokens / ({throughput} FLOP/s)\n"
        f"  the backward pass costs twice the forward pass{', which is computed again' if times == 4 else ''}; "
        f"{plan.utilisation:.0%} of {plan.peak_is} of {plan.peak:g} TFLOP/s\n",
    )
    if step:
        speed = float(f"{step.throughput:.3g}")
        text.append(f"  a step of {step.tokens:,} tokens takes {step.seconds:.3g} s: {speed:,.0f} tokens/s\n")
    if step and plan.gpus > 1:
        text.append(
            f"  {step.compute:.3g} s of computation; beside it {step.communication:.3g} s of communication, of which "
            f"{step.exposed:.2g} s overlap with nothing\n"
        )
    return text


def section(title: str, lines: list[Line], unit: str, shape: BatchShape) -> Table:
    """Return one table: what is counted, the arithmetic, the number; the total last."""
    where = "" if title == "parameters" else f", batch {shape.batch} × length {shape.length}"
    table = Table(title=f"\n{title}{where}", title_justify="left", title_style="bold", box=None, show_header=False)
    table.add_column(style="cyan", no_wrap=True)
    table.add_column(style="dim")
    table.add_column(justify="right", no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    for line in lines:
        table.add_row(line.what, line.how, f"{line.value:,}", readable(line.value, unit))
    if len(lines) > 1:
        table.add_row("total", "", f"{total(lines):,}", readable(total(lines), unit), style="bold")
    return table
