"""Draw clauses that make sense: who does what to what, where, when and how."""

from __future__ import annotations

from clearhead.corpora.dice import Dice
from clearhead.corpora.grammar.frames import DESTINATIONS, FLAGS, FRAMES, MANNERS, STATES, Frame
from clearhead.corpora.grammar.lexicon import expand_kinds
from clearhead.corpora.grammar.meaning import Both, Clause, Name, Nominal, NounPhrase, Place
from clearhead.corpora.grammar.noun_phrases import (
    CITIES,
    COUNTRIES,
    GROUPS,
    KINDS,
    MASS,
    OWNED,
    PLACES,
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
    companion,
    family_member,
    nouns_in,
    other_pronoun,
    possessive_of,
    somebody_named,
)
from clearhead.corpora.grammar.tenses import When, when

UNPAIRED = {"fixed", "single", "mishap"}  # flags of verbs that take one object: "she is wearing a coat"
ALSO_OWNED = expand_kinds("book child letter photo pen notebook bag")
HIDING = ("in", "under", "behind")
GIVEN_TO = expand_kinds("youngster man woman royal teacher doctor farmer")


def clause_at(subject: Nominal, verb: str, at: When, patient: Nominal | None, places: tuple[Place, ...] = ()) -> Clause:
    """A clause with the tense, polarity and time of `at`."""
    return Clause(subject, verb, object=patient, places=places, **at._asdict())


def action(dice: Dice, frame: Frame, subject: Nominal, at: When, full: bool = True) -> Clause:
    """Somebody does something; if `full`, it may also say where, with whom or how."""
    verb = frame.verb
    patient = patient_of(dice, frame, subject, at)
    if patient is not None and not at.polarity and dice.random() < 0.04:
        patient = two_things(dice, frame, patient)
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
    if "person" in kinds and dice.random() < 0.3:
        return somebody_named(dice, subject)
    if "kin" in kinds:
        return family_member(dice, noun, subject)
    if "person" in kinds:
        return definite(dice, noun)
    if "public" in kinds and frame.verb in ("take", "wait_for"):
        return NounPhrase(noun)
    return object_phrase(dice, frame.verb, noun, subject, at)


def two_things(dice: Dice, frame: Frame, first: Nominal) -> Nominal:
    """Draw a second object: "the bread and the cheese"; the first alone if the verb or the object allows no other."""
    second = dice.choice(frame.what)
    if not isinstance(first, NounPhrase) or second == first.noun or UNPAIRED & {*FLAGS[frame.verb]}:
        return first
    if {second, first.noun} & set(KIN) or frame.verb in ("talk_to", "talk_about") or first.determiner != "the":
        return first
    many = second not in MASS and (first.plural or "plural" in KINDS[second]) and second not in GROUPS["only_the"]
    return Both(first, NounPhrase(second, "the", many))


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
    if dice.random() < 0.3:
        return c._replace(recipient=somebody_named(dice, subject))
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


def possession(dice: Dice, frame: Frame, subject: Nominal) -> Clause:
    """Somebody loves, knows, has or wants something, or lives somewhere."""
    at = When("past" if dice.random() < 0.3 else "present", "not" if dice.random() < 0.25 else "")
    c = Clause(subject, frame.verb, at.tense, at.polarity)
    if frame.verb == "live":
        where = home(dice, frame) if dice.random() < 0.3 else place_of(dice, dice.choice(frame.where))
        return c._replace(places=(where,))
    if frame.verb not in ("have", "want"):
        return c._replace(object=patient_of(dice, frame, subject, at._replace(tense="past")))
    noun = dice.choice(frame.what + ALSO_OWNED if frame.verb == "have" else frame.what)
    kin = "kin" in KINDS[noun]
    described = 0.0 if kin else 0.4
    if frame.verb == "have" and not at.polarity and noun not in USUALLY_ONE and dice.random() < 0.3:
        few = ("few", "many") if not kin else ()
        count = dice.choice(("two", "three", "four", "five", *few))
        return c._replace(object=NounPhrase(noun, count, True, adjectives(dice, noun, described)))
    return c._replace(object=indefinite(dice, noun, described, 0.0 if kin or noun in USUALLY_ONE else 0.25))


def home(dice: Dice, frame: Frame) -> Place:
    """Draw a place to live that is described: "in a small village near the sea", "in this house"."""
    noun = dice.choice(tuple(where for where in frame.where if where not in ("city", "country")))
    preposition = dice.choice(PLACES[noun])
    if dice.random() < 0.3:
        return Place(preposition, NounPhrase(noun, "this"))
    np = NounPhrase(noun, "a", False, appearance(dice, noun, 0.5))
    near = NounPhrase(dice.choice(tuple(n for n in ("sea", "river", "lake", "forest", "mountain") if n != noun)))
    return Place(preposition, np._replace(place=Place(dice.choice(("near", "near", "far_from")), near)))


def person_object(dice: Dice, subject: Nominal) -> Clause:
    """Somebody sees, helps or thanks a person who is a pronoun or has a name: "she saw me", "she saw Paul"."""
    verb = dice.choice(GROUPS["person_object"])
    at = when(dice, verb)
    if verb in STATES:
        at = When(dice.choice(("present", "past")), "not" if at.polarity else "")
    whom = somebody_named(dice, subject) if dice.random() < 0.25 else other_pronoun(dice, subject)
    return clause_at(subject, verb, at, whom)
