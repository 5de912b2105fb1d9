"""French nouns and what agrees with them: gender and number, determiners, adjectives and their position."""

from __future__ import annotations

from typing import Any, NamedTuple

from clearhead.corpora.grammar.french_spelling import starts_with_vowel
from clearhead.corpora.grammar.french_verbs import agree
from clearhead.corpora.grammar.lexicon import FRENCH
from clearhead.corpora.grammar.meaning import Both, Name, Nominal, NounPhrase, Pronoun

MASCULINE, FEMININE, PLURAL = 0, 1, 2  # an agreement is their sum: 0 petit, 1 petite, 2 petits, 3 petites

DETERMINERS = {  # for each agreement
    "the": ("le", "la", "les", "les"),
    "of": ("le", "la", "les", "les"),
    "all": ("le", "la", "les", "les"),
    "a": ("un", "une", "des", "des"),
    "some": ("de le", "de la", "des", "des"),  # the singular is for mass nouns: "du pain"
    "bare": ("de le", "de la", "des", "des"),
    "this": ("ce", "cette", "ces", "ces"),
    "many": ("", "", "beaucoup de", "beaucoup de"),
    "few": ("", "", "quelques", "quelques"),
    "how_many": ("combien de",) * 4,
    "no": ("de", "de", "de", "de"),  # "il n'y a pas de pain"
    "my": ("mon", "ma", "mes", "mes"),
    "your": ("ton", "ta", "tes", "tes"),
    "his": ("son", "sa", "ses", "ses"),
    "her": ("son", "sa", "ses", "ses"),
    "our": ("notre", "notre", "nos", "nos"),
    "their": ("leur", "leur", "leurs", "leurs"),
    **{number: (word,) * 4 for number, word in FRENCH["number"].items()},
}
INDEFINITE = ("a", "some", "bare")
BEFORE_VOWEL = {"ce": "cet", "ma": "mon", "ta": "ton", "sa": "son"}
PERSONS = {  # of pronouns: the person, je = 0 to ils = 5, and the agreement
    "i": (0, MASCULINE),
    "you": (1, MASCULINE),
    "he": (2, MASCULINE),
    "she": (2, FEMININE),
    "we": (3, PLURAL),
    "they": (5, PLURAL),
    "weather": (2, MASCULINE),
    "who?": (2, MASCULINE),
}


class Noun(NamedTuple):
    """A noun: its default gender, and its forms (singular, plural) in each gender it has."""

    gender: int
    forms: dict[int, list[str]]


class Adjective(NamedTuple):
    """An adjective: its four forms, the masculine form before a vowel, and whether it precedes its noun."""

    forms: tuple[str, ...]
    vowel: str
    before: bool


def read_noun(entry: dict[str, Any]) -> Noun:
    """Read a noun from the lexicon."""
    forms = {gender: entry[key] for gender, key in ((0, "masculine"), (1, "feminine")) if key in entry}
    return Noun(min(forms), forms)


def read_adjective(entry: dict[str, Any]) -> Adjective:
    """Read an adjective from the lexicon."""
    forms = (entry["invariable"],) * 4 if "invariable" in entry else agree(entry["masculine"], entry["feminine"])
    return Adjective(forms, entry.get("vowel", forms[0]), entry.get("before", False))


NOUNS = {concept: read_noun(entry) for concept, entry in FRENCH["noun"].items()}
ADJECTIVES = {concept: read_adjective(entry) for concept, entry in FRENCH["adjective"].items() if "avoir" not in entry}
PEOPLE = {name: FEMININE if "feminine" in entry else MASCULINE for name, entry in FRENCH["name"].items()}


def agreement(n: Nominal) -> tuple[int, int]:
    """The person of a nominal, je = 0 to ils = 5, and its gender and number as an agreement."""
    if isinstance(n, NounPhrase):
        gender = PEOPLE.get(n.name, MASCULINE) if n.name else NOUNS[n.noun].gender
        return (5, gender + PLURAL) if n.plural else (2, gender)
    if isinstance(n, Pronoun):
        return PERSONS[n.word] if n.antecedent is None else agreement(n.antecedent)
    if isinstance(n, Name):
        return 2, PEOPLE.get(n.name, MASCULINE)
    return agreement_of_both(n)


def agreement_of_both(both: Both) -> tuple[int, int]:
    """Two together are plural, and feminine only if both are feminine."""
    return 5, PLURAL + (agreement(both.first)[1] & agreement(both.second)[1] & FEMININE)


def describe(np: NounPhrase, gender: int) -> str:
    """The noun with its adjectives, each before or after it: "petite voiture rouge", "bel arbre"."""
    form = gender + PLURAL if np.plural else gender
    text = NOUNS[np.noun].forms[gender][np.plural]
    for position, concept in reversed(tuple(enumerate(np.adjectives))):
        adjective = ADJECTIVES[concept]
        very = "très " if np.very and position == 0 else ""
        if not adjective.before:
            text = f"{text} {very}{adjective.forms[form]}"
        elif form == MASCULINE and starts_with_vowel(text.split(" ", 1)[0]):
            text = f"{very}{adjective.vowel} {text}"
        else:
            text = f"{very}{adjective.forms[form]} {text}"
    return text


def determine(np: NounPhrase, denied: bool = False, gender: int | None = None) -> str:
    """Determiner, adjectives and noun: "cet arbre", "mon amie Anna", "de petites maisons"; `denied`: "de pain"."""
    form = gender + PLURAL * np.plural if gender in NOUNS[np.noun].forms else agreement(np)[1]
    text = describe(np, form & FEMININE)
    determiner = DETERMINERS[np.determiner][form]
    softened = determiner == "des" and np.adjectives and ADJECTIVES[np.adjectives[0]].before  # "de petites maisons"
    if softened or (denied and np.determiner in INDEFINITE):
        determiner = "de"
    elif determiner in BEFORE_VOWEL and starts_with_vowel(text.split(" ", 1)[0]):
        determiner = BEFORE_VOWEL[determiner]
    return f"{determiner} {text} {np.name}" if np.name else f"{determiner} {text}"
