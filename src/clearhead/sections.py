"""What every section of settings has in common: values are checked, and an error says how to fix them."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from typing import Any, Literal, get_args, get_origin, get_type_hints


class UserError(ValueError):
    """An error that the user can fix: the message names the setting, its value and the remedy."""


def require(condition: bool, message: str) -> None:
    """Raise a UserError with this message unless the condition holds."""
    if not condition:
        raise UserError(message)


def suggest(word: str, known: Iterable[str]) -> str:
    """The end of an error about an unknown word: the most similar known word, or all of them if none is similar."""
    known = sorted(known)
    return did_you_mean(word, known) or f"known: {', '.join(known)}"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A question with the most similar known word; empty if none is similar."""
    near = difflib.get_close_matches(word, sorted(known), n=1)
    return f"did you mean {near[0]!r}?" if near else ""


def check(name: str, kind: Any, value: Any) -> Any:
    """Return the value if it has the declared type; an int is accepted for a float."""
    if get_origin(kind) is Literal:
        return check_choice(name, value, get_args(kind))
    if kind is float and type(value) is int:
        return float(value)
    wanted = {bool: "true or false", int: "a whole number", float: "a number such as 0.1", str: "text in quotes"}[kind]
    require(type(value) is kind, f"{name} = {value!r}: expected {wanted}, not {type(value).__name__}")
    return value


def check_choice(name: str, value: Any, choices: Iterable[str]) -> Any:
    """Return the value if it is one of the choices."""
    choices = tuple(choices)
    near = did_you_mean(str(value), choices)
    require(value in choices, f"{name} = {value!r}: expected {' | '.join(choices)}" + (f"; {near}" if near else ""))
    return value


class Section:
    """A section of settings. The type of every value is checked, whether it comes from a file or from Python."""

    def __post_init__(self) -> None:
        for name, kind in get_type_hints(type(self)).items():
            object.__setattr__(self, name, check(self.full_name(name), kind, getattr(self, name)))

    def full_name(self, setting: str) -> str:
        """The name of a setting in recipes: `model.heads` for `heads` of ModelConfig."""
        return f"{type(self).__name__.removesuffix('Config').lower()}.{setting}"

    def require_each(self, names: str, holds: Callable[[Any], bool], rule: str) -> None:
        """Refuse the first of these settings that breaks the rule."""
        for name in names.split():
            value = getattr(self, name)
            require(holds(value), f"{self.full_name(name)} = {value}: must {rule}")
