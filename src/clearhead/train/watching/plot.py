"""`clearhead plot`, `clearhead train --plot-schedule`: curves in the terminal, or as a picture for print and screen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from clearhead.config import Recipe, UserError, require
from clearhead.files import Metrics, read_metrics, write_file
from clearhead.terminal.chart import Curve, draw
from clearhead.train.schedule import learning_rate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# told apart by those who are colour-blind, too (Okabe and Ito), and in grey
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
KINDS = (".png", ".svg", ".pdf")
SMOOTH_OVER = 100  # the part of a run's steps, one in so many, that a point of the smoothed loss looks back on
POINTS = 1000  # of a schedule
WIDE = 20  # times the median: gradients so much longer make the axis logarithmic


@dataclass
class History:
    """What the metrics of a run say, as columns."""

    name: str
    steps: list[int] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)
    norms: list[float] = field(default_factory=list)
    valid: list[tuple[int, float]] = field(default_factory=list)

    def add(self, row: Metrics) -> None:
        """Append one line of metrics.jsonl to the columns."""
        if row["kind"] == "train":
            self.steps.append(row["step"])
            self.losses.append(row["loss"])
            self.rates.append(row["rate"])
            self.norms.append(row["norm"])
        elif row["kind"] == "valid" and row["loss"] is not None:
            self.valid.append((row["step"], row["loss"]))


def read_history(run: Path) -> History:
    """The curves of a run."""
    require((run / "metrics.jsonl").is_file(), f"{run} is no run: there is no metrics.jsonl in it")
    history = History(run.resolve().name)
    for row in read_metrics(run):
        history.add(row)
    require(bool(history.steps), f"{run} has no steps to show yet")
    return history


def smoothed(values: Sequence[float]) -> list[float]:
    """A running mean that forgets, without the pull of its first value."""
    keep = 1 - 1 / max(1.0, min(50.0, len(values) / SMOOTH_OVER))
    total = weight = 0.0
    means = []
    for value in values:
        total, weight = keep * total + value, keep * weight + 1
        means.append(total / weight)
    return means


# --- runs -------------------------------------------------------------------------------------------------------------


def plot_runs(runs: Sequence[Path], out: Path | None) -> None:
    """The curves of some runs: the losses in the terminal, or all of them in a picture."""
    require(bool(runs), "which run? clearhead plot runs/NAME")
    histories = [read_history(run) for run in runs]
    if out:
        save(draw_runs(histories), out)
        return
    curves = []
    for history in histories:
        of = f" {history.name}" if len(histories) > 1 else ""
        curves.append(Curve(f"train{of}", history.steps, smoothed(history.losses)))
        if history.valid:
            steps, losses = zip(*history.valid, strict=True)
            curves.append(Curve(f"validation{of}", steps, losses))
    show(curves)


def show(curves: list[Curve]) -> None:
    """Curves over the steps, as wide as the terminal."""
    console = Console(highlight=False)
    console.print(draw(curves, "step", console.width))


def draw_runs(histories: list[History]) -> Figure:
    """Loss above; learning rate and gradient below."""
    figure = new_figure((9, 6.5))
    places = figure.subplot_mosaic([["loss", "loss"], ["rate", "norm"]], height_ratios=(2, 1))
    for number, history in enumerate(histories):
        colour, name = COLOURS[number % len(COLOURS)], history.name.replace("$", r"\$")
        draw_loss(places["loss"], history, colour, f"{name}, " if len(histories) > 1 else "")
        places["rate"].plot(history.steps, history.rates, color=colour, linewidth=1.5)
        places["norm"].plot(history.steps, history.norms, color=colour, linewidth=0.5, alpha=0.35)
        places["norm"].plot(history.steps, smoothed(history.norms), color=colour, linewidth=1.5)
    norms = sorted(norm for history in histories for norm in history.norms)
    if norms[0] > 0 and norms[-1] > WIDE * norms[len(norms) // 2]:
        places["norm"].set_yscale("log")
    else:
        places["norm"].set_ylim(bottom=0)
    # the first steps are far above all others: let them leave the picture, not flatten it
    top = max(max(smoothed(history.losses)[len(history.steps) // 50 :]) for history in histories)
    places["loss"].set_ylim(top=1.05 * top)
    places["loss"].legend(frameon=False, ncols=2 if len(histories) > 1 else 1)
    name = histories[0].name.replace("$", r"\$")
    for key, title in (("loss", f"loss of {name}" if len(histories) == 1 else "loss"), ("rate", "learning rate")):
        tidy(places[key], title)
    tidy(places["norm"], "length of the gradient")
    return figure


def draw_loss(place: Axes, history: History, colour: str, of: str) -> None:
    """Loss of train as it was, pale, and smoothed; of validation with its points marked."""
    place.plot(history.steps, history.losses, color=colour, linewidth=0.5, alpha=0.25)
    place.plot(history.steps, smoothed(history.losses), color=colour, linewidth=1.5, label=f"{of}train, smoothed")
    if history.valid:
        steps, losses = zip(*history.valid, strict=True)
        style: dict[str, Any] = {
            "marker": "o",
            "markersize": 5,
            "markerfacecolor": "white",
            "linestyle": (0, (4, 2)),
            "linewidth": 1.2,
        }
        place.plot(steps, losses, color=colour, label=f"{of}validation", **style)


# --- schedules --------------------------------------------------------------------------------------------------------


def plot_schedule(recipe: Recipe, out: Path | None) -> None:
    """The learning rate of each step of a recipe, in the terminal or in a picture."""
    steps = recipe.train.steps
    at = sorted({1 + round(i * (steps - 1) / POINTS) for i in range(POINTS + 1)})
    rates = [learning_rate(recipe.train, recipe.model.d_model, step, steps) for step in at]
    title = f"learning rate, {recipe.train.schedule}"
    if not out:
        show([Curve(title, at, rates)])
        return
    figure = new_figure((8, 4))
    place = figure.subplots()
    place.plot(at, rates, color=COLOURS[0], linewidth=2)
    place.set_ylim(bottom=0)
    tidy(place, f"{title} ({recipe.name})".replace("$", r"\$"))
    save(figure, out)


# --- pictures ---------------------------------------------------------------------------------------------------------


def new_figure(inches: tuple[float, float]) -> Figure:
    """An empty figure, if there is something to draw it with."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UserError("pictures need matplotlib: pip install 'clearhead[watch]', or leave --out away") from error
    return Figure(figsize=inches, layout="constrained")


def tidy(place: Axes, title: str) -> None:
    """Axes that say what they show, and no more lines than needed."""
    from matplotlib.ticker import FuncFormatter

    place.set_title(title, loc="left", fontsize=11)
    place.set_xlabel("step")
    place.xaxis.set_major_formatter(FuncFormatter(lambda step, _: f"{step:,.0f}"))
    place.spines[["top", "right"]].set_visible(False)
    place.grid(axis="y", color="0.9", linewidth=0.8)
    place.set_axisbelow(True)
    place.margins(x=0.01)


def save(figure: Figure, out: Path) -> None:
    """Write a picture of the kind that the name ends with."""
    require(out.suffix in KINDS, f"--out {out}: the name must end with one of {', '.join(KINDS)}")
    write_file(out, lambda temporary: figure.savefig(temporary, dpi=150))
    Console(stderr=True, highlight=False).print(f"wrote {out}", soft_wrap=True)
