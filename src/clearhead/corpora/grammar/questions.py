"""Draw questions: yes or no, who, what, where, when, why, how many, which colour, how old."""

from __future__ import annotations

from clearhead.corpora.dice import Dice
from clearhead.corpora.grammar.clauses import action
from clearhead.corpora.grammar.frames import ACTION_FRAMES, FLAGS, FRAMES
from clearhead.corpora.grammar.meaning import Clause, NounPhrase, Pronoun, Question, There
from clearhead.corpora.grammar.noun_phrases import KINDS, definite, location
from clearhead.corpora.grammar.people import somebody
from clearhead.corpora.grammar.qualities import AGED, LOCATED, quality, where_it_is
from clearhead.corpora.grammar.statements import acting, handing, having, liking, meeting, moving
from clearhead.corpora.grammar.tenses import When, when

COLOURED = tuple(noun for noun, kinds in KINDS.items() if "coloured" in kinds)
COUNTED = tuple(noun for noun in LOCATED if not KINDS[noun] & {"kin", "stuff", "royal"})
PLANNED_FRAMES = tuple(frame for frame in ACTION_FRAMES if "sense" not in FLAGS[frame.verb])
ASKED_WHAT = (
    "eat",
    "drink",
    "read",
    "buy",
    "look_for",
    "make",
    "draw",
    "plant",
    "write",
    "see",
    "find",
    "choose",
    "wear",
)


def asking(dice: Dice) -> Question:
    """Draw a question; nobody asks about his own actions."""
    found = dice.choice(QUESTIONS)(dice)
    return asking(dice) if isinstance(found.about, Clause) and found.about.subject == Pronoun("i") else found


def ask_yes_no(dice: Dice) -> Question:
    """Draw a yes-no question: "did she go to the market?"."""
    c = dice.choice((acting, acting, moving, meeting, handing, having, quality, where_it_is, liking))(dice)
    return Question("", c._replace(polarity="", time_first=False))


def ask_circumstance(dice: Dice) -> Question:
    """Ask where, when or why somebody does something."""
    frame = dice.choice(PLANNED_FRAMES)
    ask = "why" if not frame.human else dice.choice(("where", "when", "why") if frame.where else ("when", "why"))
    tense = dice.choice(("past", "future", "progressive") if ask != "when" else ("past", "future"))
    flags = FLAGS[frame.verb]
    if not frame.human and tense == "future":  # animals make no plans
        tense = "past"
    if "mishap" in flags or ("moment" in flags and tense == "progressive"):
        tense = "past"
    at = When(tense, "not" if ask == "why" and dice.random() < 0.25 else "")
    return Question(ask, action(dice, frame, somebody(dice, frame.who, frame.human), at, full=ask == "why"))


def ask_who(dice: Dice) -> Question:
    """Ask who does something."""
    frame = dice.choice(ACTION_FRAMES)
    while not frame.human:
        frame = dice.choice(ACTION_FRAMES)
    at = when(dice, frame.verb, denial=0.0)._replace(time_first=False)
    return Question("who", action(dice, frame, Pronoun("who?"), at))


def ask_what(dice: Dice) -> Question:
    """Ask what somebody eats, reads or buys."""
    frame = FRAMES[dice.choice(ASKED_WHAT)][0]
    at = when(dice, frame.verb, denial=0.0)._replace(time_first=False)
    c = action(dice, frame, somebody(dice, frame.who, frame.human), at)
    return Question("what", c._replace(object=None, manner=""))


def ask_about_thing(dice: Dice) -> Question:
    """Ask where something is, what colour it has, how many there are, or how old somebody is."""
    ask = dice.choice(("where", "colour", "how_many", "age"))
    if ask == "how_many":
        noun = dice.choice(COUNTED)
        return Question(ask, There(NounPhrase(noun), location(dice, noun)))
    if ask == "age":
        subject = somebody(dice, AGED, True, 0.0)
        if isinstance(subject, Pronoun):
            subject = definite(dice, dice.choice(AGED), 0.0)
        return Question(ask, Clause(subject, "be"))
    noun = dice.choice(COLOURED if ask == "colour" else LOCATED)
    return Question(ask, Clause(definite(dice, noun, 0.0), "be"))


QUESTIONS = (ask_yes_no,) * 4 + (ask_circumstance,) * 4 + (ask_who,) * 2 + (ask_what,) * 2 + (ask_about_thing,)
