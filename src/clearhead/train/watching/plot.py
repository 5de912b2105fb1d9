"""Curves of runs and of learning-rate schedules, in the terminal or as an image."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from clearhead.config import Recipe, UserError, require
from clearhead.evaluate.image_report import escape_dollars
from clearhead.files import Metrics, is_number, read_metrics, require_output, write_file
from clearhead.runs import suggest_run
from clearhead.terminal.chart import Curve, draw
from clearhead.terminal.console import plain_console
from clearhead.train.schedule import learning_rate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# distinguishable by colour-blind people (Okabe and Ito), and in grey
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
SUFFIXES = (".png", ".svg", ".pdf")
SMOOTH_OVER = 100  # a smoothed loss averages over about 1/100 of the steps of a run
POINTS = 1000  # of a schedule
COLUMNS = {"train": ("step", "loss", "rate", "norm"), "valid": ("step", "loss")}  # by kind of line in metrics.jsonl
WIDE = 20  # if the largest gradient norm is more than 20 times the median, its axis is logarithmic


class History(NamedTuple):
    """The metrics of a run, as columns: step, loss, rate and norm of the training, step and loss of the evaluations."""

    name: str
    train: dict[str, list[float]]
    valid: dict[str, list[float]]


def read_history(run: Path) -> History:
    """The metrics of a run, which must have at least one step."""
    require(run.is_dir(), f"run {str(run)!r}: there is no such folder; {suggest_run(run)}")
    file = run / "metrics.jsonl"
    require(file.is_file(), f"{run}: nothing to plot: it has no metrics.jsonl, which training writes")
    rows: dict[str, list[Metrics]] = {kind: [] for kind in COLUMNS}
    for row in read_metrics(run):
        kind = row["kind"]
        for column in COLUMNS.get(kind, ()):
            require(column in row, f"{file} is damaged: a line of kind {kind} has no {column!r}")
        if kind in rows and all(is_number(row[column]) for column in COLUMNS[kind]):
            rows[kind].append(row)
    require(bool(rows["train"]), f"{run} has no steps with finite values to show yet")
    columns = {kind: {name: [row[name] for row in rows[kind]] for name in names} for kind, names in COLUMNS.items()}
    return History(run.resolve().name, **columns)


def smoothed(values: Sequence[float]) -> list[float]:
    """An exponential moving average, corrected for its start (as Adam corrects its averages)."""
    keep = 1 - 1 / max(1.0, min(50.0, len(values) / SMOOTH_OVER))
    total = weight = 0.0
    means = []
    for value in values:
        total = keep * total + value
        weight = keep * weight + 1
        means.append(total / weight)
    return means


# --- runs -------------------------------------------------------------------------------------------------------------


def plot_runs(runs: Sequence[Path], out: Path | None) -> None:
    """Draw the losses of runs in the terminal; or losses, learning rates and gradient norms as an image."""
    require(bool(runs), "no run was given; name one: clearhead plot runs/NAME")
    histories = [read_history(run) for run in runs]
    if out:
        save(draw_runs(histories), out)
        return
    curves = []
    for history in histories:
        name = f" {history.name}" if len(histories) > 1 else ""
        curves.append(Curve(f"train{name}", history.train["step"], smoothed(history.train["loss"])))
        if history.valid["step"]:
            curves.append(Curve(f"validation{name}", history.valid["step"], history.valid["loss"]))
    show(curves)


def show(curves: list[Curve]) -> None:
    """Print curves over the steps, as wide as the terminal."""
    console = plain_console()
    console.print(draw(curves, "step", console.width))


def draw_runs(histories: list[History]) -> Figure:
    """The loss on top, learning rate and gradient norm below."""
    figure = new_figure((9, 6.5))
    axes = figure.subplot_mosaic([["loss", "loss"], ["rate", "norm"]], height_ratios=(2, 1))
    several = len(histories) > 1
    for history, colour in zip(histories, itertools.cycle(COLOURS), strict=False):
        train = history.train
        draw_loss(axes["loss"], history, colour, f"{escape_dollars(history.name)}, " if several else "")
        axes["rate"].plot(train["step"], train["rate"], color=colour, linewidth=1.5)
        axes["norm"].plot(train["step"], train["norm"], color=colour, linewidth=0.5, alpha=0.35)
        axes["norm"].plot(train["step"], smoothed(train["norm"]), color=colour, linewidth=1.5)
    norms = sorted(norm for history in histories for norm in history.train["norm"])
    if norms[0] > 0 and norms[-1] > WIDE * norms[len(norms) // 2]:
        axes["norm"].set_yscale("log")
    else:
        axes["norm"].set_ylim(bottom=0)
    # the losses of the first steps are far above all others: cut them off, so that the rest is not flat
    losses = [smoothed(history.train["loss"]) for history in histories]
    axes["loss"].set_ylim(top=1.05 * max(max(run[len(run) // 50 :]) for run in losses))
    axes["loss"].legend(frameon=False, ncols=2 if several else 1)
    tidy(axes["loss"], "loss" if several else f"loss of {escape_dollars(histories[0].name)}")
    tidy(axes["rate"], "learning rate")
    tidy(axes["norm"], "gradient norm")
    return figure


def draw_loss(axes: Axes, history: History, colour: str, prefix: str) -> None:
    """Draw the training loss, pale, and smoothed; the validation loss with markers."""
    steps, losses = history.train["step"], history.train["loss"]
    axes.plot(steps, losses, color=colour, linewidth=0.5, alpha=0.25)
    axes.plot(steps, smoothed(losses), color=colour, linewidth=1.5, label=f"{prefix}train, smoothed")
    if history.valid["step"]:
        dashed: dict[str, Any] = {"linestyle": (0, (4, 2)), "linewidth": 1.2}
        marked: dict[str, Any] = {"marker": "o", "markersize": 5, "markerfacecolor": "white"}
        label = f"{prefix}validation"
        axes.plot(history.valid["step"], history.valid["loss"], color=colour, label=label, **dashed, **marked)


# --- schedules --------------------------------------------------------------------------------------------------------


def plot_schedule(recipe: Recipe, out: Path | None) -> None:
    """Draw the learning rate over the steps of a recipe, in the terminal or as an image."""
    steps = recipe.train.steps
    at = sorted({1 + round(i * (steps - 1) / POINTS) for i in range(POINTS + 1)})
    rates = [learning_rate(recipe.train, recipe.model.d_model, step) for step in at]
    title = f"learning rate, {recipe.train.schedule}"
    if not out:
        show([Curve(title, at, rates)])
        return
    figure = new_figure((8, 4))
    axes = figure.subplots()
    axes.plot(at, rates, color=COLOURS[0], linewidth=2)
    axes.set_ylim(bottom=0)
    tidy(axes, escape_dollars(f"{title} ({recipe.name})"))
    save(figure, out)


# --- images -----------------------------------------------------------------------------------------------------------


def new_figure(inches: tuple[float, float]) -> Figure:
    """An empty figure, if matplotlib is installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UserError("--out needs matplotlib: pip install 'clearhead[watch]', or leave it out") from error
    return Figure(figsize=inches, layout="constrained")


def tidy(axes: Axes, title: str) -> None:
    """Add a title and labels, and remove lines that are not needed."""
    from matplotlib.ticker import FuncFormatter

    axes.set_title(title, loc="left", fontsize=11)
    axes.set_xlabel("step")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda step, _: f"{step:,.0f}"))
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.margins(x=0.01)


def save(figure: Figure, out: Path) -> None:
    """Write an image in the format of the file name's suffix."""
    require_output(out, "--out", SUFFIXES)
    write_file(out, lambda temporary: figure.savefig(temporary, dpi=150))
    plain_console(stderr=True, soft_wrap=True).print(f"wrote {out}")
