"""Draw sentences with "to be": qualities, places, professions, ages, comparisons, and "there is"."""

from __future__ import annotations

from clearhead.corpora.dice import Dice
from clearhead.corpora.grammar.lexicon import CONCEPTS, expand_kinds
from clearhead.corpora.grammar.meaning import (
    Age,
    Both,
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
    COMPARABLE,
    COUNTRIES,
    GRADED,
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
    relative_of,
)
from clearhead.corpora.grammar.people import PERSON, names_in, nouns_in, other_pronoun, somebody
from clearhead.corpora.grammar.relatives import agent, relative_clause, thing

HUMAN_QUALITIES = tuple(a for a, nouns in PREDICATES.items() if set(PERSON) <= set(nouns))
QUALIFIED = tuple(noun for noun in KINDS if PREDICATES_OF[noun] and "unique" not in KINDS[noun])
THINGS = tuple(noun for noun in QUALIFIED if noun not in PERSON)
LOCATED = tuple(LOCATIONS)
EXISTING = tuple(noun for noun in LOCATED if "kin" not in KINDS[noun] and noun not in GROUPS["only_the"])
JOBS = expand_kinds("job")
AGED = expand_kinds("youngster brother sister son daughter")
GENDERED = expand_kinds("male female")
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


def quality_of_agent(dice: Dice) -> Clause:
    """Draw a person or animal known by an action: "the girl who is singing in the garden is tall"."""
    np = agent(dice)
    choices = HUMAN_QUALITIES if np.noun in PERSON else PREDICATES_OF[np.noun]
    if not choices:
        return quality_of_agent(dice)
    tense = dice.choice(("present", "present", "past"))
    return quality_clause(dice, np, dice.choice(choices))._replace(tense=tense, time="")


def comparison(dice: Dice) -> Clause:
    """Draw a comparison: "the train is faster than the bus", "she is younger than me"."""
    adjective = dice.choice(COMPARABLE)
    tense = "past" if dice.random() < 0.15 else "present"
    polarity = "not" if dice.random() < 0.1 else ""
    if adjective in COMPARABLE_PEOPLE:
        subject = somebody(dice, PERSON, True, 0.0)
        return Clause(subject, "be", tense, polarity, predicate=Quality(adjective, than=rival_of(dice, subject)))
    first = dice.choice(PREDICATES[adjective])
    if first in PERSON:
        return comparison(dice)
    rivals = tuple(n for n in PREDICATES[adjective] if KIND_OF[n] == KIND_OF[first] and (n in MASS) == (first in MASS))
    other = definite(dice, dice.choice(rivals), 0.0, 0.0)
    np = definite(dice, first, 0.0, 0.0 if first in MASS else 0.2)
    if np == other or (np.noun == other.noun and (np.plural or {np.determiner, other.determiner} & {"the", "this"})):
        return comparison(dice)
    return Clause(np, "be", tense, polarity, predicate=Quality(adjective, than=other))


def rival_of(dice: Dice, subject: Nominal) -> Nominal:
    """Draw the person that somebody is compared with: a name, a relative, "me"."""
    if dice.random() < 0.3:
        pronoun = other_pronoun(dice, subject)
        third = isinstance(subject, Pronoun) and subject.word == pronoun.word  # "he is taller than him"
        return rival_of(dice, subject) if third or pronoun.word in ("we", "they") else pronoun
    found = somebody(dice, PERSON, True, 0.0)
    same = set(names_in(found)) & set(names_in(subject)) or set(nouns_in(found)) & set(nouns_in(subject))
    return rival_of(dice, subject) if isinstance(found, Pronoun | Both) or same else found


COMPARABLE_PEOPLE = (*(a for a in HUMAN_QUALITIES if a in COMPARABLE), "old", "young", "strong")
KIND_OF = {noun: CONCEPTS["noun"][noun].split()[0] for noun in KINDS}


def where_it_is(dice: Dice) -> Clause:
    """Draw where something or somebody is: "the keys are under the bed", "we were in the kitchen yesterday"."""
    noun = dice.choice(LOCATED)
    polarity = "not" if dice.random() < 0.2 else ""
    tense = "past" if dice.random() < 0.25 else "present"
    if noun in PERSON or dice.random() < 0.1:
        subject = somebody(dice, PERSON, True)
        time = dice.choice(("", "", "yesterday", "this_morning")) if tense == "past" else dice.choice(("", "", "now"))
        at = Place("at", NounPhrase("school", "all")) if dice.random() < 0.1 else location(dice, "man")
        return Clause(subject, "be", tense, polarity, predicate=at, time=time)
    np = thing(dice, LOCATED) if dice.random() < 0.15 else definite(dice, noun)
    return Clause(np, "be", tense, polarity, predicate=location(dice, np.noun))


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
    """Draw the weather of a place and day: "it will rain in Paris tomorrow", "it is cold today"."""
    it = Pronoun("weather")
    roll = dice.random()
    tense, time = (
        ("past", "yesterday") if roll < 0.3 else ("future", "tomorrow") if roll < 0.6 else ("present", "today")
    )
    shape = dice.random()
    places = () if shape < 0.25 else (Place("in", Name(dice.choice(CITIES + COUNTRIES))),)
    time = "" if shape > 0.75 else time
    polarity = "not" if dice.random() < 0.2 else ""
    if dice.random() < 0.5:
        word = Quality(dice.choice(("cold", "hot")), "very" if dice.random() < 0.3 else "")
        return Clause(it, "be", tense, polarity, predicate=word, places=places, time=time)
    tense = "progressive" if tense == "present" else tense
    return Clause(it, dice.choice(("rain", "snow")), tense, polarity, places=places, time=time)
