"""The meaning of a sentence as a small tree of concepts, which `english` and `french` turn into words."""

from __future__ import annotations

from typing import NamedTuple

from clearhead.corpora.grammar.lexicon import CONCEPTS

FIXED = tuple(verb for verb, facts in CONCEPTS["verb"].items() if "fixed" in facts.get("flags", "").split())


class NounPhrase(NamedTuple):
    """A thing or a being: "the two small cats on the mat".

    Determiners: the, a, this, some, many, few; my, your, his, her, our, their; a number; `of` (the owner is named);
    `bare` ("he drinks water", "she reads books"); `all` ("she likes apples"); `no` ("there are no apples");
    `how_many` asks.
    """

    noun: str
    determiner: str = "the"
    plural: bool = False
    adjectives: tuple[str, ...] = ()
    owner: NounPhrase | Name | None = None
    name: str = ""  # "my friend Anna"
    place: Place | None = None  # "the cat on the mat"
    relative: Clause | None = None  # "the girl who is singing": a clause with a relative pronoun
    very: bool = False  # before the first adjective: "a very old house"


class Name(NamedTuple):
    """A person, a city or a country."""

    name: str


class Pronoun(NamedTuple):
    """I, you, he, she, it, we, they, this; relative who, that; the `weather`; `who?` asks. May have an antecedent."""

    word: str
    antecedent: NounPhrase | Name | Both | None = None


class Both(NamedTuple):
    """Two together: "Paul and his sister"."""

    first: NounPhrase | Name
    second: NounPhrase | Name


Nominal = NounPhrase | Name | Pronoun | Both


class Place(NamedTuple):
    """A prepositional phrase: where, where to or with whom: "in the garden"."""

    preposition: str
    nominal: Nominal


class Quality(NamedTuple):
    """How something is: "very old", "older than the house"."""

    adjective: str
    degree: str = ""
    than: Nominal | None = None


class Age(NamedTuple):
    """How old somebody is, in years."""

    years: str


class Clause(NamedTuple):
    """Who does what, to whom, where and when.

    Tenses: present (eats), progressive (is eating), past (ate), background (was eating), future (will eat), going (is
    going to eat), upcoming (the future after `when`: "when he arrives"). Polarity: "", not, never.
    """

    subject: Nominal
    verb: str
    tense: str = "present"
    polarity: str = ""
    modal: str = ""  # want, can, must
    object: Nominal | None = None
    recipient: Nominal | None = None
    predicate: Quality | Age | NounPhrase | Place | None = None  # after "to be"
    frequency: str = ""
    manner: str = ""
    places: tuple[Place, ...] = ()
    time: str = ""
    time_first: bool = False


class There(NamedTuple):
    """What exists somewhere: "there are two cats on the mat"."""

    what: NounPhrase
    place: Place
    tense: str = "present"


class Interrogative(NamedTuple):
    """A question: yes or no (""), or what, where, when, why, how_many, colour, age.

    `who` asks for the subject, `whom` for the object, `who_is` who somebody is. `how_many` asks for the number of what
    there is or of the clause's object, which is then the pronoun "that" with the counted noun as its antecedent.
    """

    ask: str
    about: Clause | There


class Joined(NamedTuple):
    """Two clauses: "he eats because he is hungry"; fronted, the conjunction comes first: "if it rains, we stay"."""

    conjunction: str
    first: Clause
    second: Clause
    fronted: bool = False


Sentence = Clause | There | Interrogative | Joined


def combinations(sentence: Sentence) -> tuple[str, ...]:
    """The pairs of concepts that a sentence combines: adjective and noun, verb and object, subject and verb."""
    found: list[str] = []
    if isinstance(sentence, Interrogative):
        sentence = sentence.about
    if isinstance(sentence, There):
        _collect_nominal(sentence.what, found)
        _collect_nominal(sentence.place.nominal, found)
    elif isinstance(sentence, Joined):
        _collect_clause(sentence.first, found)
        _collect_clause(sentence.second, found)
    else:
        _collect_clause(sentence, found)
    return tuple(found)


def _collect_clause(clause: Clause, found: list[str]) -> None:
    subject = clause.subject
    verb = clause.verb
    predicate = clause.predicate
    patient = clause.object
    _collect_nominal(subject, found)
    if predicate is not None:
        _collect_predicate(predicate, subject, found)
    elif verb not in FIXED:
        found += [f"{noun} {verb}" for noun in _heads(subject)]
        if patient is not None:
            _collect_nominal(patient, found)
            found += [f"{verb} {noun}" for noun in _heads(patient)]
    if clause.recipient is not None:
        _collect_nominal(clause.recipient, found)
    for place in clause.places:
        _collect_nominal(place.nominal, found)


def _collect_predicate(predicate: Quality | Age | NounPhrase | Place, subject: Nominal, found: list[str]) -> None:
    if isinstance(predicate, Quality):
        found += [f"{predicate.adjective} {noun}" for noun in _heads(subject)]
        if predicate.than is not None:
            _collect_nominal(predicate.than, found)
            found += [f"{predicate.adjective} {noun}" for noun in _heads(predicate.than)]
    elif isinstance(predicate, Place):
        _collect_nominal(predicate.nominal, found)
    elif isinstance(predicate, NounPhrase):
        _collect_nominal(predicate, found)


def _collect_nominal(nominal: Nominal, found: list[str]) -> None:
    if isinstance(nominal, NounPhrase):
        if nominal.adjectives:
            found += [f"{adjective} {nominal.noun}" for adjective in nominal.adjectives]
        if nominal.place is not None:
            _collect_nominal(nominal.place.nominal, found)
        if nominal.relative is not None:
            _collect_clause(nominal.relative, found)
    elif isinstance(nominal, Both):
        _collect_nominal(nominal.first, found)
        _collect_nominal(nominal.second, found)


def _heads(nominal: Nominal) -> tuple[str, ...]:
    """The head nouns of a nominal; for a pronoun, those of its antecedent."""
    if isinstance(nominal, NounPhrase):
        return (nominal.noun,)
    if isinstance(nominal, Both):
        return _heads(nominal.first) + _heads(nominal.second)
    if isinstance(nominal, Pronoun) and nominal.antecedent is not None:
        return _heads(nominal.antecedent)
    return ()
