"""The built-in corpora: splits share nothing, no repetition, the same for a seed, clean text, held-out combinations."""

from __future__ import annotations

import collections
import hashlib
import itertools
import re
from collections.abc import Iterator
from functools import cache

import pytest

from clearhead.config import UserError
from clearhead.corpora.catalogue import CORPORA, built_in_corpus
from clearhead.corpora.dice import Dice
from clearhead.corpora.generated import Draft, is_held_out, split_of
from clearhead.corpora.grammar.templates import articles, fill
from clearhead.data.examples import Document, Example, LabelledText, Pair, SentencePair
from clearhead.text.dialogue import Dialogue

NAMES = ("stories", "reviews", "headlines", "instructions", "paraphrases")
FRENCH_ANSWER = re.compile(r"French|masculine|feminine|l'\?", re.IGNORECASE)


def texts_of(example: Example) -> list[str]:
    """Every text of an example."""
    if isinstance(example, Pair):
        return [example.source, example.target]
    if isinstance(example, Dialogue):
        return [message.content for message in example.messages]
    if isinstance(example, SentencePair):
        return [example.first, example.second, example.negative]
    assert isinstance(example, Document | LabelledText)
    return [example.text]


def question_of(example: Example) -> str:
    """The input of an example, without the answer: no two splits may share it."""
    if isinstance(example, Dialogue):
        return "\n".join(message.content for message in example.messages if message.role != "assistant")
    return example.source if isinstance(example, Pair) else texts_of(example)[0]


def english_of(example: Example) -> Iterator[str]:
    """The texts of an example that are English."""
    if not isinstance(example, Dialogue):
        yield from texts_of(example)
        return
    asked = ""
    for message in example.messages:
        asked = message.content if message.role == "user" else asked
        if not FRENCH_ANSWER.search(asked) and not asked.startswith(("And '", "What about '")):
            yield message.content


@cache
def drafts(name: str) -> list[Draft]:
    """8,000 drafts of a corpus, drawn once for all tests."""
    dice = Dice(f"tests of {name}")
    return [CORPORA[name].draw(dice) for _ in range(8000)]


def draws(name: str, count: int) -> list[Example]:
    """The examples of the first drafts."""
    return [draft.example for draft in drafts(name)[:count]]


@pytest.mark.parametrize("name", NAMES)
def test_splits_share_nothing_and_repeat_nothing(name: str) -> None:
    corpus = built_in_corpus(name, size=2000)
    read = {split: list(corpus.read(split)) for split in corpus.splits}
    assert [len(examples) for examples in read.values()] == [2000, 200, 200, 200]
    questions = {split: {question_of(example) for example in examples} for split, examples in read.items()}
    for one, other in itertools.combinations(questions, 2):
        assert not questions[one] & questions[other]
    for examples in read.values():
        assert len({tuple(texts_of(example)) for example in examples}) == len(examples)


def test_no_sentence_of_a_paraphrase_is_in_another_split() -> None:
    corpus = built_in_corpus("paraphrases", size=3000)
    read = {s: {text for e in corpus.read(s) for text in texts_of(e)} for s in ("train", "valid", "test")}
    for one, other in itertools.combinations(read, 2):
        assert not read[one] & read[other]


@pytest.mark.parametrize("name", NAMES)
def test_new_combinations_are_held_out_and_their_words_known(name: str) -> None:
    known: set[str] = set()
    new: list[set[str]] = []
    for draft in drafts(name):
        held_out = [c for c in draft.combinations if is_held_out(c)]
        assert bool(held_out) == (split_of(draft) == "compositional")
        words = set(re.findall(r"[a-zé]+", question_of(draft.example).lower()))
        if held_out:
            new.append(words)
        elif split_of(draft) == "train":
            known |= words
    assert len(new) > 200
    unknown = collections.Counter(word for words in new for word in words - known)
    assert len([words for words in new if words <= known]) >= 0.97 * len(new), unknown.most_common(10)


@pytest.mark.parametrize("name", NAMES)
def test_the_seed_decides(name: str) -> None:
    first = list(built_in_corpus(name, size=30).read("train"))
    assert first == list(built_in_corpus(name, size=30).read("train"))
    assert first != list(built_in_corpus(name, size=30, seed=1).read("train"))


