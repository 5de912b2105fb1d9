"""Draw statements, one function for each pattern.

Somebody acts, moves, gives, has, likes or wants something, or is somebody; people and things may be known by a relative
clause ("the boy who lost his key").
"""

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
    Frame,
)
from clearhead.corpora.grammar.lexicon import ENGLISH, expand_kinds
from clearhead.corpora.grammar.meaning import Clause, Name, Nominal, NounPhrase, Place, Pronoun
from clearhead.corpora.grammar.noun_phrases import (
    CITIES,
    COUNTRIES,
    FEMALE_NAMES,
    GROUPS,
    KINDS,
    MALE_NAMES,
    NAMES,
    OWNERS,
)
from clearhead.corpora.grammar.people import PERSON, PRONOUNS, other_pronoun, somebody, somebody_named
from clearhead.corpora.grammar.qualities import JOBS, PRESENTED
from clearhead.corpora.grammar.relatives import ANYBODY, agent, identifying, thing
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


UNEMPLOYED = (*JOBS, "child", "boy", "girl", "king", "queen", "princess")  # nobody says that they have a profession
EITHER = ("friend", "friend", "neighbour")  # relatives of either gender
MALE = (*EITHER, *expand_kinds("brother uncle father son grandfather"))
FEMALE = (*EITHER, *expand_kinds("sister aunt mother daughter grandmother"))
ELDERS = ("father", "mother", "uncle", "aunt", "grandfather", "grandmother")
KNOWING = ("know", "see", "meet", "help", "call", "wait_for", "look_for", "thank", "talk_to", "follow")
TREASURED = ("buy", "find", "lose", "see", "look_for", "choose", "read", "eat")
OBJECTS_OF = {verb: tuple(n for f in ACTION_FRAMES if f.verb == verb and f.human for n in f.what) for verb in TREASURED}
FRAMES_OF: dict[str, tuple[Frame, ...]] = {
    noun: tuple(frame for frame in ACTION_FRAMES if noun in frame.who) for noun in KINDS
}


def identity(dice: Dice) -> Clause:
    """Draw who somebody is: "the girl who is singing is my friend", "he is Anna's uncle", "she is a doctor"."""
    roll = dice.random()
    if roll < 0.6:
        subject: Nominal = agent(dice, human=True)
    elif roll < 0.75:
        subject = NounPhrase(dice.choice(ANYBODY), dice.choice(("the", "this")))
    else:
        subject = Name(dice.choice(NAMES)) if roll < 0.88 else Pronoun(dice.choice(("he", "she", "they", "you")))
    polarity = "not" if dice.random() < 0.12 else ""
    return Clause(subject, "be", "past" if dice.random() < 0.1 else "present", polarity, predicate=role(dice, subject))


def role(dice: Dice, subject: Nominal) -> NounPhrase:
    """Draw what a person is to somebody, or a profession, of the subject's gender and number."""
    gender, many = gender_of(subject)
    job = dice.choice(JOBS)
    if dice.random() < 0.25 and not (isinstance(subject, NounPhrase) and subject.noun in UNEMPLOYED):
        return NounPhrase(job, "bare" if many else "a", many)
    nouns = MALE if gender == "male" else FEMALE if gender == "female" else EITHER
    if isinstance(subject, NounPhrase) and "youngster" in KINDS[subject.noun]:
        nouns = tuple(noun for noun in nouns if noun not in ELDERS)
    noun = dice.choice(tuple(n for n in nouns if "sibling" in KINDS[n]) if many else nouns)
    if many and noun in ("friend", "brother", "sister") and dice.random() < 0.3:
        return NounPhrase(noun, "bare", many)  # "they are friends"
    if dice.random() < 0.2:
        return NounPhrase(noun, "of", many, owner=somebody_named(dice, subject))
    return NounPhrase(noun, dice.choice(OWNERS), many)


def gender_of(subject: Nominal) -> tuple[str, bool]:
    """The gender of a subject ("male", "female" or "" if its noun does not say) and whether it is plural."""
    if isinstance(subject, Name):
        return "male" if subject.name in MALE_NAMES else "female" if subject.name in FEMALE_NAMES else "", False
    if isinstance(subject, Pronoun):
        return {"he": "male", "she": "female"}.get(subject.word, ""), subject.word == "they"
    assert isinstance(subject, NounPhrase)
    return next((kind for kind in ("male", "female") if kind in KINDS[subject.noun]), ""), subject.plural


def agent_acting(dice: Dice) -> Clause:
    """Draw what somebody known by one action does: "the boy who lost his key is crying"."""
    np = agent(dice)
    frames = tuple(frame for frame in FRAMES_OF[np.noun] if np.relative is None or frame.verb != np.relative.verb)
    if not frames:
        return agent_acting(dice)
    frame = dice.choice(frames)
    at = identifying(dice, frame.verb)
    if frame.human and at.tense == "past" and "mishap" not in FLAGS[frame.verb] and dice.random() < 0.3:
        at = When("future")
    return action(dice, frame, np, at, dice.chance(0.3))


def knowing(dice: Dice) -> Clause:
    """Draw an object known by a relative clause: "I know the woman who is talking to your brother"."""
    subject = somebody(dice, PERSON, human=True, described=0.0)
    if dice.random() < 0.6:
        verb = dice.choice(KNOWING)
        found = agent(dice, human=True)
    else:
        verb = dice.choice(TREASURED)
        found = thing(dice, OBJECTS_OF[verb])
    if found.relative is not None and found.relative.verb == verb:
        return knowing(dice)
    if "state" in FLAGS[verb]:
        return clause_at(subject, verb, When("present", "not" if dice.random() < 0.3 else ""), found)
    at = When(dice.choice(("past", "past", "future")), "not" if dice.random() < 0.15 else "")
    return clause_at(subject, verb, When("past") if "mishap" in FLAGS[verb] else at, found)


def presenting(dice: Dice) -> Clause:
    """Draw a presentation of somebody or something known: "this is the boy who broke the window"."""
    np = agent(dice, human=True) if dice.random() < 0.5 else thing(dice, PRESENTED)
    return Clause(Pronoun("this", np), "be", "present", "not" if dice.random() < 0.15 else "", predicate=np)
