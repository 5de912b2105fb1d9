"""The parts of paraphrases: sets of wordings, and the people and things in them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from clearhead.corpora.dice import Dice
from clearhead.corpora.grammar.lexicon import ENGLISH, expand_kinds, read_lexicon
from clearhead.corpora.grammar.noun_phrases import ADJECTIVES, ATTRIBUTES_OF, NAMES, PLACES, STATES

nouns_named = cache(expand_kinds)
NOUNS_OF = ADJECTIVES | STATES  # adjective -> the nouns it goes with
SYNONYMS: dict[str, str] = read_lexicon("paraphrases")["word"]
NUMBERS = tuple(ENGLISH["number"].values())[:6]


@dataclass(frozen=True, slots=True)
class ParaphraseSet:
    """Sentences of equal meaning, and sentences of similar words with another meaning.

    The key leaves out whatever the `other` sentences change (who does it to whom, when, how many, negation), so that no
    negative of one split is a paraphrase in another split.
    """

    key: str
    same: tuple[str, ...]
    other: tuple[str, ...]
    combinations: tuple[str, ...] = ()


def combination_of(adjective: str, noun: str) -> tuple[str, ...]:
    """The word combination of an adjective and a noun; none if the adjective has too few nouns to hold one out."""
    return (f"{adjective} {noun}",) if adjective and len(NOUNS_OF[adjective]) >= 8 else ()


def draw_adjective(noun: str, dice: Dice, often: float = 0.6) -> str:
    """Draw an adjective for a noun, or none."""
    known = ATTRIBUTES_OF[noun]
    return dice.choice(known) if known and dice.chance(often) else ""


def phrase(noun: str, adjective: str, dice: Dice, number: str = "") -> str:
    """A noun phrase: "the two big cups"; at random with synonyms."""
    word = ENGLISH["noun"][noun][1 if number else 0]
    if noun in SYNONYMS and dice.chance(0.5):
        word = SYNONYMS[noun] + ("s" if number else "")
    if adjective in SYNONYMS and dice.chance(0.5):
        adjective = SYNONYMS[adjective]
    return " ".join(filter(None, ("the", number, adjective, word)))


def at_place(noun: str) -> str:
    """The place of an event: "in the kitchen"."""
    return f"{PLACES[noun][0]} the {ENGLISH['noun'][noun][0]}"


def draw_person(dice: Dice) -> tuple[str, str]:
    """Draw a person; return the words for it and its noun ("" for a name)."""
    if dice.chance(0.5):
        return dice.choice(NAMES), ""
    noun = dice.choice(nouns_named("job adult royal"))
    adjective = draw_adjective(noun, dice, 0.3)
    return " ".join(filter(None, ("the", adjective, ENGLISH["noun"][noun][0]))), noun


def draw_two_people(dice: Dice) -> tuple[str, str]:
    """Draw two different people."""
    (first, noun), (second, other) = draw_person(dice), draw_person(dice)
    while first == second or (noun and noun == other):
        second, other = draw_person(dice)
    return first, second


def unordered_key(*parts: str) -> str:
    """A key that does not depend on the order of its parts."""
    return " & ".join(sorted(parts))
