"""Draws clauses that make sense: who does what to what, where, when and how."""

from __future__ import annotations

from typing import NamedTuple

from clearhead.corpora.embedded import Dice
from clearhead.corpora.grammar.lexicon import CONCEPTS, expand_kinds
from clearhead.corpora.grammar.meaning import Clause, Name, Nominal, NounPhrase, Place
from clearhead.corpora.grammar.noun_phrases import (
    CITIES,
    COUNTRIES,
    GROUPS,
    KINDS,
    MASS,
    OWNED,
    SELDOM,
    adjectives,
    definite,
    indefinite,
    location,
    looks,
    place_of,
)
from clearhead.corpora.grammar.people import KIN, PERSON, close_one, company, nouns_in, other_pronoun, own

HABITS = ("every_day", "every_morning", "every_evening", "every_week", "on_saturdays", "on_sundays", "in_the_morning")
PAST_DAYS = ("yesterday", "yesterday_morning", "last_night", "this_morning", "an_hour_ago", "two_days_ago")
FUTURE_DAYS = ("tomorrow", "tomorrow_morning", "tonight", "soon", "in_an_hour", "on_monday")
PAST = (("yesterday", "this_morning"), PAST_DAYS, (*PAST_DAYS, "last_week", "last_month"))
FUTURE = (("tomorrow", "soon"), FUTURE_DAYS, (*FUTURE_DAYS, "next_week", "next_month"))
POINTS = ("an_hour_ago", "two_days_ago", "soon", "in_an_hour")  # nobody says when he did not do something
FREQUENCIES = ("often", "always", "sometimes", "rarely")


class Frame(NamedTuple):
    """Who can do something, to what, and where."""

    verb: str
    who: tuple[str, ...]
    what: tuple[str, ...]
    where: tuple[str, ...]
    human: bool


class When(NamedTuple):
    """The tense of a clause and what goes with it."""

    tense: str
    polarity: str = ""
    frequency: str = ""
    time: str = ""
    time_first: bool = False

    @property
    def habitual(self) -> bool:
        """Whether it is said of what happens again and again."""
        return self.tense == "present"


def read_frame(verb: str, text: str) -> Frame:
    """A frame from the lexicon: "who > what @ where"."""
    rest, _, where = text.partition("@")
    who, _, what = rest.partition(">")
    subjects = expand_kinds(who)
    human = any(noun in PERSON for noun in subjects)
    return Frame(verb, subjects, expand_kinds(what), tuple(named_places(where)), human)


def named_places(words: str) -> list[str]:
    """The nouns of a frame's places; cities and countries keep their kind."""
    return [*expand_kinds(words), *(word for word in words.split() if word in ("city", "country"))]


FLAGS: dict[str, tuple[str, ...]] = {v: tuple(facts.get("flags", "").split()) for v, facts in CONCEPTS["verb"].items()}
MANNERS: dict[str, tuple[str, ...]] = {v: tuple(facts.get("how", "").split()) for v, facts in CONCEPTS["verb"].items()}
FRAMES: dict[str, tuple[Frame, ...]] = {
    verb: tuple(read_frame(verb, text) for text in facts["frames"]) for verb, facts in CONCEPTS["verb"].items()
}


def weighted(verbs: tuple[str, ...]) -> tuple[Frame, ...]:
    """The frames of some verbs, each as often as its number of combinations has binary digits."""
    frames = (frame for verb in verbs for frame in FRAMES[verb])
    return tuple(frame for frame in frames for _ in range((len(frame.who) * max(1, len(frame.what))).bit_length()))


def with_flag(flag: str) -> tuple[str, ...]:
    """The verbs that the lexicon gives a flag."""
    return tuple(verb for verb in FRAMES if flag in FLAGS[verb])


STATES, GIVING, PUTTING = with_flag("state"), with_flag("to"), with_flag("put")
MOVING = tuple(verb for verb, facts in CONCEPTS["verb"].items() if "motion" in facts)
ACTIONS = tuple(verb for verb in FRAMES if verb not in STATES + PUTTING + MOVING + ("give", "show", "send", "bring"))
ACTION_FRAMES = weighted(ACTIONS)
STATE_FRAMES = weighted(tuple(verb for verb in STATES if "generic" not in FLAGS[verb]))
GENERIC_FRAMES = weighted(with_flag("generic"))
MODAL_FRAMES = {modal: tuple(f for f in weighted(GROUPS[modal]) if f.human) for modal in ("want", "can", "must")}
DESTINATIONS = GROUPS["destination"]
HIDING = ("in", "under", "behind")
GIVEN_TO = expand_kinds("youngster man woman royal teacher doctor farmer")


