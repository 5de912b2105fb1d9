"""The didactic BPE is the real one in slow motion: same words, same merges, same ids."""

from __future__ import annotations

import json
import unicodedata

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from clearhead.text import bpe
from properties import example, given, st

REAL_WORDS = pre_tokenizers.ByteLevel(add_prefix_space=False)

# Texts with many repetitions, so that there is something to merge and ties are common.
REPETITIVE = st.text(st.sampled_from("aab '\n é0²ß北"), max_size=80)
ASSIGNED = st.characters(exclude_categories=["Cs", "Cn"])  # characters that Python's tables know


def real(texts: list[str], vocab: int) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = REAL_WORDS
    trainer = trainers.BpeTrainer(
        vocab_size=vocab,
        min_frequency=2,
        special_tokens=["<pad>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def real_merges(tokenizer: Tokenizer) -> list[tuple[str, str]]:
    return [(left, right) for left, right in json.loads(tokenizer.to_str())["model"]["merges"]]


@given(st.lists(REPETITIVE, max_size=4), st.integers(0, 60), REPETITIVE)
def test_merges_vocabulary_and_ids_equal_the_real_trainers(texts: list[str], merges: int, unseen: str) -> None:
    vocab = 1 + 256 + merges
    fast, slow = real(texts, vocab), bpe.train(texts, vocab, specials=1)
    assert [(bpe.spell(m.left), bpe.spell(m.right)) for m in slow.merges] == real_merges(fast)
    assert {bpe.spell(token): number for token, number in slow.ids.items()} | {"<pad>": 0} == fast.get_vocab()
    for text in (*texts, unseen):
        assert slow.encode(text) == fast.encode(text).ids


@given(
    st.text(ASSIGNED, max_size=60)
    | st.text(st.sampled_from("ab1²½ '\t\n\x1c\x85\xa0\u2028_stre-٣北é\u0301"), max_size=30)
)
@example("I'll say it's  what we've  \n\n done, DON'T I'M you're he'd ")
@example("L’été à 25 °C : « déjà vu » 北京大学 2024年 مرحبا بالعالم नमस्ते 🎉👩‍👩‍👧 x² ½ Ⅷ ١٢٣")
def test_words_are_cut_where_the_real_one_cuts(text: str) -> None:
    pieces = list(bpe.words(text))
    assert "".join(pieces) == text
    assert pieces == [text[start:end] for _, (start, end) in REAL_WORDS.pre_tokenize_str(text)]


def test_every_assigned_character_is_of_the_right_sort() -> None:
    """Each character between a letter, a digit and a sign: with which of them it stays together tells its sort."""
    for first in range(0, 0x20000, 0x400):
        known = [chr(n) for n in range(first, first + 0x400) if unicodedata.category(chr(n)) not in ("Cs", "Cn")]
        text = "".join(f"z{c}0{c}!{c}\nz" for c in known)
        assert list(bpe.words(text)) == [text[start:end] for _, (start, end) in REAL_WORDS.pre_tokenize_str(text)]


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_decoding_restores_the_encoded_text(text: str) -> None:
    trained = bpe.train([text, text], 300)
    assert trained.decode(trained.encode(text)) == text


def test_the_alphabet_is_the_real_one() -> None:
    assert set(bpe.BYTES) == set(pre_tokenizers.ByteLevel.alphabet())
    assert bpe.spell(" café".encode()) == "ĠcafÃ©"


def test_merges_come_with_counts_and_a_word_can_be_watched() -> None:
    trained = bpe.train(["low low low lower lowest new newer"], vocab=256 + 5)
    assert [(m.left, m.right, m.count) for m in trained.merges] == [
        (b"l", b"o", 5),
        (b"lo", b"w", 5),
        (b" ", b"low", 4),
        (b"e", b"r", 2),
        (b"e", b"w", 2),
    ]
    assert list(trained.steps(" lower")) == [
        [b" ", b"l", b"o", b"w", b"e", b"r"],
        [b" ", b"lo", b"w", b"e", b"r"],
        [b" ", b"low", b"e", b"r"],
        [b" low", b"e", b"r"],
        [b" low", b"er"],
    ]
    assert list(trained.steps("")) == [[]]


@pytest.mark.parametrize("least", [1, 2, 6])
def test_rare_pairs_are_left_alone(least: int) -> None:
    counts = [m.count for m in bpe.train(["low low low lower lowest"], 10_000, least=least).merges]
    assert all(count >= least for count in counts)
    assert bool(counts) == (least < 6)
