"""Draw clauses that make sense: who does what to what, where, when and how."""

from __future__ import annotations

from typing import NamedTuple

from clearhead.corpora.dice import Dice
from clearhead.corpora.grammar.lexicon import CONCEPTS, expand_kinds
from clearhead.corpora.grammar.meaning import Clause, Name, Nominal, NounPhrase, Place
from clearhead.corpora.grammar.noun_phrases import (
    CITIES,
    COUNTRIES,
    GROUPS,
    KINDS,
    MASS,
    OWNED,
    USUALLY_ONE,
    adjectives,
    appearance,
    definite,
    indefinite,
    location,
    place_of,
)
from clearhead.corpora.grammar.people import (
    KIN,
    PERSON,
    companion,
    family_member,
    nouns_in,
    other_pronoun,
    possessive_of,
)

HABITS = ("every_day", "every_morning", "every_evening", "every_week", "on_saturdays", "on_sundays", "in_the_morning")
PAST_DAYS = ("yesterday", "yesterday_morning", "last_night", "this_morning", "an_hour_ago", "two_days_ago")
FUTURE_DAYS = ("tomorrow", "tomorrow_morning", "tonight", "soon", "in_an_hour", "on_monday")
PAST = (("yesterday", "this_morning"), PAST_DAYS, (*PAST_DAYS, "last_week", "last_month"))
FUTURE = (("tomorrow", "soon"), FUTURE_DAYS, (*FUTURE_DAYS, "next_week", "next_month"))
POINTS = (
    "an_hour_ago",
    "two_days_ago",
    "soon",
    "in_an_hour",
)  # not used with a negation: "she did not arrive an hour ago"
FREQUENCIES = ("often", "always", "sometimes", "rarely")


class Frame(NamedTuple):
    """Who can do something, to what, and where."""

    verb: str
    who: tuple[str, ...]
    what: tuple[str, ...]
    where: tuple[str, ...]
    human: bool


class When(NamedTuple):
    """The tense of a clause, with negation, frequency and time."""

    tense: str
    polarity: str = ""
    frequency: str = ""
    time: str = ""
    time_first: bool = False

    @property
    def habitual(self) -> bool:
        """Whether the clause describes a habit."""
        return self.tense == "present"


def read_frame(verb: str, text: str) -> Frame:
    """A frame from the lexicon: "who > what @ where"."""
    rest, _, where = text.partition("@")
    who, _, what = rest.partition(">")
    subjects = expand_kinds(who)
    human = any(noun in PERSON for noun in subjects)
    return Frame(verb, subjects, expand_kinds(what), tuple(named_places(where)), human)


def named_places(words: str) -> list[str]:
    """The nouns of a frame's places; `city` and `country` stay kinds, since names are drawn for them."""
    return [*expand_kinds(words), *(word for word in words.split() if word in ("city", "country"))]


FLAGS: dict[str, tuple[str, ...]] = {v: tuple(facts.get("flags", "").split()) for v, facts in CONCEPTS["verb"].items()}
MANNERS: dict[str, tuple[str, ...]] = {v: tuple(facts.get("how", "").split()) for v, facts in CONCEPTS["verb"].items()}
FRAMES: dict[str, tuple[Frame, ...]] = {
    verb: tuple(read_frame(verb, text) for text in facts["frames"]) for verb, facts in CONCEPTS["verb"].items()
}


def weighted_frames(verbs: tuple[str, ...]) -> tuple[Frame, ...]:
    """The frames of some verbs, each repeated by the logarithm of how many combinations of nouns it allows."""
    frames = (frame for verb in verbs for frame in FRAMES[verb])
    return tuple(frame for frame in frames for _ in range((len(frame.who) * max(1, len(frame.what))).bit_length()))


def with_flag(flag: str) -> tuple[str, ...]:
    """The verbs that have a flag in the lexicon."""
    return tuple(verb for verb in FRAMES if flag in FLAGS[verb])


