"""Draw questions: yes or no, who, what, where, when, why, how many, which colour, how old."""

from __future__ import annotations

from collections.abc import Callable

from clearhead.corpora.dice import Dice
from clearhead.corpora.grammar.clauses import ALSO_OWNED, action, clause_at
from clearhead.corpora.grammar.frames import ACTION_FRAMES, FLAGS, FRAMES
from clearhead.corpora.grammar.meaning import Both, Clause, Interrogative, Nominal, NounPhrase, Pronoun, There
from clearhead.corpora.grammar.noun_phrases import GROUPS, KINDS, MASS, USUALLY_ONE, definite, location
from clearhead.corpora.grammar.people import PERSON, somebody
from clearhead.corpora.grammar.qualities import (
    AGED,
    KIND_OF,
    LOCATED,
    presentation,
    quality,
    quality_of_agent,
    there_is,
    where_it_is,
)
from clearhead.corpora.grammar.relatives import ANYBODY, agent, thing
from clearhead.corpora.grammar.statements import (
    acting,
    handing,
    having,
    identity,
    knowing,
    liking,
    meeting,
    moving,
    wishing,
)
from clearhead.corpora.grammar.tenses import When, when

PUBLIC = ("bus", "train", "plane")
MODAL_OF = {verb: modal for modal in ("must", "can", "want") for verb in GROUPS[modal]}
COLOURED = tuple(noun for noun, kinds in KINDS.items() if "coloured" in kinds)
COUNTING_FRAMES = tuple(f for v in GROUPS["counting"] for f in FRAMES[v] if f.human)
COUNTED = tuple(noun for noun in LOCATED if not KINDS[noun] & {"kin", "stuff", "royal"})
PLANNED_FRAMES = tuple(frame for frame in ACTION_FRAMES if "sense" not in FLAGS[frame.verb])


def asking(dice: Dice) -> Interrogative:
    """Draw a question; nobody asks about his own actions."""
    found = dice.choice(QUESTIONS)(dice)
    return asking(dice) if isinstance(found.about, Clause) and found.about.subject == Pronoun("i") else found


def asked_about(dice: Dice, nouns: tuple[str, ...], human: bool) -> Nominal:
    """Draw the subject of a question; questions are often about "you"."""
    return Pronoun("you") if human and dice.random() < 0.2 else somebody(dice, nouns, human)


def ask_yes_no(dice: Dice) -> Interrogative:
    """Draw a yes-no question: "did she go to the market?"."""
    c = dice.choice(STATEMENTS)(dice)
    if isinstance(c, There):
        determiner = "some" if c.what.determiner == "no" else c.what.determiner
        return Interrogative("", c._replace(what=c.what._replace(determiner=determiner), tense="present"))
    return Interrogative("", c._replace(polarity="", time_first=False))


def ask_circumstance(dice: Dice) -> Interrogative:
    """Ask where, when or why somebody does something."""
    frame = dice.choice(PLANNED_FRAMES)
    ask = "why" if not frame.human else dice.choice(("where", "when", "why") if frame.where else ("when", "why"))
    tense = dice.choice(
        ("past", "future", "present") if ask == "when" else ("past", "future", "progressive", "present")
    )
    flags = FLAGS[frame.verb]
    if not frame.human and tense == "future":  # animals make no plans
        tense = "past"
    if "mishap" in flags or ("moment" in flags and tense in ("progressive", "present")):
        tense = "past"
    wished = MODAL_OF.get(frame.verb) if frame.human and ask != "why" and dice.random() < 0.2 else None
    if wished:
        c = action(dice, frame, asked_about(dice, frame.who, True), When("future"), full=False)
        return Interrogative(ask, c._replace(modal=wished, tense="present"))
    at = When(tense, "not" if ask == "why" and dice.random() < 0.25 else "")
    return Interrogative(ask, action(dice, frame, asked_about(dice, frame.who, frame.human), at, full=ask == "why"))


def ask_who(dice: Dice) -> Interrogative:
    """Ask who does something."""
    frame = dice.choice(ACTION_FRAMES)
    while not frame.human:
        frame = dice.choice(ACTION_FRAMES)
    at = when(dice, frame.verb, denial=0.0)._replace(time_first=False)
    return Interrogative("who", action(dice, frame, Pronoun("who?"), at))


def ask_what(dice: Dice) -> Interrogative:
    """Ask what somebody eats, reads or buys."""
    frame = FRAMES[dice.choice(GROUPS["asked_what"])][0]
    at = when(dice, frame.verb, denial=0.0)._replace(time_first=False)
    subject = asked_about(dice, frame.who, frame.human)
    if frame.verb in GROUPS["want"] and dice.random() < 0.25:
        return Interrogative("what", Clause(subject, frame.verb, modal="want"))
    c = action(dice, frame, subject, at)
    return Interrogative("what", c._replace(object=None, manner=""))


def ask_whom(dice: Dice) -> Interrogative:
    """Ask whom somebody sees or helps: "who did you meet at the station?"."""
    verb = dice.choice(("see", "meet", "help", "call", "look_for", "wait_for", "love", "know", "thank", "follow"))
    at = When("present") if "state" in FLAGS[verb] else when(dice, verb, denial=0.0)._replace(time_first=False)
    return Interrogative("whom", clause_at(asked_about(dice, PERSON, True), verb, at, None))


