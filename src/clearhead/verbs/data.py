"""`clearhead data`: which corpora there are, and what one of them contains."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from clearhead.config import Recipe, UserError, require, suggest
from clearhead.recipes import build, load_recipe, override, recipe_names
from clearhead.tasks import TASKS, task_of
from clearhead.terminal.console import plain_console

PLAIN: dict[str, Any] = {
    "box": None,
    "show_header": False,
    "title_justify": "left",
    "title_style": "bold",
    "pad_edge": False,
}


def data(name: str = "", *overrides: str, samples: int = 5) -> None:
    """List the corpora, or show one: sizes, vocabulary, lengths, and samples with their tokens in colour.

    Parameters
    ----------
    name
        A built-in corpus, a recipe, hf:NAME for a Hugging Face data set, or your own file or folder.
    overrides
        Settings of the data and of the tokenizer: data.source=en data.target=de tokenizer.vocab=4000
    samples
        How many examples to show.

    """
    if not name:
        list_corpora()
        return
    from clearhead.data.summary import show_corpus

    show_corpus(settings_of(name, overrides), samples)


def list_corpora() -> None:
    """Print the built-in corpora, and the recipes that read other data."""
    from clearhead.corpora.catalogue import CORPORA

    console = plain_console()
    table = Table(title="built-in corpora: generated from a seed, no network needed", **PLAIN)
    for corpus in CORPORA.values():
        table.add_row(Text(corpus.name, style="bold cyan"), corpus.task, corpus.about)
    console.print(table)
    recipes = [load_recipe(name) for name in recipe_names()]
    if others := [recipe for recipe in recipes if recipe.data.path]:
        table = Table(title="\nrecipes for your own files (data.path=...)", **PLAIN)
        for recipe in others:
            table.add_row(Text(recipe.name, style="bold cyan"), recipe.data.task, recipe.about)
        console.print(table)
    command = ("clearhead data phrasebook", "bold")
    console.print(Text.assemble("\nLook inside: ", command, ", or your own file or folder."))


def settings_of(name: str, overrides: Sequence[str]) -> Recipe:
    """Return the settings that a name stands for: a recipe, a built-in corpus, a Hugging Face data set, or files."""
    from clearhead.corpora.catalogue import CORPORA
    from clearhead.data.readers.fields import FIELD, column_settings

    if name.endswith(".toml") or name in recipe_names():
        return load_recipe(name, overrides)
    if name in CORPORA:
        tree: dict[str, Any] = {"data": {"corpus": name, "task": CORPORA[name].task}}
    elif name.startswith("hf:"):
        tree = {"data": {"corpus": name}}
    elif Path(name).expanduser().exists():
        tree = {"data": {"path": name, **guess(Path(name).expanduser())}}
        said = [item for item in overrides if item.startswith("data.")]
        if len(tree["data"]) == 1 and not said:
            found = describe(Path(name).expanduser())
            ways = "\n".join(f"  data.task={task} {way}" for task in TASKS for way in column_settings(task))
            raise UserError(f"{name} contains {found}; say what to read, such as\n{ways}\n{FIELD}")
    else:
        known = suggest(name, {*CORPORA, *recipe_names()})
        raise UserError(f"{name!r} is not a corpus, a recipe or a file; {known}")
    return build(Recipe, override(Recipe, tree, overrides))


def guess(path: Path) -> dict[str, str]:
    """Return what files are probably for, judged by their suffixes; overrides can say otherwise."""
    from clearhead.data.readers.files import format_of, unpacked_name, visible_files

    files = [path] if path.is_file() else visible_files(path)
    formats = {format_of(file) for file in files}
    suffixes = Counter(Path(unpacked_name(file)).suffix[1:] for file in files if format_of(file) == ".txt")
    suffixes.pop("txt", None)
    if len(suffixes) >= 2:  # train.en and train.de: English first if present, else in alphabetical order
        source, target = sorted(suffixes, key=lambda suffix: (suffix != "en", suffix))[:2]
        return {"task": task_of("pair"), "source": source, "target": target}
    return {"task": task_of("document")} if formats == {".txt"} else {}


def describe(path: Path) -> str:
    """Return the name of the first table of some files, and its fields."""
    from clearhead.data.readers.files import format_of, visible_files
    from clearhead.data.readers.tables import first_fields

    files = [path] if path.is_file() else visible_files(path)
    require(bool(files), f"{path} contains no files")
    first = min(files, key=lambda file: format_of(file) == ".txt")  # notes may lie beside a table
    return f"a table, {first.name}, with the fields {first_fields(first)}"
