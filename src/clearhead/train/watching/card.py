"""The model card: a README.md in the run folder with what the model is, its scores, and how to use it."""

from __future__ import annotations

import shlex
from datetime import date
from pathlib import Path

from clearhead import __version__
from clearhead.config import Recipe
from clearhead.files import is_number, read_metrics, write_file
from clearhead.tasks import TASKS
from clearhead.terminal.program import program_name

CARD = """# {name}

{about}

| | |
|---|---|
{rows}

In this folder:

```
{commands}
```

Every setting is in `run.toml`, every step of the training in `metrics.jsonl`.
"""


def write_card(recipe: Recipe, run: Path, size: int, step: int) -> None:
    """Write the card of a model of `size` parameters that was trained for `step` steps."""
    model = recipe.model
    data = recipe.data
    best_step, scores = final_scores(recipe, run)
    best = f"the weights are those of the best evaluation, by {recipe.train.best_by}, after step {best_step:,}"
    averages = {"none": "the weights are the last", "ema": "the weights are a moving average"}
    averages["last"] = f"the weights are the mean of those of the last {recipe.train.average_last} evaluations"
    rows = {
        "task": data.task,
        "data": data.corpus or Path(data.path).name,
        "model": f"{model.family}, {model.layers} blocks of width {model.d_model}, {model.vocab:,} tokens, "
        f"{size:,} parameters",
        "training": f"{step:,} steps; {best if recipe.train.keep == 'best' else averages[recipe.train.average]}",
        "validation": ", ".join(f"{name} {value:.4g}" for name, value in scores.items()) or "none yet",
        "written": f"{date.today()} by clearhead {__version__}",
    }
    found_from_here = data.corpus or Path(data.path).is_absolute()
    evaluating = ["clearhead evaluate . --split valid"] if scores and found_from_here else []
    text = CARD.format(
        name=recipe.name,
        about=recipe.about or "A model trained by clearhead.",
        rows="\n".join(f"| {name} | {value} |" for name, value in rows.items()),
        commands="\n".join((*TASKS[data.task].commands, *evaluating)),
    )
    write_file(run / "README.md", text)


def next_command(recipe: Recipe, run: Path) -> str:
    """The command to use a run with, the first one of its card."""
    folder = shlex.quote(str(run))
    command = TASKS[recipe.data.task].commands[0].replace(" .", f" {folder}", 1).replace("=.", f"={folder}", 1)
    return command.replace("clearhead", program_name(), 1)


def resume_command(run: Path) -> str:
    """The command that continues a run."""
    return f"{program_name()} train --resume {shlex.quote(str(run))}"


def final_scores(recipe: Recipe, run: Path) -> tuple[int, dict[str, float]]:
    """The step and the scores of the evaluation that the final weights belong to: the best one, or the last one."""
    valid = [row for row in read_metrics(run) if row.pop("kind") == "valid" and all(map(is_number, row.values()))]
    if not valid:
        return 0, {}
    chosen = valid[-1]
    if recipe.train.keep == "best":
        by = recipe.train.best_by
        best = min if by == "loss" else max
        chosen = best(valid, key=lambda row: row[by])  # the first one, if several are equal
    return chosen.pop("step"), chosen