def when(dice: Dice, verb: str, denial: float = 0.2) -> When:
    """A tense with its adverbs, as far as the verb allows it."""
    roll, flags = dice.random(), FLAGS[verb]
    polarity = "not" if dice.random() < denial else ""
    if roll < 0.35 or "mishap" in flags:
        return past(dice, verb, polarity)
    if "sense" in flags:
        return When("present", polarity)
    if roll > 0.75 and "moment" not in flags:
        return When("progressive", polarity, time="now" if dice.random() < 0.15 else "")
    if roll > 0.55 and "moment" not in flags and "daily" not in flags:
        return habit(dice, polarity)
    return future(dice, verb, polarity)


def past(dice: Dice, verb: str, polarity: str = "") -> When:
    """The past, perhaps with its day."""
    if dice.random() < 0.5:
        return When("past", polarity)
    day = dice.choice(times(PAST, verb))
    return When("past", polarity if day not in POINTS else "", time=day, time_first=dice.random() < 0.4)


def future(dice: Dice, verb: str, polarity: str = "") -> When:
    """The future, perhaps with its day."""
    if dice.random() < 0.3:
        return When("going", polarity)
    if dice.random() < 0.4:
        return When("future", polarity)
    day = dice.choice(times(FUTURE, verb))
    return When("future", polarity if day not in POINTS else "", time=day, time_first=dice.random() < 0.3)


def times(table: tuple[tuple[str, ...], ...], verb: str) -> tuple[str, ...]:
    """The times at which something of its kind is told: once a day, within days, or within months."""
    flags = FLAGS[verb]
    return table[0] if "daily" in flags else table[2] if "event" in flags else table[1]


def habit(dice: Dice, polarity: str = "") -> When:
    """What somebody does every day, often or never."""
    if polarity:
        return When("present", "never" if dice.random() < 0.5 else "not")
    if dice.random() < 0.5:
        return When("present", frequency=dice.choice(FREQUENCIES))
    return When("present", time=dice.choice(HABITS), time_first=dice.random() < 0.3)


def told(subject: Nominal, verb: str, at: When, patient: Nominal | None, places: tuple[Place, ...] = ()) -> Clause:
    """A clause at a time."""
    return Clause(
        subject,
        verb,
        at.tense,
        at.polarity,
        object=patient,
        frequency=at.frequency,
        places=places,
        time=at.time,
        time_first=at.time_first,
    )


def action(dice: Dice, frame: Frame, subject: Nominal, at: When, full: bool = True) -> Clause:
    """Somebody does something; full: perhaps also where, with whom or how."""
    verb, patient = frame.verb, patient_of(dice, frame, subject, at)
    if not full:
        return told(subject, verb, at, patient)
    roll = dice.random()
    if frame.where and (roll < 0.4 or "placed" in FLAGS[verb]):
        return told(subject, verb, at, patient, (place_of(dice, dice.choice(frame.where)),))
    if roll < 0.6 and frame.human and "with" in FLAGS[verb]:
        return told(subject, verb, at, patient, (company(dice, subject),))
    manners = MANNERS[verb]
    if manners and roll > 0.7 and not (at.polarity or at.frequency or at.time == "soon"):
        return told(subject, verb, at, patient)._replace(manner=dice.choice(manners))
    return told(subject, verb, at, patient)


def patient_of(dice: Dice, frame: Frame, subject: Nominal, at: When) -> Nominal | None:
    """What or whom something is done to, if the verb asks for it."""
    if not frame.what:
        return None
    noun = fitting(dice, frame, subject)
    kinds = KINDS[noun]
    if "fixed" in FLAGS[frame.verb]:
        return NounPhrase(noun, "the" if "instrument" in kinds else "all", noun == "cards")
    if "kin" in kinds:
        return close_one(dice, noun, subject)
    if "person" in kinds:
        return definite(dice, noun)
    if "public" in kinds and frame.verb in ("take", "wait_for"):
        return NounPhrase(noun)
    return inanimate(dice, frame.verb, noun, subject, at)


def fitting(dice: Dice, frame: Frame, subject: Nominal) -> str:
    """A noun that a verb can be said of; nobody meets himself, and Paul wears no skirt."""
    noun = dice.choice(frame.what)
    if noun in nouns_in(subject) or (
        noun in GROUPS["feminine"] and "own" in FLAGS[frame.verb] and own(subject) != "her"
    ):
        return fitting(dice, frame, subject)
    return noun


