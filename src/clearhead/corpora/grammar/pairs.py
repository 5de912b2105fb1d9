"""Draw two independent clauses with different subjects: "I am hungry and she is thirsty"."""

from __future__ import annotations

from clearhead.corpora.dice import Dice
from clearhead.corpora.grammar.clauses import action, possession
from clearhead.corpora.grammar.compound import all_of
from clearhead.corpora.grammar.frames import ACTION_FRAMES, FLAGS, STATE_FRAMES
from clearhead.corpora.grammar.meaning import Both, Clause, Joined, Nominal, NounPhrase, Pronoun, Quality
from clearhead.corpora.grammar.noun_phrases import GROUPS, INNER_OF, PREDICATES_OF, TASTES, definite, location
from clearhead.corpora.grammar.people import PERSON, nouns_in, somebody
from clearhead.corpora.grammar.qualities import HUMAN_QUALITIES, LOCATED, THINGS, degree
from clearhead.corpora.grammar.tenses import When

SIMPLE_FRAMES = tuple(frame for frame in ACTION_FRAMES if not {"moment", "sense", "mishap"} & {*FLAGS[frame.verb]})
OWNING_FRAMES = tuple(frame for frame in STATE_FRAMES if frame.verb in ("have", "want", "live"))
EARLIER = {"past": "past"}  # the tense of a state beside an action; beside a future one, it is in the present


def feeling(dice: Dice, tense: str) -> Clause:
    """Draw how somebody is: "I am hungry"."""
    subject = somebody(dice, PERSON, human=True, described=0.0)
    adjective = dice.choice(HUMAN_QUALITIES)
    polarity = "not" if dice.random() < 0.12 else ""
    predicate = Quality(adjective, degree(dice, adjective))
    return Clause(subject, "be", EARLIER.get(tense, "present"), polarity, predicate=predicate)


def appearance_of(dice: Dice, tense: str) -> Clause:
    """Draw how a thing or an animal is: "the red car is fast"."""
    noun = dice.choice(THINGS)
    np = definite(dice, noun, 0.0)
    adjective = dice.choice(PREDICATES_OF[noun])
    if adjective not in GROUPS["inner"] and INNER_OF[noun] and dice.random() < 0.3:
        np = np._replace(adjectives=(dice.choice(INNER_OF[noun]),))
    polarity = "not" if dice.random() < 0.1 else ""
    predicate = Quality(adjective, degree(dice, adjective))
    return Clause(np, "be", EARLIER.get(tense, "present"), polarity, predicate=predicate)


def doing(dice: Dice, tense: str) -> Clause:
    """Draw what somebody does: "my father is sleeping"."""
    frame = dice.choice(SIMPLE_FRAMES)
    if not frame.human and tense == "future":
        tense = "progressive"
    polarity = "not" if dice.random() < 0.1 else ""
    at = When("present" if tense == "progressive" and dice.random() < 0.2 else tense, polarity)
    return action(dice, frame, somebody(dice, frame.who, frame.human, 0.0), at, full=False)


def owning(dice: Dice, tense: str) -> Clause:
    """Draw what somebody has or wants: "he has two cats"."""
    frame = dice.choice(OWNING_FRAMES)
    c = possession(dice, frame, somebody(dice, frame.who, True, 0.0))
    return c._replace(tense=EARLIER.get(tense, "present"))


def tasting(dice: Dice, tense: str) -> Clause:
    """Draw what somebody likes: "my sister likes coffee"."""
    noun = dice.choice(dice.choice(TASTES))
    polarity = "not" if dice.random() < 0.2 else ""
    subject = somebody(dice, PERSON, human=True, described=0.0)
    return Clause(subject, "like", EARLIER.get(tense, "present"), polarity, object=all_of(noun))


def standing(dice: Dice, tense: str) -> Clause:
    """Draw where something is: "the keys are on the table"."""
    noun = dice.choice(LOCATED)
    np = somebody(dice, PERSON, True, 0.0) if noun in PERSON else definite(dice, noun, 0.0)
    return Clause(np, "be", EARLIER.get(tense, "present"), predicate=location(dice, noun))


def raining(dice: Dice, tense: str) -> Clause:
    """Draw the weather: "it is raining"."""
    it = Pronoun("weather")
    if dice.random() < 0.5:
        return Clause(it, "be", EARLIER.get(tense, "present"), predicate=Quality(dice.choice(("cold", "hot"))))
    return Clause(it, dice.choice(("rain", "snow")), "background" if tense == "past" else "progressive")


SIDES = (feeling,) * 3 + (appearance_of,) * 4 + (doing,) * 5 + (owning,) * 3 + (tasting, standing, raining)


def side_by_side(dice: Dice) -> Joined:
    """Draw two clauses with different subjects, often about the same: "the king is old and the queen is young"."""
    tense = dice.choice(("progressive", "progressive", "past", "future"))
    draw_first = dice.choice(SIDES)
    draw_second = draw_first if draw_first is not raining and dice.random() < 0.5 else dice.choice(SIDES[:-1])
    first = draw_first(dice, tense)
    second = draw_second(dice, tense)
    while not independent(first.subject, second.subject):
        second = draw_second(dice, tense)
    roll = dice.random()
    conjunction = "because" if roll < 0.25 and draw_first is feeling else "but" if roll < 0.35 else "and"
    return Joined(conjunction, first, second)


def independent(first: Nominal, second: Nominal) -> bool:
    """Whether a second subject is another than the first, and no pronoun that may refer to it."""
    if first == second or set(nouns_in(first)) & set(nouns_in(second)):
        return False
    many = isinstance(first, Both) or (isinstance(first, NounPhrase) and first.plural) or first == Pronoun("they")
    return not (many and second == Pronoun("they"))  # "elles" if it refers to women, "ils" if not
