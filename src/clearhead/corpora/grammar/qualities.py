"""Draw sentences with "to be": qualities, places, professions, ages, comparisons, and "there is"."""

from __future__ import annotations

from clearhead.corpora.dice import Dice
from clearhead.corpora.grammar.clauses import action
from clearhead.corpora.grammar.frames import FRAMES, weighted_frames
from clearhead.corpora.grammar.lexicon import CONCEPTS, ENGLISH, expand_kinds
from clearhead.corpora.grammar.meaning import (
    Age,
    Clause,
    Name,
    Nominal,
    NounPhrase,
    Place,
    Pronoun,
    Quality,
    There,
)
from clearhead.corpora.grammar.noun_phrases import (
    CITIES,
    COUNTRIES,
    GROUPS,
    INNER_OF,
    KINDS,
    LOCATIONS,
    MASS,
    NAMES,
    NUMBERS,
    PREDICATES,
    PREDICATES_OF,
    definite,
    indefinite,
    location,
    place_of,
    relative_of,
)
from clearhead.corpora.grammar.people import PERSON, somebody
from clearhead.corpora.grammar.tenses import When

COMPARABLE = tuple(a for a in PREDICATES if len(ENGLISH["adjective"][a]) == 2)
GRADED = frozenset(COMPARABLE + GROUPS["very"])
HUMAN_QUALITIES = tuple(a for a, nouns in PREDICATES.items() if set(PERSON) <= set(nouns))
QUALIFIED = tuple(noun for noun in KINDS if PREDICATES_OF[noun] and "unique" not in KINDS[noun])
THINGS = tuple(noun for noun in QUALIFIED if noun not in PERSON)
ANYBODY = tuple(noun for noun in PERSON if "kin" not in KINDS[noun])
LOCATED = tuple(LOCATIONS)
EXISTING = tuple(noun for noun in LOCATED if "kin" not in KINDS[noun] and noun not in GROUPS["only_the"])
JOBS = expand_kinds("job")
AGED = expand_kinds("youngster brother sister son daughter")
GENDERED = expand_kinds("male female")
DOING = weighted_frames(
    ("sleep", "walk", "run", "dance", "play", "work", "read", "eat", "wait", "sing", "swim", "wash")
)
PRESENTED = tuple(noun for noun in expand_kinds("thing pet kin house garden room") if "unique" not in KINDS[noun])


def quality(dice: Dice) -> Clause:
    """Draw a quality: "the flowers in the vase are white", "she was very tired"."""
    if dice.random() < 0.25:
        subject = somebody(dice, PERSON, human=True, described=0.0)
        return quality_clause(dice, subject, dice.choice(HUMAN_QUALITIES))
    noun = dice.choice(THINGS)
    adjective = dice.choice(PREDICATES_OF[noun])
    return quality_clause(dice, detailed_subject(dice, noun, adjective), adjective)


def quality_clause(dice: Dice, subject: Nominal, adjective: str) -> Clause:
    """A subject is, was or will be so, with a degree or a negation at random."""
    passing = adjective in GROUPS["passing"]
    roll = dice.random()
    foreseen = adjective in GROUPS["foreseen"] and not (isinstance(subject, NounPhrase) and subject.relative)
    tense = "past" if roll < 0.25 else "future" if roll < 0.4 and foreseen else "present"
    times = {
        "past": ("yesterday", "this_morning"),
        "future": ("tomorrow", "tonight", "soon"),
        "present": ("today",),
    }
    time = dice.choice(times[tense]) if passing and dice.random() < 0.3 else ""
    polarity = "not" if dice.random() < 0.2 else ""
    return Clause(subject, "be", tense, polarity, predicate=Quality(adjective, degree(dice, adjective)), time=time)


def degree(dice: Dice, adjective: str) -> str:
    """Draw "very", "too", or neither."""
    if adjective not in GRADED or dice.random() < 0.7:
        return ""
    return "too" if adjective in GROUPS["too"] and dice.random() < 0.4 else "very"


def detailed_subject(dice: Dice, noun: str, predicate: str) -> NounPhrase:
    """Draw a subject with a colour, a place or a relative clause, so that it is far from its verb."""
    np = definite(dice, noun, 0.0)
    if predicate not in GROUPS["inner"] + GROUPS["outer"] and INNER_OF[noun] and dice.random() < 0.4:
        np = np._replace(adjectives=(dice.choice(INNER_OF[noun]),))
    if np.determiner != "the":
        return np
    roll = dice.random()
    if roll < 0.4 and noun in LOCATIONS and noun not in PERSON:
        return np._replace(place=location(dice, noun))
    return np._replace(relative=relative_clause(dice, np)) if roll < 0.75 else np


def relative_clause(dice: Dice, np: NounPhrase) -> Clause | None:
    """Draw a relative clause about a thing: "that Anna bought"; None if no verb is known for it."""
    verbs = VERBS_DONE_WITH.get(np.noun, ())
    if not verbs:
        return None
    subject = somebody(dice, ANYBODY, human=True, described=0.0)
    return Clause(subject, dice.choice(verbs), "past", object=Pronoun("that", np))


def verbs_done_with() -> dict[str, tuple[str, ...]]:
    """For each thing, the verbs that can identify it in a relative clause ("that Anna bought")."""
    verbs = ("buy", "find", "choose", "make", "write", "read", "plant", "see", "visit", "lose")
    found = {verb: [noun for frame in FRAMES[verb] if frame.human for noun in frame.what] for verb in verbs}
    return {noun: tuple(verb for verb in verbs if noun in found[verb]) for noun in THINGS}


VERBS_DONE_WITH = verbs_done_with()


