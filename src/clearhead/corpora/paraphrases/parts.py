"""What paraphrases are made of: a meaning with its wordings, and the people and things it is about."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from clearhead.corpora.dice import Dice
from clearhead.corpora.grammar.lexicon import ENGLISH, expand_kinds
from clearhead.corpora.grammar.noun_phrases import ADJECTIVES, ATTRIBUTES_OF, NAMES, PLACES, STATES

nouns_named = cache(expand_kinds)
NOUNS_OF = ADJECTIVES | STATES  # which nouns an adjective goes with
SYNONYMS: dict[str, str] = ENGLISH["paraphrases"]["word"]
NUMBERS = tuple(ENGLISH["number"].values())[:6]


@dataclass(frozen=True, slots=True)
class ParaphraseSet:
    """Sentences that mean the same, and sentences made of the same words that mean something else.

    The key leaves out what the other sentences change (who does it to whom, when, how many, whether at all), so that
    they never stand in another split as somebody's meaning.
    """

    key: str
    same: tuple[str, ...]
    other: tuple[str, ...]
    combinations: tuple[str, ...] = ()


def combination_of(adjective: str, noun: str) -> tuple[str, ...]:
    """The pair as a combination that may be held out, unless the adjective is so rare that it would be gone with it."""
    return (f"{adjective} {noun}",) if adjective and len(NOUNS_OF[adjective]) >= 8 else ()


def draw_adjective(noun: str, dice: Dice, often: float = 0.6) -> str:
    """An adjective for a noun, or none."""
    known = ATTRIBUTES_OF[noun]
    return dice.choice(known) if known and dice.chance(often) else ""


def phrase(noun: str, adjective: str, dice: Dice, number: str = "") -> str:
    """The words of a thing: "the two big cups", or the same in synonyms."""
    word = ENGLISH["noun"][noun][1 if number else 0]
    if noun in SYNONYMS and dice.chance(0.5):
        word = SYNONYMS[noun] + ("s" if number else "")
    if adjective in SYNONYMS and dice.chance(0.5):
        adjective = SYNONYMS[adjective]
    return " ".join(filter(None, ("the", number, adjective, word)))


def at_place(noun: str) -> str:
    """Where it happens: "in the kitchen"."""
    return f"{PLACES[noun][0]} the {ENGLISH['noun'][noun][0]}"


def draw_person(dice: Dice) -> tuple[str, str]:
    """A name, or a noun for a person with an adjective perhaps: what to write, and the noun."""
    if dice.chance(0.5):
        return dice.choice(NAMES), ""
    noun = dice.choice(nouns_named("job adult royal"))
    adjective = draw_adjective(noun, dice, 0.3)
    return " ".join(filter(None, ("the", adjective, ENGLISH["noun"][noun][0]))), noun


def draw_two_people(dice: Dice) -> tuple[str, str]:
    """Two different persons."""
    (first, noun), (second, other) = draw_person(dice), draw_person(dice)
    while first == second or (noun and noun == other):
        second, other = draw_person(dice)
    return first, second


def unordered_key(*parts: str) -> str:
    """A key that does not say who comes first."""
    return " & ".join(sorted(parts))
