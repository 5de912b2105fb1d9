"""Draw sentences of two clauses: because, but, when, if, and.

In the first ones, pronouns of the second clause refer to the first; `side_by_side` joins two independent clauses.
"""

from __future__ import annotations

from clearhead.corpora.dice import Dice
from clearhead.corpora.grammar.clauses import action, destination, possession
from clearhead.corpora.grammar.frames import ACTION_FRAMES, FLAGS, FRAMES, STATE_FRAMES, Frame
from clearhead.corpora.grammar.lexicon import CONCEPTS
from clearhead.corpora.grammar.meaning import Both, Clause, Joined, Nominal, NounPhrase, Pronoun, Quality
from clearhead.corpora.grammar.noun_phrases import (
    GROUPS,
    INNER_OF,
    KINDS,
    PREDICATES,
    PREDICATES_OF,
    TASTES,
    USUALLY_ONE,
    definite,
    location,
)
from clearhead.corpora.grammar.people import PERSON, PRONOUNS, another_subject, nouns_in, pronoun_for, somebody
from clearhead.corpora.grammar.qualities import HUMAN_QUALITIES, LOCATED, THINGS, degree, detailed_subject
from clearhead.corpora.grammar.tenses import When

REASONS = {state: tuple(verbs.split()) for state, verbs in CONCEPTS["reason"].items()}
REMEDIES = {state: tuple(verbs.split()) for state, verbs in CONCEPTS["remedy"].items()}
LASTING = {
    "progressive": "present",
    "past": "past",
    "future": "present",
}  # the tense of an action -> the tense of its reason
ONGOING = ("sleep", "read", "work", "eat", "play", "sing", "dance", "write", "draw", "wait", "walk", "clean", "make")
INDOORS = (FRAMES["stay"][0], FRAMES["read"][0], FRAMES["play_game"][1], FRAMES["take"][0], FRAMES["make"][0])
DISLIKED = tuple(noun for frame in FRAMES["hate"] for noun in frame.what)
REMEDY_FRAMES = tuple(
    (state, Frame(frame.verb, frame.who, nouns, (), True))
    for state, verbs in REMEDIES.items()
    for verb in verbs
    for frame in FRAMES[verb]
    if frame.human and (nouns := tuple(noun for noun in frame.what if noun in PREDICATES[state]))
)


def contrasts() -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    """Pairs of contrasting qualities, with the nouns that can have both and that a pronoun can replace."""
    pairs = ((one, other) for one, others in CONCEPTS["contrast"].items() for other in others.split())
    shared = ((one, other, tuple(n for n in PREDICATES[one] if n in PREDICATES[other])) for one, other in pairs)
    replaceable = (
        (one, other, tuple(n for n in nouns if pronoun_for(NounPhrase(n)) is not None)) for one, other, nouns in shared
    )
    return tuple(found for found in replaceable if found[2])


CONTRASTS = contrasts()


def person(dice: Dice, nouns: tuple[str, ...] = PERSON) -> Nominal:
    """Draw a person that a later pronoun can refer to."""
    found = somebody(dice, nouns, human=True, described=0.3)
    return found if pronoun_for(found) is not None else Pronoun(dice.choice(PRONOUNS))


def required_pronoun_for(n: Nominal) -> Pronoun:
    """The pronoun for a nominal that is known to have one."""
    found = pronoun_for(n)
    assert found is not None, n
    return found


def action_from_feeling(dice: Dice, frame: Frame, subject: Nominal, tense: str) -> Clause:
    """What somebody does because of a feeling: alone, and without an adverb of manner."""
    c = action(dice, frame, subject, When(tense))._replace(manner="")
    kept = tuple(place for place in c.places if place.preposition != "with" and frame.verb != "run")
    return c._replace(places=kept)


def because_of_feeling(dice: Dice) -> Joined:
    """Because of a feeling: "the girl is singing because she is happy"."""
    state = dice.choice(tuple(REASONS))
    frame = FRAMES[dice.choice(REASONS[state])][0]
    tense = dice.choice(tuple(LASTING))
    subject = person(dice, frame.who)
    first = action_from_feeling(dice, frame, subject, tense)
    second = Clause(required_pronoun_for(subject), "be", LASTING[tense], predicate=Quality(state))
    return Joined("because", first, second)


def because_of_thing(dice: Dice) -> Joined:
    """Because of a quality of the object: "she bought the dress because it was beautiful"."""
    state, frame = dice.choice(REMEDY_FRAMES)
    tense = dice.choice(tuple(LASTING))
    subject = somebody(dice, frame.who, human=True)
    thing = object_in_state(dice, frame)
    first = Clause(subject, frame.verb, tense, object=thing)
    it = Pronoun("they" if thing.plural else "it", thing)
    return Joined("because", first, Clause(it, "be", LASTING[tense], predicate=Quality(state)))


