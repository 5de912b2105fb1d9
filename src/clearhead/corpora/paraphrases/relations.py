"""Paraphrases of relations, seen from both sides: bigger and smaller, left and right, teacher and student."""

from __future__ import annotations

from clearhead.corpora.dice import Dice
from clearhead.corpora.grammar.lexicon import ENGLISH, read_lexicon
from clearhead.corpora.grammar.noun_phrases import KINDS, NAMES, PLACES
from clearhead.corpora.grammar.templates import fill
from clearhead.corpora.paraphrases.parts import (
    NOUNS_OF,
    ParaphraseSet,
    at_place,
    combination_of,
    draw_adjective,
    draw_person,
    draw_two_people,
    nouns_named,
    phrase,
    unordered_key,
)

WORDS = read_lexicon("paraphrases")
OF_PEOPLE = ("tall", "strong", "brave", "happy", "polite")
OWNERS = ("the", "my", "our", "your", *(f"{name}'s" for name in NAMES))

COMPARISONS = (
    "{x} {is} {more} than {y}",
    "{y} {is} {less} than {x}",
    "compared with {y}, {x} {is} {more}",
    "compared with {x}, {y} {is} {less}",
    "of {x} and {y}, {y} {is} the {less} one",
    "of {x} and {y}, {x} {is} the {more} one",
)
PLACINGS = (
    "{x} {is} {here} {y}",
    "{y} {is} {there} {x}",
    "it {is} {x} that {is} {here} {y}",
    "{here} {y} {is} {x}",
    "{there} {x} {is} {y}",
)
KINSHIPS = (
    "{x} {is} {ys} {one}",
    "{y} {is} {xs} {other}",
    "{x} {is} the {one} of {y}",
    "{y} {is} the {other} of {x}",
    "{y} {has} {x} as {one}",
)
BELONGINGS = (
    (
        "{p} belongs to {x}",
        "{x} owns {p}",
        "{x} is the owner of {p}",
        "{p} is the property of {x}",
        "the one who owns {p} is {x}",
    ),
    (
        "{p} does not belong to {x}",
        "{x} does not own {p}",
        "{x} is not the owner of {p}",
        "{p} is not the property of {x}",
        "the one who owns {p} is not {x}",
    ),
)
ALL = (
    "all the {nouns} {place} are {state}",
    "every {noun} {place} is {state}",
    "none of the {nouns} {place} is {opposite}",
    "there is no {opposite} {noun} {place}",
)
NOT_ALL = (
    "not all the {nouns} {place} are {state}",
    "not every {noun} {place} is {state}",
    "at least one of the {nouns} {place} is {opposite}",
    "there is at least one {opposite} {noun} {place}",
)


def comparison(dice: Dice) -> ParaphraseSet:
    """X is bigger than Y: Y is smaller than X; negative: X and Y swapped."""
    concept, more, less = dice.choice(WORDS["antonyms"])
    x, y, combinations = (*draw_two_people(dice), ()) if concept in OF_PEOPLE else _two_things(concept, dice)
    slots = {"is": dice.choice(("is", "was")), "more": more, "less": less}
    same = tuple(fill(template, dice, slots | {"x": x, "y": y}) for template in COMPARISONS)
    other = tuple(fill(template, dice, slots | {"x": y, "y": x}) for template in COMPARISONS)
    return ParaphraseSet(f"compare {concept} {unordered_key(x, y)}", same, other, combinations)


def _two_things(adjective: str, dice: Dice) -> tuple[str, str, tuple[str, ...]]:
    """Draw two comparable things of one kind, with or without owners, and their word combinations."""
    known = NOUNS_OF[adjective]
    first = dice.choice(known)
    second = dice.choice([noun for noun in known if KINDS[noun] & KINDS[first]])
    owners = dice.sample(OWNERS, 2)
    x, y = (
        f"{owner if noun in nouns_named('thing pet vehicle house room') else 'the'} {ENGLISH['noun'][noun][0]}"
        for owner, noun in zip(owners, (first, second), strict=True)
    )
    if x == y:
        return _two_things(adjective, dice)
    return x, y, (*combination_of(adjective, first), *combination_of(adjective, second))


