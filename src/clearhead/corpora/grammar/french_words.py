"""French words and their forms.

Between words: elision (l'arbre, j'aime, qu'il) and contraction (au, aux, du, des). Verbs: present, imperfect, future,
and the participle with its agreement. Nouns and what agrees with them: gender and number, determiners, adjectives and
their position.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, NamedTuple

from clearhead.corpora.grammar.lexicon import FRENCH
from clearhead.corpora.grammar.meaning import Both, Name, Nominal, NounPhrase, Pronoun

VOWELS = "aâàeéèêiîoôuœ"
ELIDED = {word: word[:-1] + "'" for word in ("le", "la", "je", "me", "te", "se", "ne", "de", "que", "ce")}
CONTRACTED = ((" à le ", " au "), (" à les ", " aux "), (" de le ", " du "), (" de les ", " des "))
ASPIRATED = frozenset(
    form
    for noun in FRENCH["noun"].values()
    if noun.get("aspirated", False)
    for form in noun.get("masculine", []) + noun.get("feminine", [])
)


@cache
def starts_with_vowel(word: str) -> bool:
    """Whether the preceding word is elided: before arbre, homme, y; not before hibou, huit, onze, yaourt."""
    first = word[:1].lower()
    if first == "h":
        return word not in ASPIRATED and word != "huit"
    return word == "y" or (first != "" and first in VOWELS and word != "onze")


def spell(text: str) -> str:
    """Apply elision and contraction: "le arbre" becomes "l'arbre", "à le marché" "au marché", "si il" "s'il"."""
    words = text.split()
    for position, word in enumerate(words[:-1]):
        if word in ELIDED and starts_with_vowel(words[position + 1]):
            words[position] = ELIDED[word]
        elif word == "si" and words[position + 1] in ("il", "ils"):  # but "si elle"
            words[position] = "s'"
    written = " ".join(words).replace("' ", "'")
    for apart, together in CONTRACTED:  # after elision, so that "à l'arbre" stays
        if apart in written:
            written = written.replace(apart, together)
    return written


PRESENT = ("e", "es", "e", "ons", "ez", "ent")
IMPERFECT = ("ais", "ais", "ait", "ions", "iez", "aient")
FUTURE = ("ai", "as", "a", "ons", "ez", "ont")
SILENT = (0, 1, 2, 5)  # persons whose present ending is silent, so that the stem is stressed


class Verb(NamedTuple):
    """A verb and its forms; each tense has six: je, tu, il, nous, vous, ils."""

    infinitive: str
    present: tuple[str, ...]
    imperfect: tuple[str, ...]
    future: tuple[str, ...]
    participle: tuple[str, ...]  # masculine, feminine, masculine plural, feminine plural
    auxiliary: str  # avoir or être
    reflexive: bool
    link: str  # the preposition before its object, or ""


def conjugate(entry: dict[str, Any]) -> Verb:
    """All forms of a verb; forms that the entry does not give follow the rule of -er verbs."""
    infinitive = entry["infinitive"]
    present = tuple(entry["present"]) if "present" in entry else present_of_er(infinitive)
    stem = entry.get("imperfect", present[3].removesuffix("ons"))
    reflexive = entry.get("reflexive", False)
    return Verb(
        infinitive=infinitive,
        present=present,
        imperfect=tuple(imperfect_stem(stem, ending) + ending for ending in IMPERFECT),
        future=tuple(entry.get("future", future_of_er(infinitive)) + ending for ending in FUTURE),
        participle=agree(entry.get("participle", infinitive[:-2] + "é")),
        auxiliary="être" if reflexive else entry.get("auxiliary", "avoir"),
        reflexive=reflexive,
        link=entry.get("link", ""),
    )


def present_of_er(infinitive: str) -> tuple[str, ...]:
    """The present of an -er verb: mange, mangeons; achète, achetons; nettoie, nettoyons; préfère, préférons."""
    stem = infinitive.removesuffix("er")
    stressed = re.sub("[eé]([^aeiouéy])$", r"è\1", re.sub("y$", "i", stem))
    softened = stem + "e" if stem.endswith("g") else stem  # mangeons: the g stays soft
    return tuple(
        (stressed if person in SILENT else softened if person == 3 else stem) + ending
        for person, ending in enumerate(PRESENT)
    )


def future_of_er(infinitive: str) -> str:
    """The future stem of an -er verb: mangerai, achèterai, nettoierai; but préférerai keeps its é."""
    stem = re.sub("e([^aeiouéy])$", r"è\1", re.sub("y$", "i", infinitive.removesuffix("er")))
    return stem + "er"


def imperfect_stem(stem: str, ending: str) -> str:
    """Drop the e of "mange-" before i, where the g is soft anyway: mangeais, but mangions."""
    return stem.removesuffix("e") if stem.endswith("ge") and ending.startswith("i") else stem


def agree(masculine: str, feminine: str = "") -> tuple[str, str, str, str]:
    """The four forms of an adjective or participle: masculine, feminine, and the plurals of both."""
    feminine = feminine or masculine + "e"
    return masculine, feminine, pluralise(masculine), pluralise(feminine)


def pluralise(word: str) -> str:
    """The regular plural of an adjective: petits, beaux, gris, heureux."""
    if word.endswith(("s", "x")):
        return word
    return word + ("x" if word.endswith("eau") else "s")


VERBS: dict[str, Verb] = {concept: conjugate(entry) for concept, entry in FRENCH["verb"].items()}


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
