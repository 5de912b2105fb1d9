"""Curves in the terminal: dots of Braille, two across and four down in each character."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.text import Text

COLOURS = ("bright_blue", "bright_yellow", "bright_magenta", "bright_green", "bright_red", "bright_cyan")
DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # the bit of each dot, by row and column
BRAILLE = 0x2800
MOST = 100  # characters from left to right


class Curve(NamedTuple):
    """Named points, from left to right."""

    name: str
    xs: Sequence[float]
    ys: Sequence[float]


def draw(curves: Sequence[Curve], across: str, room: int = 80, height: int = 14) -> Text:
    """The curves between axes in so many columns, with their names above and what runs across below."""
    left, right = min(c.xs[0] for c in curves), max(c.xs[-1] for c in curves)
    low, high = min(min(c.ys) for c in curves), max(max(c.ys) for c in curves)
    labels = {0: f"{high:.3g}", height // 2: f"{high - (high - low) * (height // 2) / (height - 1):.3g}"}
    labels[height - 1] = f"{low:.3g}"
    margin = max(map(len, labels.values()))
    width = max(20, min(MOST, room - margin - 3))
    bits, colours = [[0] * width for _ in range(height)], [[""] * width for _ in range(height)]
    for curve, colour in zip(curves, COLOURS * len(curves), strict=False):
        for x, y in dots(curve, (left, right), (low, high), 2 * width, 4 * height):
            bits[y // 4][x // 2] |= DOTS[y % 4][x % 2]
            colours[y // 4][x // 2] = colour
    shown = Text(" " * (margin + 2))
    for curve, colour in zip(curves, COLOURS * len(curves), strict=False):
        shown.append("━━ ", style=colour).append(f"{curve.name}  ")
    for row in range(height):
        shown.append(f"\n{labels.get(row, ''):>{margin}} │", style="dim")
        for bit, colour in zip(bits[row], colours[row], strict=True):
            shown.append(chr(BRAILLE + bit) if bit else " ", style=colour)
    begin, end = f"{left:,.0f}", f"{right:,.0f}"
    shown.append(f"\n{' ' * margin} └{'─' * width}\n", style="dim")
    shown.append(f"{' ' * (margin + 2)}{begin}{across:^{width - len(begin) - len(end)}}{end}", style="dim")
    return shown


def dots(
    curve: Curve, across: tuple[float, float], up: tuple[float, float], columns: int, rows: int
) -> list[tuple[int, int]]:
    """The dots (column, row from above) of a curve, without gaps: each column's mean, joined to the one before."""
    held: dict[int, list[float]] = {}
    for x, y in zip(curve.xs, curve.ys, strict=True):
        held.setdefault(place(x, across, columns), []).append(y)
    means = {column: rows - 1 - place(sum(ys) / len(ys), up, rows) for column, ys in sorted(held.items())}
    found: list[tuple[int, int]] = []
    before, at = next(iter(means.items()))
    for column, row in means.items():
        for x in range(before, column + 1):
            y = at + round((row - at) * (x - before) / max(1, column - before))
            last = found[-1][1] if found else y
            found += [(x, between) for between in range(min(last, y), max(last, y) + 1)]
            found.append((x, y))
        before, at = column, row
    return found


def place(value: float, within: tuple[float, float], places: int) -> int:
    """Which of so many places a value falls into; in the middle where there is but one value."""
    low, high = within
    return round((value - low) / (high - low) * (places - 1)) if high > low else places // 2
