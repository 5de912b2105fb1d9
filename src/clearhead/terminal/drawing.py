"""Values drawn with characters, readable without colour, too: attention grids, sparklines, bars, tables, trees."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len, set_cell_size
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from clearhead.terminal.colour import visible

if TYPE_CHECKING:
    from torch import Tensor

SHADES = " ░▒▓█"
BARS = "▁▂▃▄▅▆▇█"
LABEL = 9  # characters for the token beside a row
GAP = 2  # characters between two grids


def spaced(token: str) -> str:
    """Return a token with its spaces made visible: " la" and "la" are different tokens."""
    return visible(token).replace(" ", "␣")


def label(token: str, size: int, spaces: bool = False) -> str:
    """Return a token in exactly `size` characters; without the space before a word, or with all `spaces` visible."""
    short = spaced(token) if spaces else visible(token).strip() or "␣"
    cut = short[: size - 1] + "…" if size > 4 else short[:size]
    return set_cell_size(short if len(short) <= size else cut, size)


def shade(weight: float) -> str:
    """Return a character that is darker for larger weights, from 0 to 1."""
    return SHADES[min(len(SHADES) - 1, math.ceil(weight * (len(SHADES) - 1) - 0.25))]


def colour(weight: float) -> str:
    """Return a colour from dark blue to pale yellow: distinct in greyscale, too, and with any colour blindness."""
    parts = (weight**1.5, 0.1 + 0.8 * weight, 0.25 + 0.6 * math.sin(2.6 * weight))
    return f"rgb({','.join(str(round(255 * part)) for part in parts)})"


def cell(weight: float, seen: bool, size: int) -> Text:
    """Return a weight: in 4 characters as a percentage and a shade, in fewer as a shade alone; a dot if it is masked.

    The shade has the colour of its background, so it shows only where there is no colour.
    """
    if not seen:
        return Text("  · " if size == 4 else " " * size, style="dim")
    background = colour(weight)
    number = f"{round(100 * weight):>3}" if size == 4 else ""
    shown = Text(number, style=f"{'black' if weight > 0.5 else 'white'} on {background}")
    return shown.append(shade(weight) * (size - len(number)), style=f"{background} on {background}")


def grid(
    title: str,
    weights: Tensor,
    mask: Tensor,
    rows: Sequence[str],
    columns: Sequence[str],
    sizes: tuple[int, int],  # characters for the token beside a row, and for one weight
) -> list[Text]:
    """Return attention weights (T, S) as lines, a row per query and a column per key; a dot where the mask is False."""
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
    """Return the characters for one weight: 4 for a number and a shade if they fit, else 2 or 1 for a shade."""
    return next((size for size in (4, 2) if size * keys <= width), 1)


def side_by_side(grids: Sequence[list[Text]], width: int) -> Iterator[Text]:
    """Yield the lines of grids of one size, as many grids beside each other as fit into the width."""
    across = max(1, (width + GAP) // (max(len(line.plain) for line in grids[0]) + GAP))
    for first in range(0, len(grids), across):
        for lines in zip(*grids[first : first + across], strict=True):
            yield Text(" " * GAP).join(lines)
        yield Text("")


def sparkline(values: Tensor, low: float, high: float) -> Text:
    """Return values between low and high as a row of small columns."""
    places = ((values - low) / max(high - low, 1e-9) * (len(BARS) - 1)).round().int().tolist()
    return Text("".join(BARS[place] for place in places), style="cyan")


def bar(part: float, width: int) -> Text:
    """Return a bar that fills this part, from 0 to 1, of a width in characters."""
    return Text(("█" * round(part * width)).ljust(width), style="green")


def shape(tensor: Tensor) -> str:
    """Return the shape of a tensor as text: [1, 7, 128]."""
    return str(list(tensor.shape))


def shapes(*stages: str) -> Text:
    """Return names and shapes with arrows between them: x [1, 7, 128] → queries [1, 4, 7, 32]."""
    arrows = Text("  ")
    for number, stage in enumerate(stages):
        name, _, size = stage.partition(" [")
        arrows.append(" → " if number else "", style="dim").append(name).append(f" [{size}", style="bold")
    return arrows


def indented(what: RenderableType, above: int = 0) -> RenderableType:
    """Return something indented by two characters, with empty lines above it."""
    return Padding(what, (above, 0, 0, 2), expand=False)


def plain_table(first: str, *others: str) -> Table:
    """Return an empty table without lines; all columns but the first hold numbers."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column(first, no_wrap=True)
    for title in others:
        table.add_column(title, no_wrap=True, justify="right")
    return table


def wrapped(columns: Sequence[Sequence[str]], width: int) -> Iterator[list[list[str]]]:
    """Yield columns of cells, each padded to its widest cell, in groups that fit into a width."""
    group: list[list[str]] = []
    left = width
    for column in columns:
        size = max(map(cell_len, column)) + 2
        if group and size > left:
            yield group
            group = []
            left = width
        group.append([" " * (size - cell_len(cell)) + cell for cell in column])
        left -= size
    yield group


def search_tree(root: str, nodes: list[dict[str, Any]], deepest: int) -> Tree:
    """Return all prefixes that a search kept, as a tree.

    A leaf is marked ✗ if it was pruned, … if it continues below what is drawn, and with its rank if it is complete.
    """
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
            text = Text(spaced(words[0]) + visible("".join(words[1:])), style="dim" if leaf == " ✗" else "")
            grow(tree.add(text.append(f" {node['total']:z.2f}", style="cyan").append(leaf, style="bold")), number)

    tree = Tree(Text(root))
    grow(tree, -1)
    return tree