def placing(dice: Dice) -> ParaphraseSet:
    """X is left of Y: Y is right of X; negative: X and Y swapped."""
    here, there = dice.choice(WORDS["converses"])
    kinds = {"north of": "landmark settlement landscape", "above": "lamp mirror clock picture window"}
    nouns = dice.sample(nouns_named(kinds.get(here, "landmark furniture vehicle")), 2)
    adjectives = [draw_adjective(noun, dice) for noun in nouns]
    x, y = (phrase(noun, adjective, dice) for noun, adjective in zip(nouns, adjectives, strict=True))
    slots = {"is": dice.choice(("is", "was")), "here": here, "there": there}
    same = tuple(fill(template, dice, slots | {"x": x, "y": y}) for template in PLACINGS)
    other = tuple(fill(template, dice, slots | {"x": y, "y": x}) for template in PLACINGS)
    key = f"place {here} {unordered_key(*(f'{a} {n}' for a, n in zip(adjectives, nouns, strict=True)))}"
    combinations = tuple(pair for a, n in zip(adjectives, nouns, strict=True) for pair in combination_of(a, n))
    return ParaphraseSet(key, same, other, combinations)


def kinship(dice: Dice) -> ParaphraseSet:
    """X is the teacher of Y: Y is the student of X; negative: X and Y swapped."""
    one, other = dice.choice(WORDS["relations"])
    people = draw_two_people(dice)
    while any(word in person for word in (one, other) for person in people):  # not "the teacher is her teacher"
        people = draw_two_people(dice)
    past = dice.chance(0.4)

    def tell(x: str, y: str) -> tuple[str, ...]:
        slots = {"x": x, "y": y, "xs": f"{x}'s", "ys": f"{y}'s", "one": one, "other": other}
        slots |= {"is": "was", "has": "had"} if past else {"is": "is", "has": "has"}
        return tuple(fill(template, dice, slots) for template in KINSHIPS)

    return ParaphraseSet(f"kin {one} {unordered_key(*people)}", tell(*people), tell(people[1], people[0]))


def belonging(dice: Dice) -> ParaphraseSet:
    """Something belongs to somebody; negative: it does not."""
    owner, _ = draw_person(dice)
    noun = dice.choice(nouns_named("handy vehicle pet thing"))
    adjective = draw_adjective(noun, dice)
    which = dice.below(2)

    def tell(templates: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(fill(template, dice, {"x": owner, "p": phrase(noun, adjective, dice)}) for template in templates)

    same, other = tell(BELONGINGS[which]), tell(BELONGINGS[1 - which])
    return ParaphraseSet(f"own {owner} {adjective} {noun}", same, other, combination_of(adjective, noun))


def quantity(dice: Dice) -> ParaphraseSet:
    """All are open, none is closed; negative: not all are open."""
    state, opposite = dice.choice(WORDS["states"])
    noun = dice.choice([noun for noun in nouns_named("opening container tableware luggage") if noun in NOUNS_OF[state]])
    where = dice.choice([noun for noun in nouns_named("room building service") if noun in PLACES])
    singular, plural = ENGLISH["noun"][noun]
    place = at_place(where)
    slots = {"state": state, "opposite": opposite, "noun": singular, "nouns": plural, "place": place}
    whole, part = (tuple(fill(template, dice, slots) for template in templates) for templates in (ALL, NOT_ALL))
    same, other = (whole, part) if dice.chance(0.5) else (part, whole)
    return ParaphraseSet(
        f"all {unordered_key(state, opposite)} {noun} {place}", same, other, combination_of(state, noun)
    )


RELATIONS = (comparison, comparison, placing, kinship, belonging, quantity)
