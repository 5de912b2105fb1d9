"""`clearhead evaluate`: scores as a table in the terminal, as JSON, as a page or a picture."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from clearhead.config import UserError, require
from clearhead.evaluate.exam import Scores
from clearhead.evaluate.measures import class_f1
from clearhead.evaluate.page import page
from clearhead.evaluate.picture import draw
from clearhead.terminal.colour import visible

MOST_CLASSES = 12  # whose confusion fits into a terminal
KINDS = (".html", ".png", ".svg", ".pdf")


def show(scores: Scores, as_json: bool) -> None:
    """Write scores to stdout."""
    console = Console(highlight=False, soft_wrap=True)  # a signature that is cut in two cannot be copied
    if as_json:
        console.out(json.dumps(as_object(scores), ensure_ascii=False), highlight=False)
        return
    console.print(f"[bold]{escape(scores.run)}[/]: {escape(scores.about)}")
    values = [f"{score.value:,.2f}" for score in scores.scores]
    widest, longest = max(map(len, values)), max(len(score.name) for score in scores.scores)
    for score, value in zip(scores.scores, values, strict=True):
        name, number = f"{score.name:{longest}}  ", f"{value:>{widest}}  "
        console.print(Text.assemble(name, (number, "bold cyan"), (score.about, "dim")))
    if 0 < len(scores.labels) <= MOST_CLASSES:
        console.print(confusion_table(scores))
    for note in scores.notes:
        console.print(Text(note, style="dim"))


def confusion_table(scores: Scores) -> Table:
    """Each class, what it was taken for, and its F1."""
    table = Table(title="\nwhat each class was taken for", title_justify="left", title_style="bold", box=None)
    table.add_column("")
    for name in (*scores.labels, "F1"):
        table.add_column(visible(name), justify="right")
    for name, row, f1 in zip(scores.labels, scores.confusion, class_f1(scores.confusion), strict=True):
        table.add_row(visible(name), *(f"{count:,}" for count in row), f"{100 * f1:.1f}")
    return table


def as_object(scores: Scores) -> dict[str, Any]:
    """All numbers for programs."""
    found: dict[str, Any] = {
        "run": scores.run,
        "task": scores.task,
        "corpus": scores.corpus,
        "split": scores.split,
        "examples": scores.examples,
        "scores": {score.key: rounded(score.value) for score in scores.scores},
        "about": {score.key: score.about for score in scores.scores},
        "notes": scores.notes,
    }
    if scores.labels:
        f1 = (rounded(100 * each) for each in class_f1(scores.confusion))
        found |= {
            "labels": scores.labels,
            "confusion": scores.confusion,
            "f1": dict(zip(scores.labels, f1, strict=True)),
        }
    return found


def rounded(value: float) -> float | None:
    """A number without the noise of its last digits; what is none (inf, nan) becomes null: JSON has no word for it."""
    return round(value, 6) if math.isfinite(value) else None


def check_report(path: Path) -> None:
    """Refuse a report that cannot be written, before the work is done."""
    require(path.suffix in KINDS, f"--report {path}: the name must end with one of {', '.join(KINDS)}")
    require(path.parent.is_dir(), f"--report {path}: there is no folder {path.parent}; make it first")


def write_report(scores: Scores, path: Path) -> None:
    """A page that needs nothing else, or a picture."""
    try:
        if path.suffix == ".html":
            path.write_text(page(scores), encoding="utf8")
        else:
            draw(scores).savefig(path, dpi=150)
    except OSError as error:
        raise UserError(f"--report {path}: {error.strerror}") from error
    Console(stderr=True, highlight=False).print(f"wrote {path}", soft_wrap=True, markup=False)
