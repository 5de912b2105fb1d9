"""`clearhead train`: a recipe becomes a run folder."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

from clearhead.config import Recipe, UserError, require
from clearhead.recipes import load_recipe, recipe_names
from clearhead.verbs.options import Flag, NewRunFolder


def train(
    recipe: str | None = None,
    *overrides: str,
    run: NewRunFolder | None = None,
    resume: Flag = False,
    dry_run: Flag = False,
    plot_schedule: Flag = False,
    out: Path | None = None,
) -> None:
    """Train a recipe into a run folder; Ctrl-C saves, --resume continues as if it had never stopped.

    Parameters
    ----------
    recipe
        The name of a recipe, or the path of a .toml file; with --resume also the folder of a run. Without one, the
        recipes that come with clearhead are listed.
    overrides
        Changes to its settings: train.steps=500 model.layers=2
    run
        The folder to train into, which must be empty or missing; by default runs/ and the name of the recipe.
    resume
        Continue a run that was stopped: of this recipe, or the one in this folder. The weights are the same to the last
        bit if the number of threads is (OMP_NUM_THREADS).
    dry_run
        Show the data, a batch as text, the model, its memory and time, take a few steps; only data.cache is written.
    plot_schedule
        Plot the learning rate over the steps instead of training.
    out
        With --plot-schedule: write the picture to this .png, .svg or .pdf file.

    """
    if recipe is None:
        options = run or resume or dry_run or plot_schedule or out
        require(not options, "which recipe? Without options, `clearhead train` lists them")
        list_recipes()
        return
    is_run = (Path(recipe) / "run.toml").is_file()  # then it is that run, even if a recipe has the same name
    if resume and run is None and (is_run or (recipe not in recipe_names() and Path(recipe).suffix != ".toml")):
        run = Path(recipe)
        require(is_run, f"--resume {recipe}: there is no run in this folder (no run.toml)")
        recipe = str(run / "run.toml")
    loaded = load_recipe(recipe, overrides)
    if out and not plot_schedule:
        raise UserError(f"--out {out} is for the picture of --plot-schedule; the folder to train into is --run")
    if plot_schedule:
        from clearhead.train.watching.plot import plot_schedule as plot

        plot(loaded, out)
    elif dry_run:
        from clearhead.train.watching.dry_run import dry_run as start_dry_run

        start_dry_run(loaded)
    elif stopped := train_recipe(loaded, run or default_folder(loaded), resume):
        sys.exit(128 + stopped)


def default_folder(recipe: Recipe) -> Path:
    """Return the folder in runs/ that has the name of a recipe, which must be the name of a folder, not a path."""
    name = recipe.name
    require(
        name not in ("", "..") and name == Path(name).name and name.isprintable(),
        f"name = {name!r} in the recipe cannot name a folder in runs/; change it, or choose a folder with --run DIR",
    )
    return Path("runs") / name


def train_recipe(recipe: Recipe, run: Path, resume: bool) -> int:
    """Train a recipe into a run folder; return the signal that stopped it, or 0.

    Python's garbage collector would examine all objects of torch several times while torch is imported, and again
    whenever many other objects have been created: 1 s until the first step. They are never garbage, so it leaves them
    out.
    """
    gc.disable()
    try:
        from clearhead.train.run import train as train_run

        gc.freeze()
    finally:
        gc.enable()
    try:
        return train_run(recipe, run, resume)
    finally:
        gc.unfreeze()


def list_recipes() -> None:
    """Print the recipes that come with clearhead; first those that need neither data nor another run."""
    from rich.table import Table

    from clearhead.terminal.console import plain_console

    table = Table(box=None, pad_edge=False, header_style="dim")
    for title in ("recipe", "needs", "about"):
        table.add_column(title, no_wrap=title != "about")
    recipes = [(needs(recipe), recipe) for recipe in map(load_recipe, recipe_names())]
    for what, recipe in sorted(recipes, key=lambda each: bool(each[0])):
        table.add_row(recipe.name, what or "nothing", recipe.about)
    console = plain_console()
    console.print(table)
    console.print("\nclearhead train RECIPE trains one; data.path=... on your own files. --dry-run shows it first.")


def needs(recipe: Recipe) -> str:
    """The folders that a recipe reads, one a line: its data, and the run that it starts from."""
    return "\n".join(filter(None, ("" if recipe.data.corpus else recipe.data.path, recipe.train.init)))
