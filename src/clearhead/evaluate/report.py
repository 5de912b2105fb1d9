"""Show results as a table in the terminal or as JSON; write them to an HTML page or an image."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from clearhead.evaluate.html_report import html_report
from clearhead.evaluate.image_report import image_report
from clearhead.evaluate.measures import class_f1
from clearhead.evaluate.results import Results
from clearhead.files import require_output, write_file
from clearhead.terminal.colour import visible
from clearhead.terminal.console import plain_console
from clearhead.terminal.pipes import write_objects

MOST_CLASSES = 12  # more of them do not fit into a terminal as a confusion matrix
SUFFIXES = (".html", ".png", ".svg", ".pdf")


def show(results: Results, as_json: bool) -> None:
    """Print results to stdout."""
    console = plain_console(soft_wrap=True)  # a signature must stay on one line so that it can be copied
    if as_json:
        write_objects([as_json_object(results)])
        return
    console.print(Text.assemble((results.run, "bold"), f": {results.about}"))
    values = [f"{score.value:,.2f}" for score in results.scores]
    widest = max(map(len, values))
    longest = max(len(score.name) for score in results.scores)
    for score, value in zip(results.scores, values, strict=True):
        number = (f"{value:>{widest}}  ", "bold cyan")
        console.print(Text.assemble(f"{score.name:{longest}}  ", number, (score.about, "dim")))
    if 0 < len(results.labels) <= MOST_CLASSES:
        console.print(confusion_table(results))
    for note in results.notes:
        console.print(Text(note, style="dim"))


def confusion_table(results: Results) -> Table:
    """The confusion matrix, with the F1 of each class."""
    table = Table(title="\nconfusion matrix", title_justify="left", title_style="bold", box=None)
    table.add_column("true \\ predicted")
    for name in (*results.labels, "F1"):
        table.add_column(visible(name), justify="right")
    for name, row, f1 in zip(results.labels, results.confusion, class_f1(results.confusion), strict=True):
        table.add_row(visible(name), *(f"{count:,}" for count in row), f"{100 * f1:.1f}")
    return table


def as_json_object(results: Results) -> dict[str, Any]:
    """The results as a JSON object, without the single cases."""
    found: dict[str, Any] = {
        "run": results.run,
        "task": results.task,
        "corpus": results.corpus,
        "split": results.split,
        "examples": results.examples,
        "scores": {score.key: rounded(score.value) for score in results.scores},
        "about": {score.key: score.about for score in results.scores},
        "notes": results.notes,
    }
    if results.labels:
        f1 = (rounded(100 * each) for each in class_f1(results.confusion))
        found |= {
            "labels": results.labels,
            "confusion": results.confusion,
            "f1": dict(zip(results.labels, f1, strict=True)),
        }
    return found


def rounded(value: float) -> float | None:
    """The value to six digits; None for inf and nan, which JSON does not have."""
    return round(value, 6) if math.isfinite(value) else None


def check_report(path: Path) -> None:
    """Raise a UserError if the report could not be written, before the evaluation starts."""
    require_output(path, "--report", SUFFIXES)


def write_report(results: Results, path: Path) -> None:
    """Write results to a file: a self-contained HTML page, or an image."""
    if path.suffix == ".html":
        write_file(path, html_report(results))
    else:
        figure = image_report(results)
        write_file(path, lambda temporary: figure.savefig(temporary, dpi=150))
    plain_console(stderr=True, soft_wrap=True).print(f"wrote {path}")
