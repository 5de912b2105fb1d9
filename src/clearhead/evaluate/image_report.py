"""Results as an image: scores, a histogram of them or the confusion matrix, and some examples."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from clearhead.config import UserError
from clearhead.evaluate.results import Case, Results
from clearhead.terminal.colour import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOUR = "#0072B2"
EXTREMES = 3  # best and worst examples shown, of each
LINE_CHARACTERS = 110  # characters of a line
SHOWN_CHARACTERS = 220  # characters shown of a text


def image_report(results: Results) -> Figure:
    """Scores at the top left, a histogram of the cases or the confusion matrix beside them, examples below."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UserError("images need matplotlib: pip install 'clearhead[watch]', or --report FILE.html") from error
    figure = Figure(figsize=(10, 9), layout="constrained")
    panels = figure.subplot_mosaic([["scores", "chart"], ["examples", "examples"]], height_ratios=(1, 1.8))
    figure.suptitle(escape_dollars(f"{results.run}: {results.about}"), x=0.01, ha="left", fontsize=13)
    lines = [f"{score.value:>10,.2f}  {score.name}" for score in results.scores]
    notes = [line for note in results.notes for line in textwrap.wrap(note, 48)]
    write(panels["scores"], [*lines, "", *notes], 10)
    if results.labels:
        draw_confusion(panels["chart"], results)
    else:
        draw_histogram(panels["chart"], results)
    write(panels["examples"], example_lines(results), 8)
    return figure


def write(axes: Axes, lines: list[str], size: int) -> None:
    """Write lines of text into axes without ticks or frame."""
    axes.axis("off")
    text = "\n".join(map(escape_dollars, lines))
    axes.text(0, 1, text, va="top", fontsize=size, family="monospace", transform=axes.transAxes)


def draw_confusion(axes: Axes, results: Results) -> None:
    """Draw the confusion matrix; the darker a cell, the larger its share of the row."""
    shares = [[count / max(1, sum(row)) for count in row] for row in results.confusion]
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    for i, row in enumerate(results.confusion):
        for j, count in enumerate(row):
            axes.text(j, i, f"{count:,}", ha="center", va="center", color="white" if shares[i][j] > 0.5 else "black")
    names = [escape_dollars(name) for name in results.labels]
    axes.set_xticks(range(len(names)), names, rotation=45, ha="right")
    axes.set_yticks(range(len(names)), names)
    axes.set_title("confusion matrix (rows: true class, columns: predicted)", loc="left", fontsize=11)


def draw_histogram(axes: Axes, results: Results) -> None:
    """Draw a histogram of the scores of single examples."""
    axes.hist([case.score for case in results.cases.each], bins=20, color=COLOUR)
    axes.set_title(f"examples by {escape_dollars(results.cases.by)}", loc="left", fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)


def example_lines(results: Results) -> list[str]:
    """The worst and the best examples as lines of text."""
    lines = []
    for title, some in zip(("worst", "best"), results.cases.extremes(EXTREMES), strict=True):
        for case in some:
            lines += [f"{title}, {case.score:.3f}", *case_lines(case), ""]
    return lines


def case_lines(case: Case) -> list[str]:
    """One example, wrapped into lines."""
    return [
        line
        for name, text in case.texts.items()
        for line in textwrap.wrap(
            f"{name:>10}  {visible(text)[:SHOWN_CHARACTERS]}", LINE_CHARACTERS, subsequent_indent=" " * 12
        )
    ]


def escape_dollars(text: str) -> str:
    """The text with its dollar signs escaped: matplotlib would read a pair of them as a formula."""
    return text.replace("$", r"\$")
