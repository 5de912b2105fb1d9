"""The architectures of architectures.toml."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from importlib import resources
from typing import Any

from clearhead.exchange import conversions
from clearhead.exchange.architecture import Architecture, Key, Stored
from clearhead.exchange.source import Json


def read_architectures() -> dict[str, Architecture]:
    """All architectures by `model_type`, in the order of architectures.toml."""
    file = resources.files(__package__) / "architectures.toml"
    tables = tomllib.loads(file.read_text(encoding="utf8"))
    values = {name: dict(pairs) for name, pairs in tables.pop("values").items()}
    return {name: build_architecture(name, inherited_table(tables, name), values) for name in tables}


def inherited_table(tables: Mapping[str, Json], name: str) -> Json:
    """The table of an architecture, merged with the table that its `like` names."""
    table = dict(tables[name])
    if "like" not in table:
        return table
    base = inherited_table(tables, table.pop("like"))
    del base["tasks"]
    for path in table.pop("without", ()):
        part, _, entry = path.partition(".")
        base[part] = {name: value for name, value in base[part].items() if entry not in ("", name)}
    for part, value in table.items():
        base[part] = base.get(part, {}) | value if isinstance(value, dict) else value
    return base


def build_architecture(model_type: str, table: Json, values: Mapping[str, Mapping[Any, Any]]) -> Architecture:
    """An architecture from its table; `values` are the named correspondences of values."""
    block = table.pop("block")
    prefix = table["prefix"]
    names = {our: find_stored(their, prefix) for our, their in table.pop("names").items()}
    for stack, place in table.pop("blocks").items():
        for our, their in block.items():
            names[f"{stack}.blocks.{{i}}.{our}"] = find_stored(their, prefix + place)
    heads = table.pop("heads")
    keys = {setting: find_key(key, values) for setting, key in table.pop("keys").items()}
    functions = {
        part: getattr(conversions, table.pop(part)) for part in ("read_more", "write_more", "complete") if part in table
    }
    return Architecture(
        model_type,
        keys=keys,
        names=names,
        heads={head: {our: Stored(their) for our, their in of_head.items()} for head, of_head in heads.items()},
        **functions,
        **table,
    )


def find_stored(entry: str | Json, before: str) -> Stored:
    """How a matrix is stored, by its entry: a name, or a table with `name`; `before` is the first part of the name."""
    given = {"name": entry} if isinstance(entry, str) else entry
    return Stored(**given | {"name": before + given["name"]})


def find_key(entry: str | Json, values: Mapping[str, Mapping[Any, Any]]) -> Key:
    """A setting of theirs, by its entry: a name, or a table with `name`, default and the name of its values."""
    if isinstance(entry, str):
        return Key(entry)
    return Key(entry["name"], entry["default"], values.get(entry.get("values", "")))


ARCHITECTURES = read_architectures()
