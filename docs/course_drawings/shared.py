"""What the pictures of the course share: sentences, and matrices as pictures and as text."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

CAR = "the car is red"
MAT = "there is a cat on the mat"
Result = tuple[Figure, str]


def grid(axis: Axes, values: Tensor, rows: Sequence[str], columns: Sequence[str], title: str = "") -> None:
    """A matrix with its numbers in percent and its tokens at the edges."""
    axis.imshow(values, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    axis.set_xticks(range(len(columns)), columns, rotation=60, ha="right", fontsize=8)
    axis.set_yticks(range(len(rows)), rows, fontsize=8)
    axis.set_title(title, fontsize=9)
    for row, line in enumerate(values.tolist()):
        for column, value in enumerate(line):
            axis.text(column, row, f"{100 * value:.0f}", ha="center", va="center", fontsize=6.5,
                      color="white" if value > 0.6 else "#333333")  # fmt: skip


def text_grid(values: Tensor, rows: Sequence[str], columns: Sequence[str], digits: int = 2) -> str:
    """A matrix as text."""
    width = max(len(name) for name in [*columns, "-00.00"]) + 1
    left = max(len(name) for name in rows)
    lines = [" " * left + "".join(name.rjust(width) for name in columns)]
    for name, line in zip(rows, values.tolist(), strict=True):
        lines.append(name.ljust(left) + "".join(f"{value:{width}.{digits}f}" for value in line))
    return "\n".join(lines)


def names(tokens: Sequence[str]) -> list[str]:
    """Tokens without the space before them."""
    return [token.strip() or token for token in tokens]