STATES = with_flag("state")
GIVING = with_flag("to")
PUTTING = with_flag("put")
MOVING = tuple(verb for verb, facts in CONCEPTS["verb"].items() if "motion" in facts)
ACTIONS = tuple(verb for verb in FRAMES if verb not in STATES + PUTTING + MOVING + ("give", "show", "send", "bring"))
ACTION_FRAMES = weighted_frames(ACTIONS)
STATE_FRAMES = weighted_frames(tuple(verb for verb in STATES if "generic" not in FLAGS[verb]))
GENERIC_FRAMES = weighted_frames(with_flag("generic"))
MODAL_FRAMES = {modal: tuple(f for f in weighted_frames(GROUPS[modal]) if f.human) for modal in ("want", "can", "must")}
DESTINATIONS = GROUPS["destination"]
HIDING = ("in", "under", "behind")
GIVEN_TO = expand_kinds("youngster man woman royal teacher doctor farmer")


def when(dice: Dice, verb: str, denial: float = 0.2) -> When:
    """Draw a tense with its adverbs, as the verb allows."""
    roll = dice.random()
    flags = FLAGS[verb]
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
    """Draw the past tense, with a day or without."""
    if dice.random() < 0.5:
        return When("past", polarity)
    day = dice.choice(times(PAST, verb))
    return When("past", polarity if day not in POINTS else "", time=day, time_first=dice.random() < 0.4)


def future(dice: Dice, verb: str, polarity: str = "") -> When:
    """Draw a future tense, with a day or without."""
    if dice.random() < 0.3:
        return When("going", polarity)
    if dice.random() < 0.4:
        return When("future", polarity)
    day = dice.choice(times(FUTURE, verb))
    return When("future", polarity if day not in POINTS else "", time=day, time_first=dice.random() < 0.3)


def times(table: tuple[tuple[str, ...], ...], verb: str) -> tuple[str, ...]:
    """The times that go with a verb: what happens daily needs near ones, a remarkable event allows distant ones."""
    flags = FLAGS[verb]
    return table[0] if "daily" in flags else table[2] if "event" in flags else table[1]


def habit(dice: Dice, polarity: str = "") -> When:
    """Draw a habit: every day, often or never."""
    if polarity:
        return When("present", "never" if dice.random() < 0.5 else "not")
    if dice.random() < 0.5:
        return When("present", frequency=dice.choice(FREQUENCIES))
    return When("present", time=dice.choice(HABITS), time_first=dice.random() < 0.3)


def clause_at(subject: Nominal, verb: str, at: When, patient: Nominal | None, places: tuple[Place, ...] = ()) -> Clause:
    """A clause with the tense, polarity and time of `at`."""
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
    """Somebody does something; if `full`, it may also say where, with whom or how."""
    verb = frame.verb
    patient = patient_of(dice, frame, subject, at)
    if not full:
        return clause_at(subject, verb, at, patient)
    roll = dice.random()
    if frame.where and (roll < 0.4 or "placed" in FLAGS[verb]):
        return clause_at(subject, verb, at, patient, (place_of(dice, dice.choice(frame.where)),))
    if roll < 0.6 and frame.human and "with" in FLAGS[verb]:
        return clause_at(subject, verb, at, patient, (companion(dice, subject),))
    manners = MANNERS[verb]
    if manners and roll > 0.7 and not (at.polarity or at.frequency or at.time == "soon"):
        return clause_at(subject, verb, at, patient)._replace(manner=dice.choice(manners))
    return clause_at(subject, verb, at, patient)