def inanimate(dice: Dice, verb: str, noun: str, subject: Nominal, at: When) -> NounPhrase:
    """The thing or animal something is done to; the tense and the verb decide how it may be counted."""
    flags, unique = FLAGS[verb], noun in GROUPS["only_the"]
    habitual = at.habitual and "sense" not in flags
    plural = 0.0 if "single" in flags or "mishap" in flags or noun in SELDOM else 0.25
    if "plenty" in flags and (KINDS[noun] & {"fruit", "vegetable"} or noun == "egg"):
        plural = 1.0
    described = 0.0 if "plain" in flags or at.polarity else 0.3
    owner = own(subject) if "own" in flags and noun in OWNED else ""
    if owner and ("mishap" in flags or dice.random() < 0.35):
        return definite(dice, noun, described, plural)._replace(determiner=owner, owner=None)
    if habitual and noun in MASS:
        return NounPhrase(noun, "bare", False, adjectives(dice, noun, described))
    if habitual and plural and not unique and "known" not in flags and dice.random() < 0.7:
        return NounPhrase(noun, "bare", True, adjectives(dice, noun, 0.2))
    sure = unique or "mishap" in flags or "known" in flags or ("sense" in flags and at.polarity)
    if sure or ("new" not in flags and dice.random() < 0.45):
        np = definite(dice, noun, described, plural)
        if (habitual and np.determiner == "this") or ("foreign" in flags and np.determiner not in ("the", "this")):
            return np._replace(determiner="the", owner=None)
        return np
    counted = "counted" in flags and noun not in SELDOM and not at.polarity and not habitual
    np = indefinite(dice, noun, described, plural, counted)
    return np._replace(determiner="bare") if habitual and np.determiner == "some" else np


def motion(dice: Dice, verb: str, subject: Nominal, at: When) -> Clause:
    """Somebody goes, comes or arrives somewhere."""
    goal = destination(dice, "at" if verb == "arrive" else "to")
    accompanied = verb != "arrive" and dice.random() < 0.25
    return told(subject, verb, at, None, (goal, company(dice, subject)) if accompanied else (goal,))


def destination(dice: Dice, preposition: str) -> Place:
    """Where to: "to the market", "to school", "to Japan"; one arrives "at the market", "in Japan"."""
    roll = dice.random()
    if roll < 0.3:
        name = dice.choice(CITIES if roll < 0.15 else COUNTRIES)
        return Place("in" if preposition == "at" else preposition, Name(name))
    noun = dice.choice(DESTINATIONS)
    if noun in GROUPS["idiom"]:
        return Place(preposition, NounPhrase(noun, "all"))
    found = looks(dice, noun, 0.15)
    return Place(preposition, NounPhrase(noun, "the", False, found if noun != "beach" else ()))  # "à la plage" is fixed


def giving(dice: Dice, frame: Frame, subject: Nominal, at: When) -> Clause:
    """Somebody gives somebody something."""
    c = action(dice, frame, subject, at, full=False)
    if dice.random() < 0.5:
        return c._replace(recipient=other_pronoun(dice, subject))
    if dice.random() < 0.4:
        noun = dice.choice(tuple(noun for noun in GIVEN_TO if noun not in nouns_in(subject)))
        return c._replace(recipient=NounPhrase(noun, "the", noun not in GROUPS["only_the"] and dice.random() < 0.2))
    noun = dice.choice(tuple(noun for noun in KIN if noun not in nouns_in(subject)))
    return c._replace(recipient=close_one(dice, noun, subject))


def putting(dice: Dice, verb: str, subject: Nominal, at: When) -> Clause:
    """Somebody puts something somewhere."""
    frame = dice.choice(FRAMES[verb])
    noun = dice.choice(frame.what)
    owner = own(subject)
    thing = definite(dice, noun)
    if owner and noun in OWNED and dice.random() < 0.3:
        thing = thing._replace(determiner=owner, owner=None)
    goal = location(dice, noun)
    while verb == "hide" and goal.preposition not in HIDING:
        goal = location(dice, noun)
    return told(subject, verb, at, thing, (goal,))


def person_object(dice: Dice, subject: Nominal) -> Clause:
    """Somebody sees, helps or thanks somebody, who is a pronoun: "she saw me"."""
    verb = dice.choice(GROUPS["person_object"])
    at = when(dice, verb)
    if verb in STATES:
        at = When(dice.choice(("present", "past")), "not" if at.polarity else "")
    return told(subject, verb, at, other_pronoun(dice, subject))
