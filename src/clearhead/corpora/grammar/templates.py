"""Templates: sentences with slots and random choices.

    fill("{h} [ran|walked quickly] to {p}. {h.He} saw a {x}.", dice, slots)

`[one|another]` chooses one of several wordings (they nest, and may be empty). `{name}` is a slot, `{name.field}` a
field of the slot's value; with a capital letter (`{Name}`, `{name.Field}`) the text starts with a capital. Templates
write "a" everywhere: `articles` turns it into "an" where the next word begins with a vowel sound.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from clearhead.corpora.dice import Dice

Slots = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Slot:
    """A slot: its name, the field of its value (or ""), and whether its text starts with a capital."""

    name: str
    field: str
    capital: bool


@dataclass(frozen=True, slots=True)
class Alternatives:
    """Wordings, one of which is chosen at random."""

    options: tuple[Parts, ...]


Parts = tuple["str | Slot | Alternatives", ...]

_MARKS = re.compile(r"([\[\]|{}])")
_ARTICLE = re.compile(r"\b([Aa]) (?=[AEIOUaeiou]|hour|honest|hono[u]?r|heir)(?!one\b|once\b|uni|use|usual|Uni|eu)")


def fill(template: str, dice: Dice, slots: Slots) -> str:
    """Fill the slots of a template and make its choices."""
    written: list[str] = []
    _write(_parse(template), dice, slots, written)
    return "".join(written)


def articles(text: str) -> str:
    """The text with "an" for "a" before a vowel sound."""
    return _ARTICLE.sub(r"\1n ", text)


def capital(text: str) -> str:
    """The text with its first letter in upper case, the others unchanged."""
    return text[:1].upper() + text[1:]


def _write(parts: Parts, dice: Dice, slots: Slots, written: list[str]) -> None:
    """Append the text of the parts to `written`."""
    for part in parts:
        if isinstance(part, str):
            written.append(part)
        elif isinstance(part, Alternatives):
            _write(dice.choice(part.options), dice, slots, written)
        else:
            value = slots[part.name]
            text = str(getattr(value, part.field) if part.field else value)
            written.append(capital(text) if part.capital else text)


@cache
def _parse(template: str) -> Parts:
    """Parse a template, once."""
    pieces = [piece for piece in _MARKS.split(template) if piece]
    parts, rest = _sequence(pieces, 0)
    assert rest == len(pieces), f"stray ']' or '|' in the template {template!r}"
    return parts


def _sequence(pieces: list[str], at: int) -> tuple[Parts, int]:
    """Parse pieces from `at` to the end of the wording; return its parts and the position after them."""
    parts: list[str | Slot | Alternatives] = []
    while at < len(pieces) and pieces[at] not in "]|":
        if pieces[at] == "[":
            alternatives, at = _alternatives(pieces, at + 1)
            parts.append(alternatives)
        elif pieces[at] == "{":
            assert pieces[at + 2] == "}", f"a slot that does not end: {pieces[at : at + 3]}"
            parts.append(_slot(pieces[at + 1]))
            at += 3
        else:
            parts.append(pieces[at])
            at += 1
    return tuple(parts), at


def _alternatives(pieces: list[str], at: int) -> tuple[Alternatives, int]:
    """Parse the wordings after a "[" up to its "]"; return them and the position after it."""
    options: list[Parts] = []
    while True:
        option, at = _sequence(pieces, at)
        options.append(option)
        assert at < len(pieces), "a '[' that does not end"
        at += 1
        if pieces[at - 1] == "]":
            return Alternatives(tuple(options)), at


def _slot(text: str) -> Slot:
    """Parse the text between braces."""
    name, _, field = text.partition(".")
    wants_capital = name[:1].isupper() or field[:1].isupper()
    return Slot(name[:1].lower() + name[1:], field[:1].lower() + field[1:], wants_capital)