def object_in_state(dice: Dice, frame: Frame) -> NounPhrase:
    """Draw the object whose quality is the reason; nobody buys what already belongs to somebody."""
    noun = dice.choice(frame.what)
    thing = definite(dice, noun, 0.0, 0.0 if noun in USUALLY_ONE else 0.3)
    return thing._replace(determiner="the", owner=None) if "foreign" in FLAGS[frame.verb] else thing


def and_therefore(dice: Dice) -> Joined:
    """An object pronoun after its noun: "the window is dirty and Paul is cleaning it"."""
    state, frame = dice.choice(REMEDY_FRAMES)
    tense = dice.choice(("progressive", "past", "future"))
    thing = object_in_state(dice, frame)
    first = Clause(thing, "be", LASTING[tense], predicate=Quality(state))
    subject = somebody(dice, frame.who, human=True)
    it = Pronoun("they" if thing.plural else "it", thing)
    return Joined("and", first, Clause(subject, frame.verb, tense, object=it))


def but_also(dice: Dice) -> Joined:
    """Two contrasting qualities: "the car is old, but it is fast"."""
    one, other, nouns = dice.choice(CONTRASTS)
    human = one in HUMAN_QUALITIES and other in HUMAN_QUALITIES
    subject = person(dice) if human else detailed_subject(dice, dice.choice(nouns), one)
    tense = "past" if dice.random() < 0.3 else "present"
    first = Clause(subject, "be", tense, predicate=Quality(one))
    return Joined("but", first, Clause(required_pronoun_for(subject), "be", tense, predicate=Quality(other)))


def but_tastes_differ(dice: Dice) -> Joined:
    """The tastes of one person or of two: "Anna likes coffee, but her brother prefers tea"."""
    subject = person(dice)
    tense = "past" if dice.random() < 0.2 else "present"
    one, other = dice.sample(dice.choice(TASTES), 2)
    polarity = "not" if dice.random() < 0.3 else ""
    verb = "like" if polarity else "hate" if other in DISLIKED and dice.random() < 0.5 else "prefer"
    who = another_subject(dice, subject) if verb == "prefer" and dice.random() < 0.6 else required_pronoun_for(subject)
    first = Clause(subject, "like", tense, polarity, object=all_of(one))
    return Joined("but", first, Clause(who, verb, tense, object=all_of(other)))


def all_of(noun: str) -> NounPhrase:
    """Things of a kind in general: "apples", "les pommes"."""
    return NounPhrase(noun, "all", noun == "cards" or not KINDS[noun] & {"stuff", "sport"})


def when_interrupted(dice: Dice) -> Joined:
    """The imperfect and the passé composé: "the boy was reading when his sister arrived"."""
    frame = FRAMES[dice.choice(ONGOING)][0]
    subject = person(dice, frame.who)
    first = action(dice, frame, subject, When("background"))._replace(manner="")
    other = another_subject(dice, subject)
    if dice.random() < 0.3 and isinstance(subject, Pronoun) and subject != other:
        return Joined("when", first, Clause(other, dice.choice(("call", "see", "find")), "past", object=subject))
    return Joined("when", first, Clause(other, dice.choice(("arrive", "leave", "wake_up")), "past"))


def when_it_happens(dice: Dice) -> Joined:
    """French has the future in both clauses: "when Anna arrives, we will eat"."""
    frame = FRAMES[dice.choice(ONGOING)][0]
    subject = person(dice, frame.who)
    second = action(dice, frame, subject, When("future"))
    return Joined("when", Clause(another_subject(dice, subject), "arrive", "upcoming"), second, fronted=True)


def if_it_rains(dice: Dice) -> Joined:
    """A condition and its consequence: "if it rains, we will stay in the house"."""
    subject = person(dice)
    if dice.random() < 0.5:
        state = dice.choice(tuple(REASONS))
        frame = FRAMES[dice.choice(REASONS[state])][0]
        condition = Clause(subject, "be", "present", predicate=Quality(state))
        second = action_from_feeling(dice, frame, required_pronoun_for(subject), "future")
        return Joined("if", condition, second, fronted=True)
    condition = Clause(Pronoun("weather"), dice.choice(("rain", "snow")), "present")
    if dice.random() < 0.5:
        second = Clause(subject, "go", "future", "not", places=(destination(dice, "to"),))
    else:
        frame = dice.choice(INDOORS)
        second = action(dice, frame, subject, When("future"), full="placed" in FLAGS[frame.verb])
    return Joined("if", condition, second, fronted=True)


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
