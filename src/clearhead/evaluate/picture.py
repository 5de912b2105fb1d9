"""A report as a picture: scores, how they are spread or which class is taken for which, and some examples."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from clearhead.config import UserError
from clearhead.evaluate.exam import Case, Scores
from clearhead.terminal.colour import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOUR = "#0072B2"
SHOWN = 3  # examples, of the best and of the worst
WIDTH, LONGEST = 110, 220  # characters of a line, and of a text


def draw(scores: Scores) -> Figure:
    """Scores above, the distribution of the single examples or the confusion of classes beside, examples below."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UserError("pictures need matplotlib: pip install 'clearhead[watch]', or --report FILE.html") from error
    figure = Figure(figsize=(10, 9), layout="constrained")
    places = figure.subplot_mosaic([["scores", "spread"], ["examples", "examples"]], height_ratios=(1, 1.8))
    figure.suptitle(plain(f"{scores.run}: {scores.about}"), x=0.01, ha="left", fontsize=13)
    lines = [f"{score.value:>10,.2f}  {score.name}" for score in scores.scores]
    notes = [line for note in scores.notes for line in textwrap.wrap(note, 48)]
    write(places["scores"], [*lines, "", *notes], 10)
    if scores.labels:
        draw_confusion(places["spread"], scores)
    else:
        draw_spread(places["spread"], scores)
    write(places["examples"], example_lines(scores), 8)
    return figure


def write(place: Axes, lines: list[str], size: int) -> None:
    """Lines of text, with nothing around them."""
    place.axis("off")
    place.text(
        0, 1, "\n".join(map(plain, lines)), va="top", fontsize=size, family="monospace", transform=place.transAxes
    )


def draw_confusion(place: Axes, scores: Scores) -> None:
    """A square for each pair of classes, the darker the more of its row."""
    shares = [[count / max(1, sum(row)) for count in row] for row in scores.confusion]
    place.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    for i, row in enumerate(scores.confusion):
        for j, count in enumerate(row):
            place.text(j, i, f"{count:,}", ha="center", va="center", color="white" if shares[i][j] > 0.5 else "black")
    names = [plain(name) for name in scores.labels]
    place.set_xticks(range(len(names)), names, rotation=45, ha="right")
    place.set_yticks(range(len(names)), names)
    place.set_title("what each class was taken for", loc="left", fontsize=11)


def draw_spread(place: Axes, scores: Scores) -> None:
    """How many examples have which score."""
    place.hist([case.score for case in scores.cases.each], bins=20, color=COLOUR)
    place.set_title(f"examples by {plain(scores.cases.by)}", loc="left", fontsize=11)
    place.spines[["top", "right"]].set_visible(False)


def example_lines(scores: Scores) -> list[str]:
    """The worst and the best examples as lines of text."""
    lines = []
    for title, some in zip(("worst", "best"), scores.cases.extremes(SHOWN), strict=True):
        for case in some:
            lines += [f"{title}, {case.score:.3f}", *case_lines(case), ""]
    return lines


def case_lines(case: Case) -> list[str]:
    """One example, broken into lines that fit."""
    return [
        line
        for name, text in case.texts.items()
        for line in textwrap.wrap(f"{name:>10}  {visible(text)[:LONGEST]}", WIDTH, subsequent_indent=" " * 12)
    ]


def plain(text: str) -> str:
    """Text whose dollar signs are dollar signs: two of them would begin a formula."""
    return text.replace("$", r"\$")
