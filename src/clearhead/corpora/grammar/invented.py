"""Names that no lexicon has: they are the same in both languages, and a translator has to copy them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from clearhead.corpora.dice import Dice
from clearhead.corpora.grammar import french
from clearhead.corpora.grammar.meaning import Name, NounPhrase, Sentence
from clearhead.corpora.grammar.noun_phrases import NAMES
from clearhead.corpora.grammar.templates import capital

T = TypeVar("T")

ONSETS = (*"bcdfgjklmnprstvzbdklmnrstvz", *("br", "ch", "cl", "dr", "fr", "gr", "kr", "pr", "st", "th", "tr"))
VOWELS = (*"aaaaaeeeeeiiiiiooooouuu", "ia", "ai")
CODAS = (*"nrlstdmknrlsnx", "ng", "ck")


def invent(dice: Dice) -> str:
    """Draw a name of two or three syllables: "Kevin", "Olga", "Zoltan"; none begins with H or Y (d'Yves, de Yann)."""
    name = "" if dice.random() < 0.2 else dice.choice(ONSETS)
    syllables = 3 if dice.random() < 0.15 else 2
    for syllable in range(1, syllables + 1):
        name += dice.choice(VOWELS)
        name += dice.choice(CODAS) if dice.random() < (0.15 if syllable < syllables else 0.4) else ""
        name += dice.choice(ONSETS) if syllable < syllables else ""
    return capital(name)


def with_invented_names(dice: Dice, meaning: Sentence) -> Sentence:
    """Replace the known names of a sentence by invented ones, unless its French depends on their gender."""
    words = {*words_in(meaning)}
    invented = {name: invent(dice) for name in NAMES if name in words}
    for name in invented:
        he, she = (french.sentence(replace_names(meaning, {name: other})) for other in ("Pierre", "Sophie"))
        if he.replace("Pierre", "Sophie") != she.replace("Pierre", "Sophie"):
            return meaning
    return replace_names(meaning, invented) if invented else meaning


def words_in(part: object) -> Iterator[str]:
    """All strings of a meaning, names among them."""
    if isinstance(part, str):
        yield part
    elif isinstance(part, tuple):
        for inner in part:
            yield from words_in(inner)


def replace_names(part: T, names: dict[str, str]) -> T:
    """A copy of a meaning, or of a part of it, with other names."""
    if isinstance(part, Name):
        return part._replace(name=names.get(part.name, part.name))
    if isinstance(part, NounPhrase):
        part = part._replace(name=names.get(part.name, part.name))
    if not isinstance(part, tuple):
        return part
    inner = [replace_names(each, names) for each in part]
    return type(part)(*inner) if hasattr(part, "_fields") else type(part)(inner)
