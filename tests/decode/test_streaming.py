"""Text as it is written: joined it is what the ids decode to, and at no time half a character is shown."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from clearhead.decode.stream import stream_text
from clearhead.text.tokenizer import Tokenizer, load_tokenizer
from properties import example, given, st
from trained_tokenizers import OURS, each_kind


@given(st.text(max_size=40))
@example("café 😀 日本語 \N{REPLACEMENT CHARACTER} e\N{COMBINING ACUTE ACCENT}")
def test_any_text_is_streamed_without_half_a_character(text: str) -> None:
    tokenizer = OURS["bpe"]
    shown = ""
    for piece in stream_text(tokenizer.encode(text), tokenizer):
        shown += piece
        assert text.startswith(shown)
    assert shown == text


@each_kind
@given(data=st.data())
def test_whatever_ids_are_written_the_stream_is_the_whole(kind: str, data: st.DataObject) -> None:
    tokenizer = OURS[kind]
    ids = data.draw(st.lists(st.integers(0, tokenizer.vocab - 1), max_size=30))
    assert "".join(stream_text(ids, tokenizer)) == tokenizer.decode(ids)


BERTS = ["l", "'", "arbre", "(", ")", "yes", ".", "don", "##t"]


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    folder = tmp_path_factory.mktemp("bert")
    (folder / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *BERTS]))
    return load_tokenizer(folder)


@given(words=st.lists(st.sampled_from(BERTS), max_size=12))
@example(words=["l", "'", "arbre"])
def test_signs_that_close_up_with_the_next_word_are_streamed_as_they_end_up(bert: Tokenizer, words: list[str]) -> None:
    ids = [5 + BERTS.index(word) for word in words]
    assert "".join(stream_text(ids, bert)) == bert.decode(ids)
    assert bert.decode([5, 6]) == "l '"
    assert bert.decode([5, 6, 7]) == "l'arbre"


@each_kind
def test_words_are_shown_as_soon_as_they_are_there(kind: str) -> None:
    tokenizer = OURS[kind]
    text = "The old man gave the red car to his son."
    pieces = list(stream_text(tokenizer.encode(text), tokenizer))
    assert "".join(pieces) == tokenizer.decode(tokenizer.encode(text))
    assert len(pieces) >= 8


def test_a_character_is_shown_before_the_next_token_is_asked_for() -> None:
    tokenizer = OURS["bpe"]
    asked: list[int] = []

    def written(ids: list[int]) -> Iterator[int]:
        for number in ids:
            asked.append(number)
            yield number

    ids = tokenizer.encode("a😀b")
    stream = stream_text(written(ids), tokenizer)
    assert (next(stream), len(asked)) == ("a", 1)
    assert (next(stream), len(asked)) == ("😀", len(ids) - 1)


def test_a_token_costs_the_same_however_long_the_text_is() -> None:
    class Counting(Tokenizer):
        longest = 0

        def decode(self, ids: list[int], keep_special: bool = False) -> str:  # type: ignore[override]
            self.longest = max(self.longest, len(ids))
            return super().decode(ids, keep_special)

    tokenizer = Counting(OURS["bpe"].backend)
    assert "".join(stream_text(tokenizer.encode("été " * 200), tokenizer)) == "été " * 200
    assert tokenizer.longest <= 4
