"""`clearhead size`: the envelope of `size.py` as tables in the terminal, or as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from rich.console import Console
from rich.table import Table

from clearhead.config import Recipe, UserError, require, suggest
from clearhead.presets import PRESETS
from clearhead.recipes import build, load_recipe, override, recipe_names
from clearhead.train.cost import (
    GPUS,
    Line,
    Load,
    cache_lines,
    forward_lines,
    memory_lines,
    parameter_lines,
    readable,
    readable_time,
    total,
    training_seconds,
)

NOTES = {
    "encoder-decoder": "A token is a target token together with a source token.",
    "decoder-only": "A token is read and predicted once.",
    "encoder-only": "A token is read once; all of them are predicted, though masking asks for some.",
}


@dataclass(frozen=True)
class Training:
    """What is asked of the model, and of which machines."""

    batch: int
    length: int
    tokens: float
    gpu: str
    gpus: int
    utilisation: float


def named_recipe(name: str, overrides: Sequence[str]) -> Recipe:
    """A recipe, or one with the model of a preset, with overrides."""
    if name in PRESETS:
        return build(Recipe, override(Recipe, {"model": asdict(PRESETS[name])}, overrides))
    if name.endswith(".toml") or name in recipe_names():
        recipe = load_recipe(name, overrides)
        vocab = recipe.model.vocab or recipe.tokenizer.vocab  # at most that many
        return replace(recipe, model=replace(recipe.model, vocab=vocab))
    raise UserError(f"{name!r} is no preset and no recipe; {suggest(name, [*PRESETS, *recipe_names()])}")


def show(name: str, recipe: Recipe, training: Training, as_json: bool) -> None:
    """Write the whole envelope to stdout."""
    config = recipe.model
    for setting in ("batch", "length", "tokens"):
        value = getattr(training, setting)
        require(value > 0, f"--{setting} {value}: must be at least 1")
    require(
        config.position != "learned" or training.length <= config.max_length,
        f"--length {training.length} is more than the model.max_length = {config.max_length} learned positions",
    )
    load = Load(training.batch, training.length)
    seconds = training_seconds(config, load, training.tokens, training.gpu, training.gpus, training.utilisation)
    sections = {
        "parameters": parameter_lines(config),
        "forward FLOPs per token": forward_lines(config, load),
        "training memory": memory_lines(config, load, recipe.train.optimiser),
        "decoding cache": cache_lines(config, load),
    }
    console = Console()
    if as_json:
        values = {title: {line.what: line.value for line in lines} for title, lines in sections.items()}
        console.out(json.dumps({"model": name, **values, "training seconds": seconds}), highlight=False)
        return
    console.print(f"[bold]{name}[/]: {config.family}, {readable(total(sections['parameters']), '')} parameters")
    for (title, lines), unit in zip(sections.items(), ("", "FLOP", "B", "B"), strict=True):
        if lines:
            console.print(section(title, lines, unit, load))
    flops = total(sections["forward FLOPs per token"])
    speed = f"{training.gpus} × {GPUS[training.gpu]}e12 × {training.utilisation}"
    console.print(
        f"\n[bold]training time[/] for {training.tokens:.3g} tokens on {training.gpus} × {training.gpu}: "
        f"[bold]{readable_time(seconds)}[/]\n"
        f"  3 × {flops:,} FLOP × {training.tokens:.3g} tokens / ({speed} FLOP/s)\n"
        f"  backward costs twice forward; {training.utilisation:.0%} of a half-precision peak of "
        f"{GPUS[training.gpu]} TFLOP/s\n\n[dim]{NOTES[config.family]}\n"
        "Memory is for plain float32 training; bfloat16 halves activations and logits.\n"
        "Attention's FLOPs are those of the full square, though causal kernels skip half of it.[/]",
        highlight=False,
    )


def section(title: str, lines: list[Line], unit: str, load: Load) -> Table:
    """One table: what, the arithmetic, the number; the sum last."""
    where = "" if title == "parameters" else f", batch {load.batch} × length {load.length}"
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
