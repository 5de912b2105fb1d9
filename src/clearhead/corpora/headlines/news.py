"""The parts of a piece of local news."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from clearhead.corpora.dice import Dice
from clearhead.corpora.grammar.lexicon import ENGLISH, read_lexicon

NUMBER_WORDS = ("none", "one", *ENGLISH["number"].values())  # "none" to "twenty", by number


@dataclass(frozen=True, slots=True)
class News:
    """Facts, the templates of the sentences that report them, and the template of the headline."""

    topic: str
    facts: Mapping[str, object]
    body: tuple[str, ...]
    headline: str
    combinations: tuple[str, ...]  # word combinations that may be held out


def draw_person(dice: Dice) -> str:
    """Draw a first name and a surname."""
    words = read_lexicon("headlines")
    return f"{dice.choice(words['first_names'])} {dice.choice(words['surnames'])}"


def draw_people(dice: Dice) -> list[str]:
    """Draw three people who share no name."""
    words = read_lexicon("headlines")
    firsts, lasts = dice.sample(words["first_names"], 3), dice.sample(words["surnames"], 3)
    return [f"{first} {last}" for first, last in zip(firsts, lasts, strict=True)]


def draw_word(table: str, dice: Dice) -> str:
    """Draw a word from a table of the lexicon."""
    return str(dice.choice(read_lexicon("headlines")[table]))


def without_article(phrase: str) -> str:
    """The phrase without its article, as in headlines."""
    return phrase.removeprefix("the ").removeprefix("an ").removeprefix("a ")
