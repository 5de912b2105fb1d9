"""Line charts in the terminal, drawn with Braille characters: each has two dots across and four down."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.text import Text

COLOURS = ("bright_blue", "bright_yellow", "bright_magenta", "bright_green", "bright_red", "bright_cyan")
DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # the bit of each dot, by row and column
BRAILLE = 0x2800  # the character without dots
MOST_COLUMNS = 100  # characters across


class Curve(NamedTuple):
    """A named series of points, from left to right."""

    name: str
    xs: Sequence[float]
    ys: Sequence[float]


class Range(NamedTuple):
    """The smallest and the largest value on an axis."""

    low: float
    high: float

    def place(self, value: float, places: int) -> int:
        """Return which of `places` equal places along the axis a value falls into; the middle one if low is high."""
        if self.high <= self.low:
            return places // 2
        return round((value - self.low) / (self.high - self.low) * (places - 1))


def draw(curves: Sequence[Curve], x_label: str, columns: int = 80, rows: int = 14) -> Text:
    """Return the curves between axes, at most `columns` characters wide, with their names above."""
    x_range = Range(min(c.xs[0] for c in curves), max(c.xs[-1] for c in curves))
    y_range = Range(min(min(c.ys) for c in curves), max(max(c.ys) for c in curves))
    middle = y_range.high - (y_range.high - y_range.low) * (rows // 2) / (rows - 1)
    labels = {0: f"{y_range.high:.3g}", rows // 2: f"{middle:.3g}", rows - 1: f"{y_range.low:.3g}"}
    margin = max(map(len, labels.values()))
    width = max(20, min(MOST_COLUMNS, columns - margin - 3))
    shown = Text(" " * (margin + 2))
    for curve, colour in zip(curves, COLOURS * len(curves), strict=False):
        shown.append("━━ ", style=colour).append(f"{curve.name}  ")
    for row, cells in enumerate(draw_cells(curves, x_range, y_range, width, rows)):
        shown.append(f"\n{labels.get(row, ''):>{margin}} │", style="dim")
        for bits, colour in cells:
            shown.append(chr(BRAILLE + bits) if bits else " ", style=colour)
    first = f"{x_range.low:,.0f}"
    last = f"{x_range.high:,.0f}"
    shown.append(f"\n{' ' * margin} └{'─' * width}\n", style="dim")
    shown.append(f"{' ' * (margin + 2)}{first}{x_label:^{width - len(first) - len(last)}}{last}", style="dim")
    return shown


def draw_cells(
    curves: Sequence[Curve], x_range: Range, y_range: Range, width: int, height: int
) -> list[list[tuple[int, str]]]:
    """Return the dots and the colour of each character, row by row; the last curve colours a crossing."""
    cells = [[(0, "")] * width for _ in range(height)]
    for curve, colour in zip(curves, COLOURS * len(curves), strict=False):
        for x, y in dots(curve, x_range, y_range, 2 * width, 4 * height):
            bits, _ = cells[y // 4][x // 2]
            cells[y // 4][x // 2] = (bits | DOTS[y % 4][x % 2], colour)
    return cells


def dots(curve: Curve, x_range: Range, y_range: Range, columns: int, rows: int) -> list[tuple[int, int]]:
    """Return the dots (column, row from above) of a curve: the mean of each column, joined to the one before."""
    values: dict[int, list[float]] = {}
    for x, y in zip(curve.xs, curve.ys, strict=True):
        values.setdefault(x_range.place(x, columns), []).append(y)
    means = {column: rows - 1 - y_range.place(sum(ys) / len(ys), rows) for column, ys in sorted(values.items())}
    found: list[tuple[int, int]] = []
    last_column, last_row = next(iter(means.items()))
    for column, row in means.items():
        for x in range(last_column, column + 1):
            y = last_row + round((row - last_row) * (x - last_column) / max(1, column - last_column))
            before = found[-1][1] if found else y
            found += [(x, between) for between in range(min(before, y), max(before, y) + 1)]
            found.append((x, y))
        last_column, last_row = column, row
    return found
