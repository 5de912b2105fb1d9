"""Draw statements, one function for each pattern: somebody acts, moves, gives, has, likes or wants."""

from __future__ import annotations

from clearhead.corpora.dice import Dice
from clearhead.corpora.grammar.clauses import action, giving, motion, patient_of, person_object, putting
from clearhead.corpora.grammar.compound import all_of
from clearhead.corpora.grammar.frames import (
    ACTION_FRAMES,
    FRAMES,
    GENERIC_FRAMES,
    GIVING,
    MODAL_FRAMES,
    PUTTING,
    STATE_FRAMES,
)
from clearhead.corpora.grammar.meaning import Clause, Name, NounPhrase, Place
from clearhead.corpora.grammar.noun_phrases import (
    CITIES,
    COUNTRIES,
    KINDS,
    USUALLY_ONE,
    adjectives,
    indefinite,
    place_of,
)
from clearhead.corpora.grammar.people import PERSON, somebody
from clearhead.corpora.grammar.tenses import When, when


def acting(dice: Dice) -> Clause:
    """Somebody does something."""
    frame = dice.choice(ACTION_FRAMES)
    at = when(dice, frame.verb)
    if not frame.human and at.tense in ("future", "going"):  # animals make no plans
        at = When("past", at.polarity)
    return action(dice, frame, somebody(dice, frame.who, frame.human), at)


def moving(dice: Dice) -> Clause:
    """Somebody goes somewhere."""
    verb = dice.choice(("go", "go", "come", "arrive"))
    if verb == "come" and dice.random() < 0.4:
        origin = Name(dice.choice(CITIES + COUNTRIES))
        return Clause(
            somebody(dice, PERSON, True),
            "come",
            "present",
            "not" if dice.random() < 0.2 else "",
            places=(Place("from", origin),),
        )
    return motion(dice, verb, somebody(dice, PERSON, True), when(dice, verb))


def meeting(dice: Dice) -> Clause:
    """Somebody does something to a person who is a pronoun."""
    return person_object(dice, somebody(dice, PERSON, True))


def handing(dice: Dice) -> Clause:
    """Somebody gives something to somebody."""
    frame = FRAMES[dice.choice(GIVING)][0]
    at = when(dice, frame.verb)
    if at.habitual:
        at = When("present", frequency="often") if frame.verb in ("give", "bring", "send", "write") else When("past")
    return giving(dice, frame, somebody(dice, frame.who, True), at)


def placing(dice: Dice) -> Clause:
    """Somebody puts something somewhere."""
    verb = dice.choice(PUTTING)
    return putting(dice, verb, somebody(dice, PERSON, True), when(dice, verb))


def having(dice: Dice) -> Clause:
    """Somebody loves, knows, has or wants something, or lives somewhere."""
    frame = dice.choice(STATE_FRAMES)
    subject = somebody(dice, frame.who, True)
    at = When("past" if dice.random() < 0.3 else "present", "not" if dice.random() < 0.25 else "")
    c = Clause(subject, frame.verb, at.tense, at.polarity)
    if frame.verb == "live":
        return c._replace(places=(place_of(dice, dice.choice(frame.where)),))
    if frame.verb not in ("have", "want"):
        return c._replace(object=patient_of(dice, frame, subject, at._replace(tense="past")))
    noun = dice.choice(frame.what)
    kin = "kin" in KINDS[noun]
    described = 0.0 if kin else 0.4
    if frame.verb == "have" and not at.polarity and noun not in USUALLY_ONE and dice.random() < 0.3:
        few = ("few", "many") if not kin else ()
        count = dice.choice(("two", "three", "four", "five", *few))
        return c._replace(object=NounPhrase(noun, count, True, adjectives(dice, noun, described)))
    return c._replace(object=indefinite(dice, noun, described, 0.0 if kin or noun in USUALLY_ONE else 0.25))


def liking(dice: Dice) -> Clause:
    """Somebody likes, hates or prefers things of a kind."""
    frame = dice.choice(GENERIC_FRAMES)
    polarity = "not" if frame.verb == "like" and dice.random() < 0.35 else ""
    subject = somebody(dice, frame.who, True)
    return Clause(
        subject,
        frame.verb,
        "past" if dice.random() < 0.2 else "present",
        polarity,
        object=all_of(dice.choice(frame.what)),
    )


def wishing(dice: Dice) -> Clause:
    """Somebody wants to, can or must do something."""
    modal = dice.choice(("want", "want", "can", "must"))
    frame = dice.choice(MODAL_FRAMES[modal])
    subject = somebody(dice, frame.who, True)
    if frame.verb in ("go", "come"):
        c = motion(dice, frame.verb, subject, When("future"))
    else:
        c = action(dice, frame, subject, When("future", polarity="not" if dice.random() < 0.2 else ""))
    return c._replace(modal=modal, tense="past" if modal == "want" and dice.random() < 0.25 else "present", manner="")
