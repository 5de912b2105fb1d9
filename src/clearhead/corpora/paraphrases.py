"""Pairs of sentences of equal meaning, with a hard negative: similar words, another meaning.

Events are told in active and passive sentences and in clefts, as giving and getting, before and after, only and all
but; relations from both sides: bigger and smaller, left and right, teacher and student.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from clearhead.corpora.dice import Dice
from clearhead.corpora.generated import Draft, GeneratedCorpus
from clearhead.corpora.grammar.frames import FRAMES
from clearhead.corpora.grammar.lexicon import ENGLISH, expand_kinds, read_lexicon
from clearhead.corpora.grammar.noun_phrases import ADJECTIVES, ATTRIBUTES_OF, KINDS, NAMES, PLACES, STATES
from clearhead.corpora.grammar.templates import Slots, articles, capital, fill
from clearhead.data.examples import SentencePair

WORDS = read_lexicon("paraphrases")
WORDINGS: dict[str, list[str]] = WORDS["wordings"]
SYNONYMS: dict[str, str] = WORDS["word"]
NUMBERS = tuple(ENGLISH["number"].values())[:6]
NOUNS_OF = ADJECTIVES | STATES  # adjective -> the nouns it goes with
OWNERS = ("the", "my", "our", "your", *(f"{name}'s" for name in NAMES))
PEOPLE_ONLY = ("help", "call", "thank", "follow")  # verbs whose object is a person
UNPLANNED = ("forget", "lose", "find", "break", "see", "hear")  # verbs without intention: nobody refuses to lose a key
OF_PEOPLE = ("tall", "strong", "brave", "happy", "polite")  # adjectives that compare people

nouns_named = cache(expand_kinds)


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


# ---- parts: people, things and their wordings ----


def fill_all(templates: Sequence[str], dice: Dice, draw_slots: Callable[[], Slots]) -> tuple[str, ...]:
    """Fill several templates; the slots are drawn anew for each, since synonyms are chosen at random."""
    return tuple(fill(template, dice, draw_slots()) for template in templates)


def both_ways(name: str, dice: Dice, x: str, y: str, slots: dict[str, str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The wordings of a relation of x and y, and those of the relation of y and x."""
    told = fill_all(WORDINGS[name], dice, lambda: slots | {"x": x, "y": y})
    return told, fill_all(WORDINGS[name], dice, lambda: slots | {"x": y, "y": x})


