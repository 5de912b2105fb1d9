"""Numbers as pictures of characters: readable without colour, and better with it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from rich.cells import cell_len, set_cell_size
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from rich.tree import Tree
from torch import Tensor

from clearhead.terminal.colour import visible

SHADES = " ░▒▓█"
STEPS = "▁▂▃▄▅▆▇█"
LABEL = 9  # characters of a token in front of its row
GAP = 2  # characters between two grids


def label(token: str, size: int) -> str:
    """A token in exactly so many characters, the space before a word left out."""
    short = visible(token).strip() or "␣"
    cut = short[: size - 1] + "…" if size > 4 else short[:size]
    return set_cell_size(short if len(short) <= size else cut, size)


def shade(weight: float) -> str:
    """A character that is the darker, the larger the weight."""
    return SHADES[min(len(SHADES) - 1, math.ceil(weight * (len(SHADES) - 1) - 0.25))]


def colour(weight: float) -> str:
    """From dark blue to pale yellow: told apart in grey as well, and by those who see no red or no green."""
    parts = (weight**1.5, 0.1 + 0.8 * weight, 0.25 + 0.6 * math.sin(2.6 * weight))
    return f"rgb({','.join(str(round(255 * part)) for part in parts)})"


def cell(weight: float, seen: bool, size: int) -> Text:
    """A weight in 4 characters as a number of hundredths and a shade, in fewer as a shade alone.

    Where there is colour, it is the background, and the shade has the same and cannot be told from it.
    """
    if not seen:
        return Text("  · " if size == 4 else " " * size, style="dim")
    ground = colour(weight)
    number = f"{round(100 * weight):>3}" if size == 4 else ""
    shown = Text(number, style=f"{'black' if weight > 0.5 else 'white'} on {ground}")
    return shown.append(shade(weight) * (size - len(number)), style=f"{ground} on {ground}")


def grid(
    title: str,
    weights: Tensor,
    mask: Tensor,
    rows: Sequence[str],
    columns: Sequence[str],
    sizes: tuple[int, int],  # characters for the token beside a row, and for one weight
) -> list[Text]:
    """Attention weights (T, S) as lines: a row for each query, a column for each key; a dot where it may not look."""
    beside, size = sizes
    names = "".join(f"{label(column, 3).strip():>3} " if size == 4 else " " * size for column in columns)
    lines = [Text.assemble((label(title, beside), "bold"), (names, "dim"))]
    for token, weight_row, mask_row in zip(rows, weights.tolist(), mask.tolist(), strict=True):
        line = Text(label(token, beside - 1) + " ")
        for weight, seen in zip(weight_row, mask_row, strict=True):
            line += cell(weight, bool(seen), size)
        lines.append(line)
    return lines


def cell_size(keys: int, width: int) -> int:
    """Characters for one weight: with a number where there is room, else a shade of two characters, or of one."""
    return next((size for size in (4, 2) if size * keys <= width), 1)


def side_by_side(grids: Sequence[list[Text]], width: int) -> Iterator[Text]:
    """Grids of one size beside each other, as many as fit."""
    across = max(1, (width + GAP) // (max(len(line.plain) for line in grids[0]) + GAP))
    for first in range(0, len(grids), across):
        for lines in zip(*grids[first : first + across], strict=True):
            yield Text(" " * GAP).join(lines)
        yield Text("")


def strip(values: Tensor, low: float, high: float) -> Text:
    """Numbers as a row of steps from the lowest to the highest."""
    places = ((values - low) / max(high - low, 1e-9) * (len(STEPS) - 1)).round().int().tolist()
    return Text("".join(STEPS[place] for place in places), style="cyan")


def bar(part: float, width: int) -> Text:
    """A bar of up to so many characters."""
    return Text(("█" * round(part * width)).ljust(width), style="green")


def shape(tensor: Tensor) -> str:
    """A shape as the walk writes it."""
    return str(list(tensor.shape))


def shapes(*steps: str) -> Text:
    """Names and shapes with arrows between them, as in: x [1, 7, 128] → queries [1, 4, 7, 32]."""
    arrows = Text("  ")
    for number, step in enumerate(steps):
        name, _, size = step.partition(" [")
        arrows.append(" → " if number else "", style="dim").append(name).append(f" [{size}", style="bold")
    return arrows


def indented(what: RenderableType, above: int = 0) -> RenderableType:
    """Something two characters from the left, with empty lines above it."""
    return Padding(what, (above, 0, 0, 2), expand=False)


def plain_table(first: str, *others: str) -> Table:
    """A table without lines; all columns but the first are numbers."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column(first, no_wrap=True)
    for title in others:
        table.add_column(title, no_wrap=True, justify="right")
    return table


def wrapped(columns: Sequence[Sequence[str]], width: int) -> Iterator[list[list[str]]]:
    """Columns of cells, each padded to its widest, in groups that fit into a width."""
    group: list[list[str]] = []
    room = width
    for column in columns:
        size = max(map(cell_len, column)) + 2
        if group and size > room:
            yield group
            group, room = [], width
        group.append([" " * (size - cell_len(cell)) + cell for cell in column])
        room -= size
    yield group


def search_tree(root: str, nodes: list[dict[str, Any]], deepest: int) -> Tree:
    """The tree of all beginnings that a search held: ✗ given up, … goes on below what is drawn, a number: complete."""
    children: dict[int, list[int]] = {}
    for number, node in enumerate(nodes):
        children.setdefault(node["parent"], []).append(number)

    def grow(tree: Tree, above: int) -> None:
        for number in sorted(children.get(above, []), key=lambda n: -nodes[n]["total"]):
            words = [nodes[number]["word"]]
            while len(children.get(number, [])) == 1 and nodes[number]["rank"] < 0:
                [number] = children[number]
                words.append(nodes[number]["word"])
            node = nodes[number]
            end = f" {node['rank'] + 1}." if node["rank"] >= 0 else " …" if node["depth"] == deepest else " ✗"
            leaf = "" if number in children else end
            text = Text(visible("".join(words)).strip(), style="dim" if leaf == " ✗" else "")
            grow(tree.add(text.append(f" {node['total']:z.2f}", style="cyan").append(leaf, style="bold")), number)

    tree = Tree(Text(root))
    grow(tree, -1)
    return tree