def quality_of_agent(dice: Dice) -> Clause:
    """Draw a person or animal identified by an action: "the girl who is singing in the garden is tall"."""
    frame = dice.choice(DOING)
    noun = dice.choice(tuple(noun for noun in frame.who if "kin" not in KINDS[noun]))
    np = NounPhrase(noun, "the", noun not in GROUPS["only_the"] and dice.random() < 0.3)
    word = "who" if KINDS[noun] & {"person", "infant"} else "that"
    c = action(dice, frame._replace(human=False), Pronoun(word, np), When("progressive"), full=False)
    if frame.where:
        c = c._replace(places=(place_of(dice, dice.choice(frame.where)),))
    choices = HUMAN_QUALITIES if noun in PERSON else PREDICATES_OF[noun]
    return quality_clause(dice, np._replace(relative=c), dice.choice(choices))._replace(tense="present", time="")


def comparison(dice: Dice) -> Clause:
    """Draw a comparison: "the train is faster than the bus"."""
    adjective = dice.choice(COMPARABLE)
    first = dice.choice(PREDICATES[adjective])
    if "person" in KINDS[first]:
        subject = somebody(dice, ANYBODY, True, 0.0)
        rival = Name(dice.choice(NAMES))
        adjective = dice.choice(tuple(a for a in HUMAN_QUALITIES if a in COMPARABLE))
        return Clause(subject, "be", predicate=Quality(adjective, than=rival)) if subject != rival else quality(dice)
    kind = KIND_OF[first]
    rivals = tuple(
        noun
        for noun in PREDICATES[adjective]
        if KIND_OF[noun] == kind and noun != first and (noun in MASS) == (first in MASS)
    )
    if not rivals:
        return quality(dice)
    plural = 0.0 if first in MASS else 0.2
    np = definite(dice, first, 0.0, plural)
    other = definite(dice, dice.choice(rivals), 0.0, 0.0)
    return Clause(np, "be", predicate=Quality(adjective, than=other))


KIND_OF = {noun: CONCEPTS["noun"][noun].split()[0] for noun in KINDS}


def where_it_is(dice: Dice) -> Clause:
    """Draw where something is: "the keys are under the bed"."""
    noun = dice.choice(LOCATED)
    tense = "past" if dice.random() < 0.25 else "present"
    polarity = "not" if dice.random() < 0.2 else ""
    return Clause(definite(dice, noun), "be", tense, polarity, predicate=location(dice, noun))


def there_is(dice: Dice) -> There:
    """Draw what there is: "there are two cats on the mat", "there is no milk in the fridge"."""
    noun = dice.choice(EXISTING)
    built = "building" in KINDS[noun]
    what = indefinite(dice, noun, 0.45, 0.1 if built else 0.3, counted=not built)
    if what.determiner == "bare":
        what = what._replace(determiner="some")
    if dice.random() < 0.12 and what.determiner in ("a", "some"):
        what = what._replace(determiner="no")
    roll = dice.random()
    tense = "past" if roll < 0.2 else "future" if roll < 0.5 and noun in PERSON else "present"
    return There(what, location(dice, noun), tense)


def profession(dice: Dice) -> Clause:
    """Draw a profession: "she is a musician", "elle est musicienne"."""
    roll = dice.random()
    if roll < 0.4:
        subject: Nominal = Pronoun(dice.choice(("he", "she", "i", "you", "they", "we")))
    elif roll < 0.7:
        subject = Name(dice.choice(NAMES))
    else:
        subject = relative_of(dice, dice.choice(tuple(noun for noun in GENDERED if "kin" in KINDS[noun])), 0.2)
    many = subject.plural if isinstance(subject, NounPhrase) else subject in (Pronoun("they"), Pronoun("we"))
    job = NounPhrase(dice.choice(JOBS), "bare" if many else "a", many)
    polarity = "not" if dice.random() < 0.2 else ""
    places = (Place("in", Name(dice.choice(CITIES + COUNTRIES))),) if dice.random() < 0.6 else ()
    tense = "past" if dice.random() < 0.2 else "present"
    return Clause(subject, "be", tense, polarity, predicate=job, places=places)


def age(dice: Dice) -> Clause:
    """Draw how old somebody is: "Anna is ten years old"."""
    subject = somebody(dice, AGED, human=True, described=0.0)
    return Clause(subject, "be", "past" if dice.random() < 0.15 else "present", predicate=Age(dice.choice(NUMBERS[3:])))


def presentation(dice: Dice) -> Clause:
    """Draw a presentation: "this is my brother", "these are Anna's shoes"."""
    noun = dice.choice(PRESENTED)
    if "kin" in KINDS[noun]:
        np = relative_of(dice, noun)
    elif dice.random() < 0.5:
        np = definite(dice, noun)
    else:
        np = indefinite(dice, noun, 0.8, plural=0.0)
    if np.determiner in ("this", "the"):
        np = np._replace(determiner="my")
    return Clause(Pronoun("this", np), "be", "present", "not" if dice.random() < 0.2 else "", predicate=np)


def weather(dice: Dice) -> Clause:
    """Draw the weather of a place and day: "it will rain in Paris tomorrow"."""
    it = Pronoun("weather")
    places = (Place("in", Name(dice.choice(CITIES + COUNTRIES))),)
    roll = dice.random()
    tense, time = (
        ("past", "yesterday") if roll < 0.3 else ("future", "tomorrow") if roll < 0.6 else ("present", "today")
    )
    polarity = "not" if dice.random() < 0.2 else ""
    if dice.random() < 0.5:
        word = Quality(dice.choice(("cold", "hot")), "very" if dice.random() < 0.3 else "")
        return Clause(it, "be", tense, polarity, predicate=word, places=places, time=time)
    tense = "progressive" if tense == "present" else tense
    return Clause(it, dice.choice(("rain", "snow")), tense, polarity, places=places, time=time)
