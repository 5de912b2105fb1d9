"""What a piece of local news is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from clearhead.corpora.dice import Dice
from clearhead.corpora.grammar.lexicon import ENGLISH

NUMBER_WORDS = ("none", "one", *ENGLISH["number"].values())  # none to twenty


@dataclass(frozen=True, slots=True)
class News:
    """Facts, the sentences that report them in order, and the headline; the combinations that may be held out."""

    topic: str
    facts: Mapping[str, object]
    body: tuple[str, ...]
    headline: str
    combinations: tuple[str, ...]


def draw_person(dice: Dice) -> str:
    """A first name and a surname."""
    words = ENGLISH["headlines"]
    return f"{dice.choice(words['first_names'])} {dice.choice(words['surnames'])}"


def draw_people(dice: Dice) -> list[str]:
    """Three persons who share no name."""
    words = ENGLISH["headlines"]
    firsts, lasts = dice.sample(words["first_names"], 3), dice.sample(words["surnames"], 3)
    return [f"{first} {last}" for first, last in zip(firsts, lasts, strict=True)]


def draw_word(table: str, dice: Dice) -> str:
    """A word of the headlines' tables."""
    return str(dice.choice(ENGLISH["headlines"][table]))


def without_article(phrase: str) -> str:
    """A phrase without its article, as headlines like it."""
    return phrase.removeprefix("the ").removeprefix("an ").removeprefix("a ")