def either_way(
    meanings: dict[str, list[str]], dice: Dice, draw_slots: Callable[[], Slots]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Choose one of two opposite meanings; return its wordings and those of the other."""
    chosen, other = ("yes", "no") if dice.chance(0.5) else ("no", "yes")
    return fill_all(meanings[chosen], dice, draw_slots), fill_all(meanings[other], dice, draw_slots)


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


# ---- events ----


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

    @property
    def combinations(self) -> tuple[str, ...]:
        """The word combinations: verb and object, adjective and noun."""
        if self.verb in PEOPLE_ONLY:
            return ()
        return (f"{self.verb} {self.patient}", *combination_of(self.adjective, self.patient))


@cache
def frames(verb: str) -> tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]:
    """For each frame of a verb with human subjects: its countable objects, and its places that have a preposition."""
    people = nouns_named("person")
    found = (
        (
            tuple(noun for noun in frame.what if len(ENGLISH["noun"][noun]) == 2),
            tuple(noun for noun in frame.where if noun in PLACES),
        )
        for frame in FRAMES[verb]
        if all(noun in people for noun in frame.who)
    )
    return tuple((things, places) for things, places in found if things)


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


def draw_simple_event(dice: Dice, without: tuple[str, ...] = ()) -> Event:
    """Draw a past event without negation, time, place and number, and without some verbs."""
    event = draw_event(dice)
    if event.verb in without:
        return draw_simple_event(dice, without)
    return event._replace(future=False, negated=False, time=-1, place="", number="")


def wordings(event: Event, dice: Dice) -> tuple[str, ...]:
    """The event in all constructions of equal meaning, each with or without synonyms."""
    kinds = ("plain", *(() if event.negated else ("cleft",)), *(("fronted",) if event.time >= 0 else ()))
    templates = [template for kind in kinds for template in WORDINGS[kind]]
    return fill_all(templates, dice, lambda: event_slots(event, dice))


def event_slots(event: Event, dice: Dice) -> dict[str, str]:
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
    key = f"deed {event.verb} {unordered_key(event.agent, event.patient)} {event.adjective} {event.place}"
    other = wordings(dice.choice(changes), dice)
    return ParaphraseSet(key, wordings(event, dice), other, event.combinations)


def transfer(dice: Dice) -> ParaphraseSet:
    """One person gives, another gets; negative: the roles swapped."""
    giver, taker = draw_two_people(dice)
    thing = dice.choice(nouns_named("handy"))
    adjective = draw_adjective(thing, dice)
    base, past, participle, base_back, past_back = dice.choice(WORDS["transfers"])
    future = dice.chance(0.4)
    time = dice.choice(WORDS["times"])[future]
    slots = {
        "gave": f"will {base}" if future else past,
        "got": f"will {base_back}" if future else past_back,
        "given": f"will be {participle}" if future else f"was {participle}",
        "is": "is" if future else "was",
        "time": f" {time}" if dice.chance(0.5) else "",
    }

    def tell(x: str, y: str) -> tuple[str, ...]:
        told = slots | {"x": x, "y": y, "p": phrase(thing, adjective, dice)}
        return fill_all(WORDINGS["transfer"], dice, lambda: told)

    key = f"transfer {base} {unordered_key(giver, taker)} {adjective} {thing}"
    combinations = (f"{base} {thing}", *combination_of(adjective, thing))
    return ParaphraseSet(key, tell(giver, taker), tell(taker, giver), combinations)


def sequence(dice: Dice) -> ParaphraseSet:
    """Two events in order or at the same time; negatives: the other order, or the agents swapped."""
    first, second = draw_simple_event(dice), draw_simple_event(dice)
    while first.agent == second.agent or (first.verb, first.patient) == (second.verb, second.patient):
        second = draw_simple_event(dice)

    def sentence(event: Event) -> str:
        return fill(WORDINGS["plain"][0], dice, event_slots(event, dice))

    def tell(kind: str, a: Event, b: Event) -> tuple[str, ...]:
        return fill_all(WORDINGS[kind], dice, lambda: {"a": sentence(a), "b": sentence(b)})

    key = unordered_key(*(f"{e.verb} {e.patient} {e.adjective}" for e in (first, second)), first.agent, second.agent)
    if dice.chance(0.5):
        same, other = tell("in_order", first, second), tell("in_order", second, first)
    else:
        crossed = (first._replace(agent=second.agent), second._replace(agent=first.agent))
        same, other = tell("together", first, second), tell("together", *crossed)
    return ParaphraseSet(f"sequence {key}", same, other, (*first.combinations, *second.combinations))


def attempt(dice: Dice) -> ParaphraseSet:
    """Succeeding or failing, remembering or forgetting, agreeing or refusing; negative: the opposite."""
    event = draw_simple_event(dice, without=UNPLANNED)
    slots = event_slots(event, dice)
    slots["do"] = f"{verb_forms(event.verb, dice)[0]} {slots['p']}"
    same, other = either_way(dice.choice(WORDS["attempts"]), dice, lambda: slots)
    key = f"attempt {event.agent} {event.verb} {event.patient} {event.adjective}"
    return ParaphraseSet(key, same, other, event.combinations)


def only(dice: Dice) -> ParaphraseSet:
    """Only one person did it; negative: everybody but one did it."""
    event = draw_simple_event(dice, without=PEOPLE_ONLY)
    slots = event_slots(event, dice)
    same, other = either_way(WORDS["only"], dice, lambda: slots)
    key = f"only {event.agent} {event.verb} {event.patient} {event.adjective}"
    return ParaphraseSet(key, same, other, event.combinations)


# ---- relations ----


def comparison(dice: Dice) -> ParaphraseSet:
    """X is bigger than Y: Y is smaller than X; negative: X and Y swapped."""
    concept, more, less = dice.choice(WORDS["antonyms"])
    x, y, combinations = (*draw_two_people(dice), ()) if concept in OF_PEOPLE else draw_two_things(concept, dice)
    same, other = both_ways("comparison", dice, x, y, {"is": dice.choice(("is", "was")), "more": more, "less": less})
    return ParaphraseSet(f"compare {concept} {unordered_key(x, y)}", same, other, combinations)


def draw_two_things(adjective: str, dice: Dice) -> tuple[str, str, tuple[str, ...]]:
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
        return draw_two_things(adjective, dice)
    return x, y, (*combination_of(adjective, first), *combination_of(adjective, second))


def placing(dice: Dice) -> ParaphraseSet:
    """X is left of Y: Y is right of X; negative: X and Y swapped."""
    here, there = dice.choice(WORDS["converses"])
    kinds = {"north of": "landmark settlement landscape", "above": "lamp mirror clock picture window"}
    nouns = dice.sample(nouns_named(kinds.get(here, "landmark furniture vehicle")), 2)
    described = list(zip([draw_adjective(noun, dice) for noun in nouns], nouns, strict=True))
    x, y = (phrase(noun, adjective, dice) for adjective, noun in described)
    same, other = both_ways("placing", dice, x, y, {"is": dice.choice(("is", "was")), "here": here, "there": there})
    key = f"place {here} {unordered_key(*(f'{adjective} {noun}' for adjective, noun in described))}"
    return ParaphraseSet(key, same, other, tuple(pair for named in described for pair in combination_of(*named)))


def kinship(dice: Dice) -> ParaphraseSet:
    """X is the teacher of Y: Y is the student of X; negative: X and Y swapped."""
    one, other = dice.choice(WORDS["relations"])
    people = draw_two_people(dice)
    while any(word in person for word in (one, other) for person in people):  # not "the teacher is her teacher"
        people = draw_two_people(dice)
    verbs = {"is": "was", "has": "had"} if dice.chance(0.4) else {"is": "is", "has": "has"}
    told = both_ways("kinship", dice, *people, verbs | {"one": one, "other": other})
    return ParaphraseSet(f"kin {one} {unordered_key(*people)}", *told)


def belonging(dice: Dice) -> ParaphraseSet:
    """Something belongs to somebody; negative: it does not."""
    owner, _ = draw_person(dice)
    noun = dice.choice(nouns_named("handy vehicle pet thing"))
    adjective = draw_adjective(noun, dice)
    told = either_way(WORDS["belonging"], dice, lambda: {"x": owner, "p": phrase(noun, adjective, dice)})
    return ParaphraseSet(f"own {owner} {adjective} {noun}", *told, combination_of(adjective, noun))


def quantity(dice: Dice) -> ParaphraseSet:
    """All are open, none is closed; negative: not all are open."""
    state, opposite = dice.choice(WORDS["states"])
    noun = dice.choice([noun for noun in nouns_named("opening container tableware luggage") if noun in NOUNS_OF[state]])
    place = at_place(dice.choice([noun for noun in nouns_named("room building service") if noun in PLACES]))
    singular, plural = ENGLISH["noun"][noun]
    slots = {"state": state, "opposite": opposite, "noun": singular, "nouns": plural, "place": place}
    told = either_way(WORDS["quantity"], dice, lambda: slots)
    return ParaphraseSet(f"all {unordered_key(state, opposite)} {noun} {place}", *told, combination_of(state, noun))


EVENTS = (action, action, transfer, sequence, attempt, only)
RELATIONS = (comparison, comparison, placing, kinship, belonging, quantity)
PATTERNS = (*EVENTS, *EVENTS, *RELATIONS)  # events vary most, so they are drawn twice as often


def draw(dice: Dice) -> Draft:
    """Draw two wordings of one meaning and a hard negative; the key covers all three sentences."""
    paraphrases = dice.choice(PATTERNS)(dice)
    chosen = (*dice.sample(paraphrases.same, 2), dice.choice(paraphrases.other))
    first, second, negative = (articles(capital(sentence)) + "." for sentence in chosen)
    return Draft(SentencePair(first, second, 1.0, negative), paraphrases.key, paraphrases.combinations)


CORPUS = GeneratedCorpus("paraphrases", "similarity", "sentence pairs of equal meaning, with hard negatives", draw)
