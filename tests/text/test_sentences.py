"""Long texts in pieces: nothing is lost, nothing is too long, sentences stay whole where they can."""

from __future__ import annotations

import pytest

from clearhead.text.sentences import SENTENCE_END, Span, spans_of, split
from properties import example, given, st

TEXTS = st.text(st.sampled_from("ab.!?…。」\"') \n\t\u3000é😀"), max_size=80)


def lengths(texts: list[str]) -> list[int]:
    return list(map(len, texts))


@given(TEXTS, st.integers(1, 20), st.booleans())
@example("\n\n", 1, True)
@example("Un. «Deux.» Trois !", 5, False)
def test_pieces_joined_are_the_text(text: str, limit: int, whole: bool) -> None:
    [pieces] = spans_of([text], lengths, limit, whole)
    assert "".join(piece.text + piece.space for piece in pieces) == text
    assert all(piece.space == "" or piece.space.isspace() for piece in pieces)


@given(TEXTS, st.integers(1, 20), st.booleans())
def test_no_piece_is_longer_than_the_limit_or_empty(text: str, limit: int, whole: bool) -> None:
    [pieces] = spans_of([text], lengths, limit, whole)
    assert all(len(piece.text) <= limit for piece in pieces)
    assert not text or all(piece.text for piece in pieces)


@given(st.lists(TEXTS, max_size=4), st.integers(1, 20), st.booleans())
def test_many_texts_are_cut_as_each_is_alone(texts: list[str], limit: int, whole: bool) -> None:
    alone = [spans for text in texts for spans in spans_of([text], lengths, limit, whole)]
    assert spans_of(texts, lengths, limit, whole) == alone
    assert all(bool(spans) == bool(text) for text, spans in zip(texts, alone, strict=True))


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ('He said: "Go." Then (at last!) he went.', ['He said: "Go."', "Then (at last!)", "he went."]),
        ("3.14 is no end, nor is a.b", ["3.14 is no end, nor is a.b"]),
        ("A line\n\n  and another", ["A line", "and another"]),
        ("一つ。「二つ。」三つ！ 四つ", ["一つ。", "「二つ。」", "三つ！", "四つ"]),
        ("Mr. Smith met Dr. Who. They left.", ["Mr. Smith met Dr. Who.", "They left."]),
        ("Wait… what?!", ["Wait…", "what?!"]),
    ],
)
def test_sentences_end_where_they_end(text: str, sentences: list[str]) -> None:
    assert [piece.text for piece in split(text, SENTENCE_END)] == sentences


def test_a_text_within_the_limit_stays_whole_and_a_longer_one_becomes_its_sentences() -> None:
    text = "One two. Three four."
    assert spans_of([text], lengths, 20) == [[Span(text, "")]]
    assert spans_of([text], lengths, 19) == [[Span("One two.", " "), Span("Three four.", "")]]
    assert spans_of([text], lengths, 20, whole=False) == spans_of([text], lengths, 19)


def test_a_long_sentence_is_cut_between_words_and_a_long_word_inside() -> None:
    assert spans_of(["aa bb cc dd.\nee"], lengths, 5) == [
        [Span("aa bb", " "), Span("cc", " "), Span("dd.", "\n"), Span("ee", "")]
    ]
    [pieces] = spans_of(["abcdefgh"], lengths, 3)
    assert [piece.text for piece in pieces] == ["abc", "def", "gh"]


@pytest.mark.parametrize(
    "text", ["a" + " " * 100_000 + "b", "x" * 100_000, "." * 100_000, '."' * 50_000, "a\n" * 50_000]
)
def test_100_000_characters_take_no_time(text: str) -> None:
    [pieces] = spans_of([text], lengths, 500)  # with an expression that looks at each space again, this takes hours
    assert "".join(piece.text + piece.space for piece in pieces) == text


@pytest.mark.parametrize("text", ["abcd " * 20_000, "abcde" * 20_000], ids=["words", "one word"])
def test_a_long_text_is_cut_with_few_measurements(text: str) -> None:
    measured = 0
    calls = 0

    def sizes(texts: list[str]) -> list[int]:
        nonlocal measured, calls
        measured += sum(map(len, texts))
        calls += 1
        return lengths(texts)

    [spans] = spans_of([text], sizes, 999)
    assert {len(span.text) for span in spans[:-1]} <= {999, 901}
    assert measured < (20 if " " in text else 8) * len(text)
    assert calls < 20 * len(spans)