def patient_of(dice: Dice, frame: Frame, subject: Nominal, at: When) -> Nominal | None:
    """The object of the verb, if it takes one."""
    if not frame.what:
        return None
    noun = choose_object_noun(dice, frame, subject)
    kinds = KINDS[noun]
    if "fixed" in FLAGS[frame.verb]:
        return NounPhrase(noun, "the" if "instrument" in kinds else "all", noun == "cards")
    if "kin" in kinds:
        return family_member(dice, noun, subject)
    if "person" in kinds:
        return definite(dice, noun)
    if "public" in kinds and frame.verb in ("take", "wait_for"):
        return NounPhrase(noun)
    return object_phrase(dice, frame.verb, noun, subject, at)


def choose_object_noun(dice: Dice, frame: Frame, subject: Nominal) -> str:
    """Draw a noun as the object of a verb; nobody meets himself, and Paul wears no skirt."""
    noun = dice.choice(frame.what)
    if noun in nouns_in(subject) or (
        noun in GROUPS["feminine"] and "own" in FLAGS[frame.verb] and possessive_of(subject) != "her"
    ):
        return choose_object_noun(dice, frame, subject)
    return noun


def object_phrase(dice: Dice, verb: str, noun: str, subject: Nominal, at: When) -> NounPhrase:
    """Draw a thing or an animal as object; the tense and the verb decide its determiner and number."""
    flags = FLAGS[verb]
    unique = noun in GROUPS["only_the"]
    habitual = at.habitual and "sense" not in flags
    plural = 0.0 if "single" in flags or "mishap" in flags or noun in USUALLY_ONE else 0.25
    if "plenty" in flags and (KINDS[noun] & {"fruit", "vegetable"} or noun == "egg"):
        plural = 1.0
    described = 0.0 if "plain" in flags or at.polarity else 0.3
    owner = possessive_of(subject) if "own" in flags and noun in OWNED else ""
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
    counted = "counted" in flags and noun not in USUALLY_ONE and not at.polarity and not habitual
    np = indefinite(dice, noun, described, plural, counted)
    return np._replace(determiner="bare") if habitual and np.determiner == "some" else np


def motion(dice: Dice, verb: str, subject: Nominal, at: When) -> Clause:
    """Somebody goes, comes or arrives somewhere."""
    goal = destination(dice, "at" if verb == "arrive" else "to")
    accompanied = verb != "arrive" and dice.random() < 0.25
    return clause_at(subject, verb, at, None, (goal, companion(dice, subject)) if accompanied else (goal,))


def destination(dice: Dice, preposition: str) -> Place:
    """Draw a destination: "to the market", "to school", "to Japan"; after "arrive": "at the market", "in Japan"."""
    roll = dice.random()
    if roll < 0.3:
        name = dice.choice(CITIES if roll < 0.15 else COUNTRIES)
        return Place("in" if preposition == "at" else preposition, Name(name))
    noun = dice.choice(DESTINATIONS)
    if noun in GROUPS["idiom"]:
        return Place(preposition, NounPhrase(noun, "all"))
    found = appearance(dice, noun, 0.15)
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
    return c._replace(recipient=family_member(dice, noun, subject))


def putting(dice: Dice, verb: str, subject: Nominal, at: When) -> Clause:
    """Somebody puts something somewhere."""
    frame = dice.choice(FRAMES[verb])
    noun = dice.choice(frame.what)
    owner = possessive_of(subject)
    thing = definite(dice, noun)
    if owner and noun in OWNED and dice.random() < 0.3:
        thing = thing._replace(determiner=owner, owner=None)
    goal = location(dice, noun)
    while verb == "hide" and goal.preposition not in HIDING:
        goal = location(dice, noun)
    return clause_at(subject, verb, at, thing, (goal,))


def person_object(dice: Dice, subject: Nominal) -> Clause:
    """Somebody sees, helps or thanks a person who is a pronoun: "she saw me"."""
    verb = dice.choice(GROUPS["person_object"])
    at = when(dice, verb)
    if verb in STATES:
        at = When(dice.choice(("present", "past")), "not" if at.polarity else "")
    return clause_at(subject, verb, at, other_pronoun(dice, subject))
