"""Aligned files: line n of one translates line n of the other; the error of unequal files says where they diverge."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from clearhead.data.examples import Pair
from clearhead.data.readers.aligned import likely_places
from properties import given, st
from reading import corpus, error_of, read, write_aligned


def test_aligned_files_and_their_empty_lines(tmp_path: Path) -> None:
    write_aligned(tmp_path, ["one", "", "three", "  ", "five\u2028!"], ["eins", "zwei", "", "\u3000", "fünf\x85"])
    opened = corpus(tmp_path, source="en", target="de")
    assert list(opened.read("train")) == [Pair("one", "eins"), Pair("five\u2028!", "fünf\x85")]
    assert opened.reports["train"].lines() == [f"3 empty examples dropped (first: {tmp_path / 'train.en'}:2)"]


def test_unequal_line_counts_say_where_the_alignment_is_lost(tmp_path: Path) -> None:
    words = [f"{'x' * (1 + 37 * number % 90)}" for number in range(1000)]
    write_aligned(tmp_path, words, words[:400] + words[401:])
    message = error_of(lambda: read(tmp_path, source="en", target="de"))
    assert "train.en has 1,000 lines" in message
    assert "train.de 999" in message
    assert "the first wrong pair is in line 401;" in message
    write_aligned(tmp_path, words[:-5], words)
    assert "truncated after line 995" in error_of(lambda: read(tmp_path, source="en", target="de"))


def test_files_sorted_by_length_do_not_say_where(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    texts = ["x" * (5 + number // 100) for number in range(1000)]
    translated = ["x" * (len(text) + int(random.integers(5))) for text in texts]
    write_aligned(tmp_path, texts, translated[:-10])
    message = error_of(lambda: read(tmp_path, source="en", target="de"))
    assert "line lengths do not tell where the alignment is lost" in message
    assert "wrong pair" not in message


@given(st.integers(0, 200), st.integers(1, 5), st.integers(0, 2**32))
def test_the_line_where_the_alignment_is_lost_is_found(place: int, extra: int, seed: int) -> None:
    long = np.random.default_rng(seed).integers(1, 10_000, 200 + extra)
    first, last = likely_places(long, np.delete(long, slice(place, place + extra)))
    assert (first <= place <= last, last - first < 5) == (True, True)  # lines after the gap may happen to fit, too


@pytest.mark.parametrize("place", range(0, 300, 20))
def test_the_first_wrong_pair_is_among_the_lines_that_are_named(place: int, tmp_path: Path) -> None:
    """Sentences of a few words, whose translations have nearly the same lengths: one place fits hardly worse."""
    random = np.random.default_rng(place)
    lengths = random.integers(8, 40, 300)
    others = np.maximum(1, lengths + random.integers(-6, 7, 300))
    write_aligned(tmp_path, ["x" * n for n in lengths], ["y" * n for n in np.delete(others, place)])
    message = error_of(lambda: read(tmp_path, source="en", target="de"))
    named = re.search(r"the first wrong pair is in lines ([\d,]+) to ([\d,]+);", message)
    assert named is not None
    assert int(named[1]) <= place + 1 <= int(named[2]) < int(named[1]) + 30


def test_several_missing_lines_may_be_in_several_places(tmp_path: Path) -> None:
    words = [f"{'x' * (1 + 37 * number % 90)}" for number in range(1000)]
    write_aligned(tmp_path, words, words[:400] + words[402:])
    message = error_of(lambda: read(tmp_path, source="en", target="de"))
    assert "the first wrong pair is in line 401, if all missing lines are in one place" in message


def test_a_side_that_is_missing(tmp_path: Path) -> None:
    write_aligned(tmp_path, ["a"], ["b"])
    (tmp_path / "train.de").unlink()
    message = error_of(lambda: read(tmp_path, source="en", target="de"))
    assert message == (
        f"data.target = 'de': there is no train.de in {tmp_path}, but train.en; "
        "set data.source and data.target to the suffixes of your files"
    )
    assert error_of(lambda: read(tmp_path, source="it", target="de")).startswith(
        "data.source = 'it': there is no train.it"
    )
    message = error_of(lambda: read(tmp_path, train="trian", source="en", target="de"))
    assert message == f"data.train = 'trian': no file trian.en in {tmp_path}; did you mean 'train'?"
    (tmp_path / "train2.de").write_text("b\n")
    assert "train, train2 exists for only one" in error_of(lambda: read(tmp_path, train="*", source="en", target="de"))
