"""Conjugate French verbs: present, imperfect, future, and the participle with its agreement."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from clearhead.corpora.grammar.lexicon import FRENCH

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
