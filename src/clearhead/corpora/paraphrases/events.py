"""Paraphrases of events: active and passive, clefts, giving and getting, before and after, only and all but."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from clearhead.corpora.dice import Dice
from clearhead.corpora.grammar.frames import FRAMES
from clearhead.corpora.grammar.lexicon import ENGLISH, read_lexicon
from clearhead.corpora.grammar.noun_phrases import NAMES, PLACES
from clearhead.corpora.grammar.templates import fill
from clearhead.corpora.paraphrases.parts import (
    NUMBERS,
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
PEOPLE_ONLY = ("help", "call", "thank", "follow")  # verbs whose object is a person
UNPLANNED = ("forget", "lose", "find", "break", "see", "hear")  # verbs without intention: nobody refuses to lose a key


class Event(NamedTuple):
    """Who does what to whom, in the past or the future, negated or not."""

    agent: str
    verb: str
    patient: str  # the words for a person, or a noun
    adjective: str = ""
    number: str = ""
    place: str = ""
    future: bool = False
    negated: bool = False
    time: int = -1  # index of a pair of times (past, future); -1: none


@cache
def frames(verb: str) -> tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]:
    """For each frame of a verb with human subjects: its countable objects, and its places that have a preposition."""
    return tuple(
        (
            tuple(noun for noun in frame.what if len(ENGLISH["noun"][noun]) == 2),
            tuple(noun for noun in frame.where if noun in PLACES),
        )
        for frame in FRAMES[verb]
        if all(noun in nouns_named("person") for noun in frame.who)
        and any(len(ENGLISH["noun"][noun]) == 2 for noun in frame.what)
    )


def draw_event(dice: Dice) -> Event:
    """Draw an event in the past or the future."""
    verb = dice.choice(WORDS["verbs"])
    future = dice.chance(0.4)
    negated = dice.chance(0.15)
    time = dice.below(len(WORDS["times"])) if dice.chance(0.5) else -1
    if verb in PEOPLE_ONLY:
        agent, patient = draw_two_people(dice)
        return Event(agent, verb, patient, future=future, negated=negated, time=time)
    things, places = dice.choice(frames(verb))
    patient = dice.choice(things)
    agent, noun = draw_person(dice)
    if patient == noun:  # not "the baker saw the baker"
        agent = dice.choice(NAMES)
    number = dice.choice(NUMBERS) if dice.chance(0.3) else ""
    place = at_place(dice.choice(places)) if places and dice.chance(0.4) else ""
    return Event(agent, verb, patient, draw_adjective(patient, dice), number, place, future, negated, time)


def wordings(event: Event, dice: Dice) -> tuple[str, ...]:
    """The event in all constructions of equal meaning, each with or without synonyms."""
    templates = (*PLAIN, *(() if event.negated else CLEFTS), *(FRONTED if event.time >= 0 else ()))
    return tuple(fill(template, dice, _slots(event, dice)) for template in templates)


# {did} is "washed", "did not wash", "will wash" or "will not wash"; {done} "was washed", "will not be washed" and so on
PLAIN = ("{a} {did} {p}{place}{time}", "{p} {done} by {a}{place}{time}")
CLEFTS = ("it {is} {a} who {did} {p}{place}{time}", "it {is} {p} that {a} {did}{place}{time}")
FRONTED = ("{fronted}, {a} {did} {p}{place}", "{fronted}, {p} {done} by {a}{place}")


def _slots(event: Event, dice: Dice) -> dict[str, str]:
    """The slots of an event, some of them filled with synonyms."""
    base, past, participle = verb_forms(event.verb, dice)
    patient = event.patient
    if patient in ENGLISH["noun"]:
        patient = phrase(patient, event.adjective, dice, event.number)
    no = " not" if event.negated else ""
    time = WORDS["times"][event.time][event.future] if event.time >= 0 else ""
    was = "were" if event.number else "was"
    return {
        "a": event.agent,
        "p": patient,
        "base": base,
        "did": f"will{no} {base}" if event.future else f"did not {base}" if no else past,
        "done": f"will{no} be {participle}" if event.future else f"{was}{no} {participle}",
        "is": "is" if event.future else "was",
        "place": f" {event.place}" if event.place else "",
        "time": f" {time}" if time else "",
        "fronted": time,
    }


def verb_forms(verb: str, dice: Dice) -> tuple[str, str, str]:
    """Base, past and participle of a verb, or of its synonym."""
    if verb in WORDS["verb"] and dice.chance(0.5):
        base, past, participle = WORDS["verb"][verb]
        return base, past, participle
    base, _, past, _ = ENGLISH["verb"][verb]
    return base, past, WORDS["participle"].get(verb, past)


def action(dice: Dice) -> ParaphraseSet:
    """An action in active, passive and cleft sentences; negatives: roles swapped, negated, other time or number."""
    event = draw_event(dice)
    changes = [event._replace(negated=not event.negated), event._replace(future=not event.future)]
    if event.verb in PEOPLE_ONLY:
        changes += [event._replace(agent=event.patient, patient=event.agent)] * 4
    if event.number:
        changes += [event._replace(number=dice.choice([n for n in NUMBERS if n != event.number]))] * 2
    key = f"{event.verb} {unordered_key(event.agent, event.patient)} {event.adjective} {event.place}"
    other = wordings(dice.choice(changes), dice)
    return ParaphraseSet(f"deed {key}", wordings(event, dice), other, _combinations(event))


def _combinations(event: Event) -> tuple[str, ...]:
    """The word combinations of an event: verb and object, adjective and noun."""
    if event.verb in PEOPLE_ONLY:
        return ()
    return (f"{event.verb} {event.patient}", *combination_of(event.adjective, event.patient))


def transfer(dice: Dice) -> ParaphraseSet:
    """One person gives, another gets; negative: the roles swapped."""
    giver, taker = draw_two_people(dice)
    thing = dice.choice(nouns_named("handy"))
    adjective = draw_adjective(thing, dice)
    row = dice.choice(WORDS["transfers"])
    future = dice.chance(0.4)
    time = dice.below(len(WORDS["times"]))
    base, past, participle, base_back, past_back = row
    slots: dict[str, object] = {
        "gave": f"will {base}" if future else past,
        "got": f"will {base_back}" if future else past_back,
        "given": f"will be {participle}" if future else f"was {participle}",
        "is": "is" if future else "was",
        "time": " " + WORDS["times"][time][future] if dice.chance(0.5) else "",
    }

    def tell(giver: str, taker: str) -> tuple[str, ...]:
        people = {"x": giver, "y": taker, "p": phrase(thing, adjective, dice)}
        return tuple(fill(template, dice, slots | people) for template in TRANSFERS)

    key = f"transfer {base} {unordered_key(giver, taker)} {adjective} {thing}"
    return ParaphraseSet(
        key, tell(giver, taker), tell(taker, giver), (f"{base} {thing}", *combination_of(adjective, thing))
    )


TRANSFERS = (
    "{x} {gave} {y} {p}{time}",
    "{x} {gave} {p} to {y}{time}",
    "{y} {got} {p} from {x}{time}",
    "{p} {given} to {y} by {x}{time}",
    "it {is} {p} that {y} {got} from {x}{time}",
)


def sequence(dice: Dice) -> ParaphraseSet:
    """Two events in order or at the same time; negatives: the other order, or the agents swapped."""
    first, second = _draw_simple_event(dice), _draw_simple_event(dice)
    while first.agent == second.agent or (first.verb, first.patient) == (second.verb, second.patient):
        second = _draw_simple_event(dice)

    def tell(templates: tuple[str, ...], a: Event, b: Event) -> tuple[str, ...]:
        return tuple(fill(t, dice, {"a": _active_sentence(a, dice), "b": _active_sentence(b, dice)}) for t in templates)

    crossed = (first._replace(agent=second.agent), second._replace(agent=first.agent))
    key = unordered_key(*(f"{e.verb} {e.patient} {e.adjective}" for e in (first, second)), first.agent, second.agent)
    combinations = (*_combinations(first), *_combinations(second))
    if dice.chance(0.5):
        same, other = tell(IN_TIME, first, second), tell(IN_TIME, second, first)
    else:
        same, other = tell(TOGETHER, first, second), tell(TOGETHER, *crossed)
    return ParaphraseSet(f"sequence {key}", same, other, combinations)


IN_TIME = (
    "{a} before {b}",
    "before {b}, {a}",
    "after {a}, {b}",
    "{b} after {a}",
    "first {a}, and then {b}",
)
TOGETHER = (
    "{a}, while {b}",
    "{b}, while {a}",
    "while {a}, {b}",
    "while {b}, {a}",
    "{a}, and at the same time {b}",
    "{b}, and at the same time {a}",
)


def _draw_simple_event(dice: Dice) -> Event:
    """Draw a past event without negation, time, place and number."""
    return draw_event(dice)._replace(future=False, negated=False, time=-1, place="", number="")


def _active_sentence(event: Event, dice: Dice) -> str:
    """The event as an active sentence."""
    return fill(PLAIN[0], dice, _slots(event, dice))


def attempt(dice: Dice) -> ParaphraseSet:
    """Succeeding or failing, remembering or forgetting, agreeing or refusing; negative: the opposite."""
    event = _draw_simple_event(dice)
    while event.verb in UNPLANNED:
        event = _draw_simple_event(dice)
    slots = _slots(event, dice)
    base, _, _ = verb_forms(event.verb, dice)
    groups = dice.choice(ATTEMPTS)
    which = dice.below(2)
    slots["do"] = f"{base} {slots['p']}"
    same, other = (tuple(fill(t, dice, slots) for t in groups[i]) for i in (which, 1 - which))
    key = f"attempt {event.agent} {event.verb} {event.patient} {event.adjective}"
    return ParaphraseSet(key, same, other, _combinations(event))


ATTEMPTS = (
    (
        ("{a} managed to {do}", "{a} was able to {do}", "{a} did not fail to {do}"),
        ("{a} failed to {do}", "{a} did not manage to {do}", "{a} was unable to {do}"),
    ),
    (
        ("{a} remembered to {do}", "{a} did not forget to {do}", "{a} did not neglect to {do}"),
        ("{a} forgot to {do}", "{a} did not remember to {do}", "{a} neglected to {do}"),
    ),
    (
        ("{a} agreed to {do}", "{a} did not refuse to {do}", "{a} said yes when asked to {do}"),
        ("{a} refused to {do}", "{a} did not agree to {do}", "{a} said no when asked to {do}"),
    ),
)


def only(dice: Dice) -> ParaphraseSet:
    """Only one person did it; negative: everybody but one did it."""
    event = _draw_simple_event(dice)
    while event.verb in PEOPLE_ONLY:
        event = _draw_simple_event(dice)
    slots = _slots(event, dice)
    which = dice.below(2)
    same, other = (tuple(fill(t, dice, slots) for t in ONLY[i]) for i in (which, 1 - which))
    key = f"only {event.agent} {event.verb} {event.patient} {event.adjective}"
    return ParaphraseSet(key, same, other, _combinations(event))


ONLY = (
    (
        "only {a} {did} {p}",
        "nobody but {a} {did} {p}",
        "nobody except {a} {did} {p}",
        "{a} was the only one who {did} {p}",
    ),
    (
        "everybody but {a} {did} {p}",
        "everybody except {a} {did} {p}",
        "{a} was the only one who did not {base} {p}",
        "all the others {did} {p}, but {a} did not",
    ),
)

EVENTS = (action, action, transfer, sequence, attempt, only)