# If a change to a corpus is intended, copy the new value from the message; models trained before saw another corpus.
PINNED = {
    "stories": "3b3508c82058a07b",
    "reviews": "86a70e6f313eaef3",
    "headlines": "cefd23aca3ca00af",
    "instructions": "bcea468fb7aa2058",
    "paraphrases": "49499f09a7233f6a",
}


@pytest.mark.parametrize("name", NAMES)
def test_the_first_examples_are_the_ones_they_always_were(name: str) -> None:
    first = "\n".join(text for example in built_in_corpus(name, size=50).read("train") for text in texts_of(example))
    assert hashlib.sha256(first.encode()).hexdigest()[:16] == PINNED[name]


@pytest.mark.parametrize("name", NAMES)
def test_there_are_hundreds_of_thousands_of_them(name: str) -> None:
    """Chao's lower bound on the number of kinds, from how many were met once and twice."""
    met = collections.Counter(draft.key for draft in drafts(name))
    times = collections.Counter(met.values())
    assert len(met) + times[1] ** 2 / (2 * max(1, times[2])) > 100_000


@pytest.mark.parametrize("name", NAMES)
def test_text_is_clean(name: str) -> None:
    for example in draws(name, 3000):
        for text in texts_of(example):
            assert text == text.strip()
            assert "  " not in text
            assert not re.search(r"[{}\[\]|]|\.\.|,,| [,.!;]|None(?! of)", text), text


@pytest.mark.parametrize("name", ["stories", "reviews", "headlines", "paraphrases"])
def test_sentences_begin_with_a_capital_and_end_with_a_mark(name: str) -> None:
    for example in draws(name, 2000):
        prose = [example.source] if isinstance(example, Pair) else texts_of(example)
        for text in prose:
            for paragraph in text.split("\n\n"):
                assert re.match(r'"?[A-Z0-9]', paragraph), paragraph
                assert re.search(r'[.!?]"?$', paragraph), paragraph
                assert not re.search(r'[.!?] "?[a-z]', paragraph), paragraph
        if isinstance(example, Pair):
            assert re.match(r"[A-Z]", example.target)
            assert not example.target.endswith(".")


def sounds_like_a_vowel(word: str) -> bool:
    """Whether a word takes "an": by pronunciation, independent of the rule in the code."""
    if word.lower().startswith(("hour", "honest", "heir")):
        return True
    return word[0].lower() in "aeiou" and not word.lower().startswith(("uni", "use", "one", "eu"))


@pytest.mark.parametrize("name", NAMES)
def test_an_stands_before_vowels_only(name: str) -> None:
    met = collections.Counter[str]()
    for example in draws(name, 5000):
        for text in english_of(example):
            for article, word in re.findall(r"\b([Aa]n?) ([A-Za-z]+)", text):
                if word in ("to", "Z"):  # from A to Z
                    continue
                assert (article.lower() == "an") == sounds_like_a_vowel(word), f"{article} {word} in {text}"
                met[article.lower()] += 1
    if name in ("stories", "headlines", "instructions"):
        assert min(met["a"], met["an"]) > 50


def test_an_unknown_corpus_gets_a_suggestion() -> None:
    with pytest.raises(UserError, match=r"data.corpus = 'reveiws'.*did you mean 'reviews'"):
        built_in_corpus("reveiws")
    with pytest.raises(UserError, match=r"data.size = 0"):
        built_in_corpus("reviews", size=0)


def test_the_catalogue_names_its_corpora() -> None:
    assert set(CORPORA) == {"phrasebook", *NAMES}
    assert all(name == corpus.name and corpus.about for name, corpus in CORPORA.items())
    assert [built_in_corpus(n).task for n in NAMES] == [
        "language",
        "classification",
        "translation",
        "chat",
        "similarity",
    ]


def test_templates_choose_and_fill() -> None:
    dice = Dice("templates")
    wordings = {fill("[one|two [big|]] {x}, {X}", dice, {"x": "cat"}) for _ in range(100)}
    assert wordings == {"one cat, Cat", "two big cat, Cat", "two  cat, Cat"}
    assert (
        articles("a owl, a hour, a horse, A apple, a unicorn, a one")
        == "an owl, an hour, a horse, An apple, a unicorn, a one"
    )
    with pytest.raises(KeyError):
        fill("{y}", dice, {"x": "cat"})
    with pytest.raises(AssertionError):
        fill("[one", dice, {})
    with pytest.raises(AssertionError):
        fill("one]", dice, {})
