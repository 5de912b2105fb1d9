"""Templates: sentences with choices and slots, written out by dice.

    fill("{h} [ran|walked quickly] to {p}. {h.He} saw a {x}.", dice, slots)

`[one|another]` is one of several wordings (they nest, and may be empty); `{name}` is a slot, `{name.field}` a field of
what is in it, and a capital letter (`{Name}`, `{name.Field}`) asks for a capital. Templates write "a" everywhere:
`articles` turns it into "an" where the next word wants it.
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
    """A place for a word: which slot, perhaps which field of it, and whether it starts with a capital."""

    name: str
    field: str
    capital: bool


@dataclass(frozen=True, slots=True)
class Choice:
    """Wordings to choose from."""

    options: tuple[Parts, ...]


Parts = tuple["str | Slot | Choice", ...]

_MARKS = re.compile(r"([\[\]|{}])")
_ARTICLE = re.compile(r"\b([Aa]) (?=[AEIOUaeiou]|hour|honest|hono[u]?r|heir)(?!one\b|once\b|uni|use|usual|Uni|eu)")


def fill(template: str, dice: Dice, slots: Slots) -> str:
    """The template with its choices made and its slots filled."""
    written: list[str] = []
    _write(_parse(template), dice, slots, written)
    return "".join(written)


def articles(text: str) -> str:
    """The text with "an" for "a" before a vowel that is heard."""
    return _ARTICLE.sub(r"\1n ", text)


def capital(text: str) -> str:
    """The text with its first letter in upper case and the others as they are."""
    return text[:1].upper() + text[1:]


def _write(parts: Parts, dice: Dice, slots: Slots, written: list[str]) -> None:
    """Append the pieces of text that the parts stand for."""
    for part in parts:
        if isinstance(part, str):
            written.append(part)
        elif isinstance(part, Choice):
            _write(dice.choice(part.options), dice, slots, written)
        else:
            value = slots[part.name]
            text = str(getattr(value, part.field) if part.field else value)
            written.append(capital(text) if part.capital else text)


@cache
def _parse(template: str) -> Parts:
    """The parts of a template, parsed once."""
    pieces = [piece for piece in _MARKS.split(template) if piece]
    parts, rest = _sequence(pieces, 0)
    assert rest == len(pieces), f"stray ']' or '|' in the template {template!r}"
    return parts


def _sequence(pieces: list[str], at: int) -> tuple[Parts, int]:
    """The parts from a piece on, up to the end of this wording."""
    parts: list[str | Slot | Choice] = []
    while at < len(pieces) and pieces[at] not in "]|":
        if pieces[at] == "[":
            choice, at = _choice(pieces, at + 1)
            parts.append(choice)
        elif pieces[at] == "{":
            assert pieces[at + 2] == "}", f"a slot that does not end: {pieces[at : at + 3]}"
            parts.append(_slot(pieces[at + 1]))
            at += 3
        else:
            parts.append(pieces[at])
            at += 1
    return tuple(parts), at


def _choice(pieces: list[str], at: int) -> tuple[Choice, int]:
    """The wordings from behind a "[" to behind its "]"."""
    options: list[Parts] = []
    while True:
        option, at = _sequence(pieces, at)
        options.append(option)
        assert at < len(pieces), "a '[' that does not end"
        at += 1
        if pieces[at - 1] == "]":
            return Choice(tuple(options)), at


def _slot(text: str) -> Slot:
    """The slot that stands between braces."""
    name, _, field = text.partition(".")
    wants_capital = name[:1].isupper() or field[:1].isupper()
    return Slot(name[:1].lower() + name[1:], field[:1].lower() + field[1:], wants_capital)
