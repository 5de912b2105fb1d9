"""Draws sentences of two clauses: because, but, when, if, and; the second one's pronouns point back to the first."""

from __future__ import annotations

from clearhead.corpora.embedded import Dice
from clearhead.corpora.grammar.clauses import (
    FLAGS,
    FRAMES,
    Frame,
    When,
    action,
    destination,
)
from clearhead.corpora.grammar.lexicon import CONCEPTS
from clearhead.corpora.grammar.meaning import Clause, Joined, Nominal, NounPhrase, Pronoun, Quality
from clearhead.corpora.grammar.noun_phrases import (
    KINDS,
    PREDICATES,
    SELDOM,
    TASTES,
    definite,
)
from clearhead.corpora.grammar.people import PERSON, PRONOUNS, newcomer, refer, somebody
from clearhead.corpora.grammar.qualities import HUMAN_QUALITIES, detailed

REASONS = {state: tuple(verbs.split()) for state, verbs in CONCEPTS["reason"].items()}
REMEDIES = {state: tuple(verbs.split()) for state, verbs in CONCEPTS["remedy"].items()}
LASTING = {"progressive": "present", "past": "past", "future": "present"}  # the tense of the reason
ONGOING = ("sleep", "read", "work", "eat", "play", "sing", "dance", "write", "draw", "wait", "walk", "clean", "make")
INDOORS = (FRAMES["stay"][0], FRAMES["read"][0], FRAMES["play_game"][1], FRAMES["take"][0], FRAMES["make"][0])
DISLIKED = tuple(noun for frame in FRAMES["hate"] for noun in frame.what)
REMEDY_FRAMES = tuple(
    (state, Frame(frame.verb, frame.who, nouns, (), True))
    for state, verbs in REMEDIES.items()
    for verb in verbs
    for frame in FRAMES[verb]
    if frame.human and (nouns := tuple(noun for noun in frame.what if noun in PREDICATES[state]))
)


def contrasts() -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    """Pairs of qualities that surprise together, with the nouns both can be said of and a pronoun can stand for."""
    pairs = ((one, other) for one, others in CONCEPTS["contrast"].items() for other in others.split())
    shared = ((one, other, tuple(n for n in PREDICATES[one] if n in PREDICATES[other])) for one, other in pairs)
    named = ((one, other, tuple(n for n in nouns if refer(NounPhrase(n)) is not None)) for one, other, nouns in shared)
    return tuple(found for found in named if found[2])


CONTRASTS = contrasts()


def person(dice: Dice, nouns: tuple[str, ...] = PERSON) -> Nominal:
    """Somebody that a later pronoun can stand for."""
    found = somebody(dice, nouns, human=True, described=0.3)
    return found if refer(found) is not None else Pronoun(dice.choice(PRONOUNS))


def point_back(n: Nominal) -> Pronoun:
    """The pronoun for what was just named."""
    found = refer(n)
    assert found is not None, n
    return found


def moved(dice: Dice, frame: Frame, subject: Nominal, tense: str) -> Clause:
    """What somebody does out of a feeling: alone, and never mind how."""
    c = action(dice, frame, subject, When(tense))._replace(manner="")
    kept = tuple(place for place in c.places if place.preposition != "with" and frame.verb != "run")
    return c._replace(places=kept)


def because_of_feeling(dice: Dice) -> Joined:
    """Out of a feeling: "the girl is singing because she is happy"."""
    state = dice.choice(tuple(REASONS))
    frame, tense = FRAMES[dice.choice(REASONS[state])][0], dice.choice(tuple(LASTING))
    subject = person(dice, frame.who)
    first = moved(dice, frame, subject, tense)
    return Joined("because", first, Clause(point_back(subject), "be", LASTING[tense], predicate=Quality(state)))


def because_of_thing(dice: Dice) -> Joined:
    """For what a thing is like, with its gender: "she bought the dress because it was beautiful"."""
    state, frame = dice.choice(REMEDY_FRAMES)
    tense = dice.choice(tuple(LASTING))
    subject = somebody(dice, frame.who, human=True)
    thing = remedied(dice, frame)
    first = Clause(subject, frame.verb, tense, object=thing)
    return Joined(
        "because",
        first,
        Clause(Pronoun("they" if thing.plural else "it", thing), "be", LASTING[tense], predicate=Quality(state)),
    )