def ask_about_state(dice: Dice) -> Interrogative:
    """Ask where somebody lives, what somebody wants, when the train leaves."""
    ask = dice.choice(("where", "what", "when"))
    if ask == "when":
        public = dice.random() < 0.5
        verb = dice.choice(("arrive", "leave") if public else ("arrive", "arrive", "come", "leave"))
        tense = dice.choice(("present", "past", "future"))
        subject = NounPhrase(dice.choice(PUBLIC)) if public else asked_about(dice, PERSON, True)
        return Interrogative(ask, Clause(subject, verb, tense))
    verb = "live" if ask == "where" else dice.choice(("want", "prefer", "have"))
    tense = "past" if dice.random() < 0.2 else "present"
    subject = asked_about(dice, PERSON, True)
    places = (location(dice, "key"),) if verb == "have" else ()
    while places and places[0].preposition != "in":
        places = (location(dice, "key"),)
    return Interrogative(ask, Clause(subject, verb, tense, places=places))


def ask_how_many(dice: Dice) -> Interrogative:
    """Ask how many things somebody has, buys or sees, or how many people do something."""
    roll = dice.random()
    if roll < 0.2:
        noun = dice.choice(COUNTED)
        return Interrogative("how_many", There(NounPhrase(noun), location(dice, noun)))
    if roll < 0.35:
        frame = dice.choice(ACTION_FRAMES)
        nouns = tuple(noun for noun in frame.who if noun not in GROUPS["only_the"] and "kin" not in KINDS[noun])
        at = When(dice.choice(("past", "progressive")) if "moment" not in FLAGS[frame.verb] else "past")
        if not nouns:
            return ask_how_many(dice)
        return Interrogative("who", action(dice, frame, NounPhrase(dice.choice(nouns), "how_many", True), at))
    frame = dice.choice(COUNTING_FRAMES)
    noun = dice.choice((*frame.what, *ALSO_OWNED) if frame.verb == "have" else frame.what)
    one = noun in USUALLY_ONE and frame.verb not in ("have", "see", "sell", "buy", "build")
    if one or noun in GROUPS["only_the"] or (frame.verb == "know" and noun in PERSON):
        return ask_how_many(dice)
    at = When("present") if "state" in FLAGS[frame.verb] else when(dice, frame.verb, denial=0.0)
    if at.tense != "past" and "state" not in FLAGS[frame.verb] and dice.random() < 0.4:
        at = When("past")
    counted = Pronoun("that", NounPhrase(noun, plural=noun not in MASS))
    c = clause_at(asked_about(dice, frame.who, True), frame.verb, at._replace(time_first=False, frequency=""), counted)
    return Interrogative("how_many", c)


def ask_about_thing(dice: Dice) -> Interrogative:
    """Ask where or who somebody is, what colour something has, or how old somebody is."""
    ask = dice.choice(("where", "where", "colour", "age", "age", "who_is"))
    if ask == "age":
        tense = "past" if dice.random() < 0.3 else "present"
        now = tense == "present" and dice.random() < 0.2
        return Interrogative(ask, Clause(asked_about(dice, AGED, True), "be", tense, time="now" if now else ""))
    if ask == "who_is":
        np = agent(dice, True) if dice.random() < 0.5 else NounPhrase(dice.choice(ANYBODY), "this", dice.chance(0.2))
        return Interrogative(ask, Clause(np, "be"))
    if ask == "colour":
        return Interrogative(ask, Clause(definite(dice, dice.choice(COLOURED), 0.0), "be"))
    found = asked_about(dice, PERSON, True) if dice.random() < 0.2 else somewhere(dice)
    if dice.random() < 0.7:
        return Interrogative(ask, Clause(found, "be"))
    return Interrogative(
        ask, Clause(found, "be", "past", time=dice.choice(("", "yesterday", "this_morning", "last_night")))
    )


def somewhere(dice: Dice) -> Nominal:
    """Draw what a question for a place is about: a thing, two things or a person."""
    roll = dice.random()
    if roll < 0.2:
        return somebody(dice, PERSON, True, 0.0)
    if roll < 0.4:
        return agent(dice) if roll < 0.3 else thing(dice, LOCATED)
    np = definite(dice, dice.choice(LOCATED), 0.0)
    if roll < 0.9:
        return np
    other = definite(dice, dice.choice(LOCATED), 0.0)
    return Both(np, other) if other.noun != np.noun and KIND_OF[other.noun] == KIND_OF[np.noun] else np


STATEMENTS: tuple[Callable[[Dice], Clause | There], ...] = (
    acting, acting, moving, meeting, handing, having, having, quality, where_it_is, liking, wishing, wishing, there_is,
    presentation, identity, knowing, quality_of_agent,
)  # fmt: skip
QUESTIONS = (
    *(ask_yes_no,) * 5,
    *(ask_circumstance,) * 4,
    *(ask_who, ask_what, ask_about_thing) * 2,
    *(ask_how_many,) * 4,
    *(ask_whom, ask_about_state, ask_about_state),
)
