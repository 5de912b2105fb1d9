"""The words of the two grammars: both languages have the same concepts, of the same kinds."""

import pytest

from clearhead.corpora.grammar.lexicon import CONCEPTS, ENGLISH, FRENCH, expand_kinds
from clearhead.corpora.grammar.meaning import Both, Name
from clearhead.corpora.grammar.meaning import NounPhrase as N
from clearhead.corpora.grammar.noun_phrases import place_with
from clearhead.corpora.grammar.people import possessive_for_relative


def test_both_languages_have_the_same_concepts() -> None:
    shared = ("noun", "verb", "adjective", "name", "city", "country", "preposition", "time", "number", "conjunction")
    for section in (*shared, "frequency", "manner", "degree"):
        assert list(ENGLISH[section]) == list(FRENCH[section]), section
    assert list(CONCEPTS["noun"]) == list(ENGLISH["noun"])
    assert set(CONCEPTS["adjective"]) | set(CONCEPTS["state"]) == set(ENGLISH["adjective"])
    assert set(CONCEPTS["name"]) == set(ENGLISH["name"])
    assert set(CONCEPTS["verb"]) | {"be", "can", "must"} == set(ENGLISH["verb"])


def test_the_concepts_speak_of_known_words_only() -> None:
    known = {word for noun, kinds in CONCEPTS["noun"].items() for word in (noun, *kinds.split())} | {"city", "country"}
    said_of = [*CONCEPTS["adjective"].values(), *CONCEPTS["state"].values(), *CONCEPTS["group"]["taste"]]
    said_of += [frame for verb in CONCEPTS["verb"].values() for frame in verb["frames"]]
    said_of += [words for entry in CONCEPTS["location"] for words in entry.values()]
    assert {word for words in said_of for word in words.replace(">", " ").replace("@", " ").split()} <= known
    verbs = [
        *CONCEPTS["reason"].values(),
        *CONCEPTS["remedy"].values(),
        *(CONCEPTS["group"][m] for m in ("can", "must")),
    ]
    assert {verb for words in verbs for verb in words.split()} <= set(ENGLISH["verb"])


def test_nouns_count_alike_in_both_languages() -> None:
    for noun, forms in ENGLISH["noun"].items():
        for gender in ("masculine", "feminine"):
            assert len(FRENCH["noun"][noun].get(gender, forms)) == len(forms), noun


def test_kinds_stand_for_their_nouns() -> None:
    assert expand_kinds("sport apple") == ("apple", "football", "tennis", "cards")


@pytest.mark.parametrize(
    ("two", "noun", "whose"),
    [
        (Both(Name("Victor"), N("brother", "his")), "son", "my"),
        (Both(Name("Victor"), N("brother", "his")), "mother", "their"),
        (Both(Name("Paul"), Name("Marie")), "son", "their"),
        (Both(Name("Paul"), Name("Victor")), "son", "my"),
        (Both(Name("Paul"), N("teacher")), "brother", "my"),
        (Both(Name("Paul"), N("teacher")), "friend", "their"),
    ],
)
def test_two_people_share_only_relatives_that_both_can_have(two: Both, noun: str, whose: str) -> None:
    assert possessive_for_relative(two, noun) == whose


def test_one_is_at_the_beach_but_on_the_long_beach() -> None:
    assert place_with("at", N("beach")).preposition == "at"
    assert place_with("at", N("beach", adjectives=("long",))).preposition == "on"
    assert place_with("at", N("market", adjectives=("old",))).preposition == "at"
