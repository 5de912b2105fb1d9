"""Recipes: whole experiments as TOML files. Find them by name or path, read them, override settings, write them."""

from __future__ import annotations

import dataclasses
import json
import tomllib
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

from clearhead.config import RUN_FORMAT, Recipe, UserError, check, require, suggest
from clearhead.files import is_there, write_file
from clearhead.habits import written_here
from clearhead.presets import preset

T = TypeVar("T")

PACKAGE = Path(__file__).parent


def recipe_folder() -> Path:
    """The folder of the recipes: inside an installed package, or beside `src` in a checkout."""
    inside = PACKAGE / "recipes"
    return inside if inside.is_dir() else PACKAGE.parent.parent / "recipes"


def find_recipe(name: str) -> Path:
    """The file of a recipe, given by its path or by the name of one that comes with clearhead."""
    path = Path(name)
    if path.suffix == ".toml":
        require(is_there(path), f"recipe {name!r}: no such file")
        return path
    if name not in recipe_names():
        inside = path / "run.toml"
        folder = f"recipe {name!r} is a folder; its recipe is {inside}, and --resume continues its run, if it has one"
        require(not inside.is_file(), folder)
        remedy = suggest(name, recipe_names())
        raise UserError(f"recipe {name!r}: no recipe of this name; {remedy}; or give the path of a .toml file")
    return recipe_folder() / f"{name}.toml"


def recipe_names() -> list[str]:
    """The names of the recipes that come with clearhead."""
    return sorted(path.stem for path in recipe_folder().glob("*.toml"))


def load_recipe(name: str, overrides: Sequence[str] = ()) -> Recipe:
    """Read a recipe and apply overrides.

    `model.preset` supplies the model settings that the recipe leaves out; as an override, it replaces all of them.
    """
    path = find_recipe(name)
    tree = read_toml(path)
    if any(item.partition("=")[0].strip() == "model.preset" for item in overrides):
        tree.pop("model", None)
    override(Recipe, tree, overrides)
    require(
        check("format", int, tree.get("format", RUN_FORMAT)) <= RUN_FORMAT,
        f"{path} was written by a newer clearhead (format {tree.get('format')}, not {RUN_FORMAT}); update to read it",
    )
    tree.setdefault("name", path.stem)
    if isinstance(tree.get("model"), dict):
        tree["model"] = fill_from_preset(tree["model"])
    return build(Recipe, tree)


def write_recipe(recipe: Recipe, path: Path) -> None:
    """Write all settings of a recipe as TOML, which `load_recipe` reads back."""
    lines = [f"{name} = {toml(getattr(recipe, name))}" for name in ("name", "about", "format")]
    for section in dataclasses.fields(recipe):
        value = getattr(recipe, section.name)
        if dataclasses.is_dataclass(value):
            lines += ["", f"[{section.name}]"]
            lines += [f"{f.name} = {toml(getattr(value, f.name))}" for f in dataclasses.fields(value)]
    write_file(path, "\n".join(lines) + "\n")


def toml(value: str | float | bool) -> str:
    """A value in TOML syntax: that of JSON, except for infinity and the control character DEL."""
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def differences(one: Recipe, other: Recipe) -> list[str]:
    """The settings that differ between two recipes, each with both values."""
    found = []
    for section in ("model", "tokenizer", "data", "train"):
        for key, value in dataclasses.asdict(getattr(one, section)).items():
            theirs = getattr(getattr(other, section), key)
            if value != theirs:
                found.append(f"{section}.{key} = {value!r}, not {theirs!r}")
    return found


def fill_from_preset(model: dict[str, Any]) -> dict[str, Any]:
    """The settings of a preset, or of the model of a run, overridden by those that are given."""
    if "preset" not in model:
        return model
    given = {key: value for key, value in model.items() if key != "preset"}
    name = check("model.preset", str, model["preset"])
    run = Path(name) / "run.toml"
    base = load_recipe(str(run)).model if run.is_file() else preset(name)
    return dataclasses.asdict(base) | given


def build(cls: type[T], values: Mapping[str, Any], where: str = "") -> T:
    """Build a dataclass from nested tables; an unknown key is refused with a suggestion."""
    hints = typing.get_type_hints(cls)
    known = [f.name for f in dataclasses.fields(cls)]  # type: ignore[arg-type]
    made: dict[str, Any] = {}
    for key, value in values.items():
        if key not in known:
            raise UserError(f"unknown setting {where}{key}; {suggest_setting(key, key, known)}")
        kind = hints[key]
        if dataclasses.is_dataclass(kind):
            require(isinstance(value, Mapping), f"{where}{key} = {value!r}: expected a table, [{where}{key}]")
            made[key] = build(typing.cast(type, kind), value, f"{where}{key}.")
        else:
            made[key] = value if where else check(key, kind, value)
    return cls(**made)


def suggest_setting(key: str, word: str, known: list[str]) -> str:
    """The end of an error about an unknown word: how the setting `key` is written here, or the most similar word."""
    if named := settings_named(key):
        return f"did you mean {named}?"
    return f"write {written}" if (written := written_here(key)) else suggest(word, known)


def settings_named(key: str) -> str:
    """The full names of the settings with this name, in any section."""
    sections = {name: hint for name, hint in typing.get_type_hints(Recipe).items() if dataclasses.is_dataclass(hint)}
    return " or ".join(f"{name}.{key}" for name, hint in sections.items() if key in typing.get_type_hints(hint))


def parse(text: str, kind: Any) -> Any:
    """Parse a value of the command line: strings need no quotes, anything else is TOML."""
    if (kind is str or typing.get_origin(kind) is Literal) and not text.startswith(('"', "'")):
        return text
    try:
        return tomllib.loads(f"value = {text.strip()}")["value"]
    except tomllib.TOMLDecodeError:
        return text  # not a value of any type: the check of the setting will refuse it


def override(cls: type, tree: dict[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    """Apply each `section.key=value` to the tables of a recipe, in place.

    A path replaces the corpus that the recipe names, and a corpus its path.
    """
    given = {item.partition("=")[0].strip() for item in overrides}
    for item in overrides:
        name, equals, text = item.partition("=")
        require(bool(equals and name), f"{item!r}: overrides are written section.key=value")
        *sections, key = name.strip().split(".")
        table = tree
        kind = cls
        for section in sections:
            hints = typing.get_type_hints(kind)
            known = [name for name, hint in hints.items() if dataclasses.is_dataclass(hint)]
            is_setting = section in hints and section not in known
            require(not is_setting, f"{item!r}: {section!r} is a setting; write {name.rpartition('.')[0]}={text}")
            remedy = suggest_setting(key, section, known)
            require(section in known, f"{item!r}: there is no section {section!r}; {remedy}")
            table = table.setdefault(section, {})
            kind = hints[section]
            require(isinstance(table, dict), f"{section} = {table!r}: expected a table, [{section}]")
        table[key] = parse(text, typing.get_type_hints(kind).get(key, str))
        other = {"data.path": "corpus", "data.corpus": "path"}.get(name.strip())
        if other and table[key] and f"data.{other}" not in given:
            table.pop(other, None)
    return tree


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a TOML file; an error names the line that is not valid TOML."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))  # Windows may begin it with a mark
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path} is not valid TOML: {error}") from error
