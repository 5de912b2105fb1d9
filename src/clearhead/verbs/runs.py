"""`clearhead runs`: the runs of a folder: what they are, how good, how large, and what they can be used with."""

from __future__ import annotations

import json as json_format
import math
import os
import shlex
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from stat import S_ISREG

from clearhead.config import Recipe, UserError, require
from clearhead.files import Metrics, is_number, is_there, read_metrics
from clearhead.recipes import load_recipe
from clearhead.tasks import TASKS
from clearhead.terminal.pipes import write_objects
from clearhead.verbs.options import JsonLines

WEIGHTS = "model.safetensors"
WIDEST = 1000  # characters: a terminal wraps what is longer than its lines, so that commands can be copied


@dataclass(frozen=True)
class RunSummary:
    """One run, as far as it is known without its weights."""

    folder: str
    task: str
    parameters: int  # 0: its training is not finished
    bytes: int  # on disk, checkpoints included
    score: str  # of the best evaluation, or the last training loss
    step: int
    steps: int
    date: str  # of the last change
    use: str  # the command that it can be used with, or the problem with it


def runs(folder: Path = Path("runs"), *, json: JsonLines = False) -> None:
    """List the runs of a folder: task, parameters, size, score, steps, date, and the verb to use each with.

    Parameters
    ----------
    folder
        The folder with the runs, or of one run.

    """
    require(folder.is_dir(), f"{folder} is not a folder; `clearhead train RECIPE` creates runs/")
    folders = [folder] if (folder / "run.toml").is_file() else sorted(filter(may_be_run, folder.iterdir()))
    found = [summary(path) for path in folders]
    if json:
        write_objects(asdict(each) for each in found)
        return
    require(bool(found), f"there is no run in {folder}; `clearhead train RECIPE` creates one")
    show(found)


def may_be_run(folder: Path) -> bool:
    """Return whether there is a run in a folder, or perhaps one that may not be seen."""
    try:
        return is_there(folder / "run.toml")
    except PermissionError:
        return True


def show(found: list[RunSummary]) -> None:
    """Print runs as a table."""
    from rich.console import JustifyMethod
    from rich.table import Table
    from rich.text import Text

    from clearhead.terminal.console import plain_console

    table = Table(box=None, pad_edge=False, header_style="dim")
    for title in ("run", "task", "parameters", "size", "score", "steps", "date", "use"):
        justify: JustifyMethod = "right" if title in ("parameters", "size", "steps") else "left"
        table.add_column(title, justify=justify, no_wrap=True)
    for each in found:
        parameters = f"{each.parameters:,}" if each.parameters else ""
        size = f"{each.bytes / 1e6:,.1f} MB"
        steps = f"{each.step:,}/{each.steps:,}"
        cells = (each.folder, each.task, parameters, size, each.score, steps, each.date, each.use)
        table.add_row(*map(Text, cells))
    plain_console(width=WIDEST).print(table)


def summary(run: Path) -> RunSummary:
    """Read what a run folder says; one that cannot be read is listed with the reason."""
    files = [stat for path in run.rglob("*") if (stat := stat_of_file(path))]
    size = sum(stat.st_size for stat in files)
    changed = max((stat.st_mtime for stat in files), default=0.0)
    date = datetime.fromtimestamp(changed).strftime("%Y-%m-%d %H:%M") if files else ""
    try:
        recipe = load_recipe(str(run / "run.toml"))
        rows = read_metrics(run)
        parameters = count_parameters(run / WEIGHTS)
    except UserError as error:
        return RunSummary(str(run), "", 0, size, "", 0, 0, date, str(error))
    except OSError as error:
        return RunSummary(str(run), "", 0, size, "", 0, 0, date, f"{error.filename} cannot be read: {error.strerror}")
    task = recipe.data.task
    quoted = shlex.quote(str(run))
    use = f"clearhead {TASKS[task].verbs[0]} {quoted}" if parameters else f"clearhead train --resume {quoted}"
    step = max((int(row["step"]) for row in rows), default=0)
    return RunSummary(str(run), task, parameters, size, best_score(recipe, rows), step, recipe.train.steps, date, use)


def stat_of_file(path: Path) -> os.stat_result | None:
    """Return size and times of a file; None for a folder, and for what is gone meanwhile or cannot be seen."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat if S_ISREG(stat.st_mode) else None


def best_score(recipe: Recipe, rows: list[Metrics]) -> str:
    """Return the best value of train.best_by, or the last training loss if the run was never evaluated."""
    by = recipe.train.best_by
    values = [row[by] for row in rows if row["kind"] == "valid" and is_number(row.get(by))]
    if values:
        return f"{by} {min(values) if by == 'loss' else max(values):.4g}"
    losses = [row["loss"] for row in rows if row["kind"] == "train" and is_number(row.get("loss"))]
    return f"training loss {losses[-1]:.4g}" if losses else ""


def count_parameters(weights: Path) -> int:
    """Count the parameters in a safetensors file by its header, without reading its tensors; 0 if there is no file."""
    if not weights.is_file():
        return 0
    try:
        with weights.open("rb") as file:
            size = int.from_bytes(file.read(8), "little")
            require(size <= weights.stat().st_size, f"{weights} is damaged; take it from a copy, or train again")
            header = json_format.loads(file.read(size))
        own = [each for name, each in header.items() if name != "__metadata__" and not name.endswith(".int8_scale")]
        return sum(math.prod(each["shape"]) for each in own)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{weights} is damaged; take it from a copy, or train again") from error
