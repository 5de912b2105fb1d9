"""The card of a run: a README.md beside its weights that says what it is, what it has reached and how to use it."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from clearhead import __version__
from clearhead.config import Recipe
from clearhead.files import read_metrics, write_file
from clearhead.tasks import TASKS

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
    """Write the card of a run of so many parameters that has ended after so many steps."""
    model, data = recipe.model, recipe.data
    at, figures = judged(recipe, run)
    which = f"the weights are those of the best evaluation, by {recipe.train.best_by}, after step {at:,}"
    averages = {"none": "the weights are the last", "ema": "the weights are a running average"}
    averages["last"] = f"the weights are the mean of those of the last {recipe.train.average_last} evaluations"
    rows = {
        "task": data.task,
        "data": data.corpus or Path(data.path).name,
        "model": f"{model.family}, {model.layers} blocks of width {model.d_model}, {model.vocab:,} tokens, "
        f"{size:,} parameters",
        "training": f"{step:,} steps; {which if recipe.train.keep == 'best' else averages[recipe.train.average]}",
        "validation": ", ".join(f"{name} {value:.4g}" for name, value in figures.items()) or "none yet",
        "written": f"{date.today()} by clearhead {__version__}",
    }
    text = CARD.format(
        name=recipe.name,
        about=recipe.about or "A model trained by clearhead.",
        rows="\n".join(f"| {name} | {value} |" for name, value in rows.items()),
        commands="\n".join((*TASKS[data.task].commands, "clearhead evaluate . --split valid")),
    )
    write_file(run / "README.md", text)


def judged(recipe: Recipe, run: Path) -> tuple[int, dict[str, float]]:
    """The step and the scores of the evaluation whose weights are kept: the best, or the last there was."""
    valid = [row for row in read_metrics(run) if row.pop("kind") == "valid" and None not in row.values()]
    by, sign = recipe.train.best_by, -1 if recipe.train.best_by == "loss" else 1
    if recipe.train.keep == "best":
        valid.sort(key=lambda line: sign * line[by], reverse=True)  # of equal ones the first stays the first
    if not valid:
        return 0, {}
    chosen = valid[0 if recipe.train.keep == "best" else -1]
    return chosen.pop("step"), chosen
