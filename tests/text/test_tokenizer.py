"""Tokenizers: text comes back, special tokens cannot be typed, batches and pieces of text."""

from __future__ import annotations

import unicodedata
from itertools import pairwise

import pytest
import tokenizers
from tokenizers import models, normalizers, pre_tokenizers

from clearhead.config import UserError
from clearhead.terminal.colour import show_tokens
from clearhead.text import tokenizer_training
from clearhead.text.cutting import cut
from clearhead.text.tokenizer import (
    Tokenizer,
)
from clearhead.text.tokenizer_formats import SPECIALS
from properties import example, given, st
from trained_tokenizers import KINDS, OURS, TEXTS, each_kind, trained

MARKS = [spelling for spellings in SPECIALS.values() for spelling in spellings]
ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]))
TRAPS = st.lists(st.sampled_from([*MARKS, " ", "a", "\n", "##", "▁", "<", ">", "|", "Ġ", "\0", "é"]), max_size=12).map(
    "".join
)


# ---- Text comes back ----


@given(ANY_TEXT | TRAPS)
@example("a\0b")
@example("zero\u200bwidth\u200d\ufeff \u202eright to left\u202c שלום مرحبا")
@example("e\u0301 ﬁ Ａ \r\n\x85\u2028 \U0010ffff\ufffe🎉👩‍👩‍👧")
def test_bpe_gives_back_any_text(text: str) -> None:
    ids = OURS["bpe"].encode(text)
    assert OURS["bpe"].decode(ids) == text
    assert all(number >= len(SPECIALS) for number in ids)


@each_kind
@given(text=st.text(st.sampled_from("abé ,.'(\n\t-北_0\u0301"), min_size=1, max_size=40))
@example(text=TEXTS[1])
@example(text="  two  spaces , then - none ")
def test_known_words_come_back_with_every_space(kind: str, text: str) -> None:
    tokenizer = trained(kind, [text])
    expected = text if kind == "bpe" else unicodedata.normalize("NFC", text)
    assert tokenizer.decode(tokenizer.encode(text)) == expected


@each_kind
def test_lowercase_folds_case(kind: str) -> None:
    tokenizer = trained(kind, lowercase=True)
    assert tokenizer.decode(tokenizer.encode("The OLD École")) == "the old école"


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("wordpiece", "The <unknown> gave (the) car."),
        ("words", "The <unknown> gave (the) car."),
        ("characters", "The <unknown>on gave (the) car."),
    ],
)
def test_unknown_text_stays_visible(kind: str, expected: str) -> None:
    tokenizer = OURS[kind]
    ids = tokenizer.encode("The Жon gave (the) car.")
    assert ids.count(tokenizer.unknown) == 1
    assert tokenizer.decode(ids) == expected


# ---- Special tokens ----


@each_kind
def test_special_tokens_come_first_and_pad_is_zero(kind: str) -> None:
    tokenizer = OURS[kind]
    assert [tokenizer.special(name) for name in SPECIALS] == list(range(9))
    assert (tokenizer.pad, tokenizer.start, tokenizer.end, tokenizer.unknown, tokenizer.mask) == (0, 1, 2, 3, 4)
    assert (tokenizer.separator, tokenizer.system, tokenizer.user, tokenizer.assistant) == (5, 6, 7, 8)


@each_kind
@given(text=TRAPS)
def test_special_tokens_cannot_be_typed(kind: str, text: str) -> None:
    tokenizer = OURS[kind]
    typed = set(tokenizer.encode(text)) & set(range(len(SPECIALS)))
    assert typed <= {tokenizer.unknown}


@each_kind
def test_special_tokens_cannot_be_typed_even_if_training_saw_them(kind: str) -> None:
    text = " ".join(MARKS) * 50
    tokenizer = trained(kind, [text], vocab=2000)
    assert set(range(9)).isdisjoint(tokenizer.encode(text))
    assert tokenizer.decode(tokenizer.encode(text)) == text


@each_kind
def test_decode_leaves_special_tokens_out_unless_told(kind: str) -> None:
    tokenizer = OURS[kind]
    ids = [tokenizer.start, *tokenizer.encode("The car."), tokenizer.end, tokenizer.pad]
    assert tokenizer.decode(ids) == "The car."
    assert tokenizer.decode(ids, keep_special=True).replace(" ", "") == "<start>Thecar.<end><pad>"