def remedied(dice: Dice, frame: Frame) -> NounPhrase:
    """The thing that gives a reason; nobody buys what is already somebody's."""
    noun = dice.choice(frame.what)
    thing = definite(dice, noun, 0.0, 0.0 if noun in SELDOM else 0.3)
    return thing._replace(determiner="the", owner=None) if "foreign" in FLAGS[frame.verb] else thing


def and_therefore(dice: Dice) -> Joined:
    """An object pronoun far from its noun: "the window is dirty and Paul is cleaning it"."""
    state, frame = dice.choice(REMEDY_FRAMES)
    tense = dice.choice(("progressive", "past", "future"))
    thing = remedied(dice, frame)
    first = Clause(thing, "be", LASTING[tense], predicate=Quality(state))
    subject = somebody(dice, frame.who, human=True)
    return Joined(
        "and", first, Clause(subject, frame.verb, tense, object=Pronoun("they" if thing.plural else "it", thing))
    )


def but_also(dice: Dice) -> Joined:
    """Two qualities that surprise together: "the car is old, but it is fast"."""
    one, other, nouns = dice.choice(CONTRASTS)
    subject = (
        person(dice) if one in HUMAN_QUALITIES and other in HUMAN_QUALITIES else detailed(dice, dice.choice(nouns), one)
    )
    tense = "past" if dice.random() < 0.3 else "present"
    first = Clause(subject, "be", tense, predicate=Quality(one))
    return Joined("but", first, Clause(point_back(subject), "be", tense, predicate=Quality(other)))


def but_tastes_differ(dice: Dice) -> Joined:
    """Somebody's tastes, or two people's: "Anna likes coffee, but her brother prefers tea"."""
    subject, tense = person(dice), "past" if dice.random() < 0.2 else "present"
    one, other = dice.sample(dice.choice(TASTES), 2)
    polarity = "not" if dice.random() < 0.3 else ""
    verb = "like" if polarity else "hate" if other in DISLIKED and dice.random() < 0.5 else "prefer"
    who = newcomer(dice, subject) if verb == "prefer" and dice.random() < 0.6 else point_back(subject)
    first = Clause(subject, "like", tense, polarity, object=all_of(one))
    return Joined("but", first, Clause(who, verb, tense, object=all_of(other)))


def all_of(noun: str) -> NounPhrase:
    """All there are of a thing: "apples", "les pommes"."""
    return NounPhrase(noun, "all", noun == "cards" or not KINDS[noun] & {"stuff", "sport"})


def when_interrupted(dice: Dice) -> Joined:
    """The imperfect and the passé composé: "the boy was reading when his sister arrived"."""
    frame = FRAMES[dice.choice(ONGOING)][0]
    subject = person(dice, frame.who)
    first = action(dice, frame, subject, When("background"))._replace(manner="")
    return Joined("when", first, Clause(newcomer(dice, subject), dice.choice(("arrive", "leave", "wake_up")), "past"))


def when_it_happens(dice: Dice) -> Joined:
    """French has the future in both clauses: "when Anna arrives, we will eat"."""
    frame = FRAMES[dice.choice(ONGOING)][0]
    subject = person(dice, frame.who)
    second = action(dice, frame, subject, When("future"))
    return Joined("when", Clause(newcomer(dice, subject), "arrive", "upcoming"), second, fronted=True)


def if_it_rains(dice: Dice) -> Joined:
    """What will be done under a condition: "if it rains, we will stay in the house"."""
    subject = person(dice)
    if dice.random() < 0.5:
        state = dice.choice(tuple(REASONS))
        frame = FRAMES[dice.choice(REASONS[state])][0]
        condition = Clause(subject, "be", "present", predicate=Quality(state))
        second = moved(dice, frame, point_back(subject), "future")
        return Joined("if", condition, second, fronted=True)
    condition = Clause(Pronoun("weather"), dice.choice(("rain", "snow")), "present")
    if dice.random() < 0.5:
        second = Clause(subject, "go", "future", "not", places=(destination(dice, "to"),))
    else:
        frame = dice.choice(INDOORS)
        second = action(dice, frame, subject, When("future"), full="placed" in FLAGS[frame.verb])
    return Joined("if", condition, second, fronted=True)
