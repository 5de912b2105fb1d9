"""Draw statements, one function for each pattern: somebody acts, moves, gives, has, likes or wants."""

from __future__ import annotations

from clearhead.corpora.dice import Dice
from clearhead.corpora.grammar.clauses import action, clause_at, giving, motion, person_object, possession, putting
from clearhead.corpora.grammar.compound import all_of
from clearhead.corpora.grammar.frames import (
    ACTION_FRAMES,
    ACTIONS,
    FLAGS,
    FRAMES,
    GENERIC_FRAMES,
    GIVING,
    MODAL_FRAMES,
    PUTTING,
    STATE_FRAMES,
)
from clearhead.corpora.grammar.lexicon import ENGLISH
from clearhead.corpora.grammar.meaning import Clause, Name, Place, Pronoun
from clearhead.corpora.grammar.noun_phrases import (
    CITIES,
    COUNTRIES,
    GROUPS,
)
from clearhead.corpora.grammar.people import PERSON, PRONOUNS, other_pronoun, somebody, somebody_named
from clearhead.corpora.grammar.tenses import When, when

HUMAN_FRAMES = tuple(frames for verb in ACTIONS if (frames := tuple(f for f in FRAMES[verb] if f.human)))
SAME_PAST = tuple(verb for verb in ACTIONS if ENGLISH["verb"][verb][0] == ENGLISH["verb"][verb][2])  # "I read a letter"
TOWARDS_PERSON = {modal: tuple(v for v in GROUPS["person_object"] if v in GROUPS[modal]) for modal in MODAL_FRAMES}


def acting(dice: Dice) -> Clause:
    """Somebody does something."""
    frame = dice.choice(ACTION_FRAMES)
    at = when(dice, frame.verb)
    if not frame.human and at.tense in ("future", "going"):  # animals make no plans
        at = When("past", at.polarity)
    return action(dice, frame, somebody(dice, frame.who, frame.human), at)


def speaking(dice: Dice) -> Clause:
    """A pronoun does something, in few words: "I will close the door"; every verb is as frequent as any other."""
    frame = dice.choice(dice.choice(HUMAN_FRAMES))
    flags = FLAGS[frame.verb]
    tense = dice.choice(("present", "progressive", "past", "future", "future"))
    if "mishap" in flags or ("moment" in flags and tense in ("present", "progressive")):
        tense = "past"
    if "sense" in flags and tense != "past":
        tense = "present"
    if tense == "present" and frame.verb in SAME_PAST:
        tense = "progressive"
    at = When(tense, "not" if dice.random() < 0.2 else "")
    return action(dice, frame, Pronoun(dice.choice(PRONOUNS)), at, full="placed" in flags)


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
    return possession(dice, frame, somebody(dice, frame.who, True))


def liking(dice: Dice) -> Clause:
    """Somebody likes, hates or prefers things of a kind, or somebody."""
    frame = dice.choice(GENERIC_FRAMES)
    polarity = "not" if frame.verb == "like" and dice.random() < 0.35 else ""
    subject = somebody(dice, frame.who, True)
    liked = somebody_named(dice, subject) if dice.random() < 0.2 else all_of(dice.choice(frame.what))
    return Clause(
        subject,
        frame.verb,
        "past" if dice.random() < 0.2 else "present",
        polarity,
        object=liked,
    )


def wishing(dice: Dice) -> Clause:
    """Somebody wants to, can or must do something."""
    modal = dice.choice(("want", "want", "can", "must"))
    frame = dice.choice(MODAL_FRAMES[modal])
    subject = somebody(dice, frame.who, True)
    if dice.random() < 0.15:
        c = clause_at(subject, dice.choice(TOWARDS_PERSON[modal]), When("future"), other_pronoun(dice, subject))
    elif frame.verb in ("go", "come"):
        c = motion(dice, frame.verb, subject, When("future"))
    else:
        c = action(dice, frame, subject, When("future", polarity="not" if dice.random() < 0.2 else ""))
    return c._replace(modal=modal, tense="past" if modal == "want" and dice.random() < 0.25 else "present", manner="")