def test_a_tokenizer_of_others_that_sees_special_tokens_in_text_reads_them_as_unknown() -> None:
    pieces = [("<unk>", 0.0), ("</s>", 0.0), ("▁", -2.0), ("a", -3.0)]
    bare = tokenizers.Tokenizer(models.Unigram(pieces, unk_id=0))
    bare.pre_tokenizer = pre_tokenizers.Metaspace()
    bare.add_special_tokens(["</s>", "<unk>"])
    tokenizer = Tokenizer(bare)
    assert tokenizer.end == 1
    assert tokenizer.encode("a</s>a") == [2, 3, 0, 3]


def test_ids_of_another_tokenizer_are_refused() -> None:
    with pytest.raises(UserError, match="id 400000 is not one of"):
        OURS["bpe"].decode([400_000])


# ---- Batches, long texts, bad texts ----


SPACED = {
    kind: trained(kind, ["a \n\n b.\n\n\n'a  \n  1\n \t\n b\r\n a \n b"] * 9) for kind in KINDS
}  # merges spaces, too


@each_kind
@given(texts=st.lists(st.text(st.sampled_from("ab .\n\r\t\x1c\x85\xa0'é1"), max_size=60), max_size=5))
def test_batches_and_cut_texts_give_the_same_ids(kind: str, texts: list[str]) -> None:
    tokenizer = SPACED[kind]
    bare = tokenizers.Tokenizer.from_str(tokenizer.backend.to_str())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("clearhead.text.tokenizer.TEXT_PART_CHARACTERS", 4)
        patch.setattr("clearhead.text.cutting.CHUNK_CHARACTERS", 20)
        assert tokenizer.encode_batch(texts) == [bare.encode(text, add_special_tokens=False).ids for text in texts]


def test_long_texts_are_cut() -> None:
    text = "word and word\n\n" * 5000
    parts = list(cut(text, tokenizer_training.TEXT_PART_CHARACTERS))
    assert "".join(parts) == text
    assert len(parts) == 4
    assert all(OURS[kind]._newline_cuts for kind in KINDS)


def test_texts_are_not_cut_where_a_tokenizer_would_notice() -> None:
    bare = tokenizers.Tokenizer.from_str(OURS["bpe"].backend.to_str())
    bare.normalizer = normalizers.Strip()
    assert not Tokenizer(bare)._newline_cuts
    bare.normalizer = normalizers.NFC()
    assert Tokenizer(bare)._newline_cuts
    bare.pre_tokenizer = pre_tokenizers.Metaspace()
    assert not Tokenizer(bare)._newline_cuts


@each_kind
@pytest.mark.parametrize("bad", ["\ud800", "abc\udfffdef"])
def test_lone_surrogates_are_refused_clearly(kind: str, bad: str) -> None:
    with pytest.raises(UserError, match="lone surrogate"):
        OURS[kind].encode(bad)
    with pytest.raises(UserError, match="lone surrogate"):
        OURS[kind].encode_batch(["fine", bad])
    with pytest.raises(UserError, match="lone surrogate"):
        trained(kind, ["fine", bad])


# ---- Looking at tokens ----


def test_pieces_are_readable() -> None:
    tokenizer = trained("bpe", ["The red car. " * 9])
    assert [piece for piece, _ in tokenizer.pieces("The red car 北\n")] == [
        "The",
        " red",
        " car",
        " ",
        r"\xe5",
        r"\x8c",
        r"\x97",
        "\n",
    ]
    assert [number for _, number in tokenizer.pieces("The red car")] == tokenizer.encode("The red car")
    assert tokenizer.piece(tokenizer.user) == "<user>"
    assert [piece for piece, _ in OURS["words"].pieces("the car, red")] == ["the", "car", ",", " ", "red"]


def test_tokens_can_be_told_apart_with_and_without_colour() -> None:
    tokenizer = trained("bpe", ["The red car. " * 9])
    shown = show_tokens("The red car\n\x1b[31m\u202e\\n", tokenizer)
    assert shown.plain.startswith("The│ red│ car│⏎\n\\x1b│[│3│1│m")
    assert "\x1b" not in shown.plain
    assert "\u202e" not in shown.plain
    assert shown.plain.endswith("\\│n")
    styles = [str(span.style) for span in shown.spans if "on" in str(span.style)]
    assert all(left != right for left, right in pairwise(styles))
    numbers = tokenizer.encode("The red car")
    assert show_tokens("The red car", tokenizer, ids=True).plain == "The {}│ red {}│ car {}".format(*numbers)
