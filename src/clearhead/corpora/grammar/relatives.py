"""Draw noun phrases with a relative clause: "the girl who is singing", "the book that Anna bought"."""

from __future__ import annotations

from clearhead.corpora.dice import Dice
from clearhead.corpora.grammar.clauses import action, clause_at, possession
from clearhead.corpora.grammar.frames import ACTION_FRAMES, FLAGS, FRAMES, STATE_FRAMES
from clearhead.corpora.grammar.meaning import Clause, NounPhrase, Pronoun
from clearhead.corpora.grammar.noun_phrases import GROUPS, KINDS, appearance
from clearhead.corpora.grammar.people import PERSON, other_pronoun, somebody
from clearhead.corpora.grammar.tenses import When

ANYBODY = tuple(noun for noun in PERSON if "kin" not in KINDS[noun])
STATES = tuple(frame for frame in STATE_FRAMES if frame.verb in ("have", "live", "want"))
VERBS_DONE_WITH = {
    noun: tuple(
        verb for verb in GROUPS["transitive"] if any(noun in frame.what and frame.human for frame in FRAMES[verb])
    )
    for noun in KINDS
}


def agent(dice: Dice, human: bool = False) -> NounPhrase:
    """Draw a person or an animal known by what it does: "the girl who is singing", "the dog that broke the vase"."""
    frame = dice.choice(ACTION_FRAMES)
    nouns = tuple(noun for noun in frame.who if "kin" not in KINDS[noun])
    if (human and not frame.human) or not nouns:
        return agent(dice, human)
    noun = dice.choice(nouns)
    many = noun not in GROUPS["only_the"] and dice.random() < 0.25
    np = NounPhrase(noun, "the", many, appearance(dice, noun, 0.1))
    if not frame.human:
        relative = action(dice, frame, Pronoun("that", np), identifying(dice, frame.verb), dice.chance(0.5))
        return np._replace(relative=relative._replace(manner=""))
    who = Pronoun("who", np)
    roll = dice.random()
    if roll < 0.15:
        return np._replace(relative=towards_somebody(dice, who))
    if roll < 0.3:
        return np._replace(relative=possession(dice, dice.choice(STATES), who))
    relative = action(dice, frame, who, identifying(dice, frame.verb), dice.chance(0.4))
    return np._replace(relative=relative._replace(manner=""))  # "the fox that is drinking slowly ran" has two readings


def identifying(dice: Dice, verb: str) -> When:
    """Draw the tense of a relative clause: what somebody is doing, did once or does in general."""
    flags = FLAGS[verb]
    roll = dice.random()
    if "sense" in flags and roll > 0.4:
        return When("present")
    if roll < 0.35 or "mishap" in flags or "moment" in flags:
        return When("past", "not" if roll < 0.04 and "mishap" not in flags else "")
    if roll < 0.75:
        return When("progressive")
    return When("present", "not" if dice.random() < 0.3 else "")


def towards_somebody(dice: Dice, who: Pronoun) -> Clause:
    """Draw what somebody does to a person who is a pronoun: "who helped me"."""
    verb = dice.choice(GROUPS["person_object"])
    at = When("present") if "state" in FLAGS[verb] else identifying(dice, verb)
    return clause_at(who, verb, at, other_pronoun(dice, who))


def relative_clause(dice: Dice, np: NounPhrase) -> Clause | None:
    """Draw a relative clause about a thing: "that Anna bought"; None if no verb is known for it."""
    verbs = VERBS_DONE_WITH[np.noun]
    if not verbs:
        return None
    verb = dice.choice(verbs)
    subject = somebody(dice, tuple(n for n in ANYBODY if n not in ("king", "queen")), human=True, described=0.0)
    return Clause(subject, verb, tense_of_object_clause(dice, verb), object=Pronoun("that", np))


def tense_of_object_clause(dice: Dice, verb: str) -> str:
    """Draw the tense of "that she bought", "that she is reading", "that she likes"."""
    flags = FLAGS[verb]
    if "state" in flags:
        return dice.choice(("present", "past"))
    if verb in ("wear", "look_for", "read", "write", "make", "draw", "paint") and dice.random() < 0.5:
        return "progressive"
    return "future" if "mishap" not in flags and dice.random() < 0.12 else "past"


def thing(dice: Dice, nouns: tuple[str, ...]) -> NounPhrase:
    """Draw a thing known by what somebody did with it: "the book that Anna bought"."""
    noun = dice.choice(tuple(noun for noun in nouns if VERBS_DONE_WITH[noun] and noun not in PERSON))
    np = NounPhrase(noun, "the", "plural" in KINDS[noun] or ("thing" in KINDS[noun] and dice.random() < 0.25))
    return np._replace(relative=relative_clause(dice, np))
