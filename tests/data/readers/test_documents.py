"""Documents of plain text: separators, reading in parts, hold-out by characters."""

from __future__ import annotations

from pathlib import Path

import pytest

from clearhead.data.examples import Document, texts_of
from clearhead.data.readers import documents
from clearhead.data.readers.documents import join, read_parts
from properties import given, st
from reading import corpus, read


def test_documents_between_separators(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("one\ntwo\n<end>\nthree\n\n<end>\n<end>\n four \n", encoding="utf8")
    opened = corpus(tmp_path, task="language", separator="<end>")
    assert list(opened.read("train")) == [Document("one\ntwo"), Document("three"), Document(" four ")]
    assert opened.reports["train"].counts == {"empty examples dropped": 1}
    assert read(tmp_path, task="language") == [Document((tmp_path / "train.txt").read_text())]
    (tmp_path / "train.txt").write_text("one\n \ntwo\n", encoding="utf8")
    assert read(tmp_path, task="masked", separator="\n") == [Document("one"), Document(" "), Document("two")]


MARKS = ["a", "bc", "de fg", " ", "\n", "#", "##", "##\n", "é"]


@pytest.mark.parametrize("separator", ["", "##", "\n"])
@given(parts=st.lists(st.sampled_from(MARKS), min_size=1, max_size=400))
def test_documents_arrive_whole_however_they_are_cut(
    tmp_path_factory: pytest.TempPathFactory, parts: list[str], separator: str
) -> None:
    text = "".join(parts)
    path = tmp_path_factory.mktemp("documents") / "x.txt"
    path.write_text(text, encoding="utf8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(documents, "DOCUMENT_PART_CHARACTERS", 16)
        pieces = list(read_parts(path, separator))
    expected = [part.strip("\n") for part in text.split(separator)] if separator else [text]
    if separator and not expected[-1]:
        expected.pop()
    assert list(join(iter(pieces))) == expected


RUNNING = st.lists(st.sampled_from(["a ", "bb\n", "ccc ", "d\n", "e=\n"]), min_size=50, max_size=200).map("".join)


@pytest.mark.parametrize("separator", ["##", "=\n=\n="])
@given(first=RUNNING, second=RUNNING)
def test_long_documents_lose_nothing_where_reading_pauses(
    tmp_path_factory: pytest.TempPathFactory, first: str, second: str, separator: str
) -> None:
    path = tmp_path_factory.mktemp("documents") / "x.txt"
    path.write_text(f"{first}{separator}\n{second}", encoding="utf8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(documents, "DOCUMENT_PART_CHARACTERS", 16)
        pieces = list(read_parts(path, separator))
    assert len(pieces) > 2
    expected = path.read_text(encoding="utf8").split(separator)
    assert list(join(iter(pieces))) == [document.strip("\n") for document in expected]


def test_a_long_file_comes_in_pieces(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_text("some words in a line\n" * 50_000)
    pieces = list(read_parts(path, "<end>"))
    assert len(pieces) > 5
    assert max(len(piece.text) for piece in pieces) < 4 * documents.DOCUMENT_PART_CHARACTERS
    assert [piece.last for piece in pieces] == [False] * (len(pieces) - 1) + [True]


@pytest.mark.parametrize("separator", ["", "\n"])
def test_hold_out_of_plain_text_is_counted_in_characters(tmp_path: Path, separator: str) -> None:
    (tmp_path / "all.txt").write_text("".join(f"{number:09}\n" for number in range(100)), encoding="utf8")
    parts = [
        "".join(
            f"{text}{separator}"
            for example in read(tmp_path, split, task="language", train="all", hold_out=0.3, separator=separator)
            for text in texts_of(example)
        )
        for split in ("train", "valid")
    ]
    assert "".join(parts) == (tmp_path / "all.txt").read_text()
    assert [len(part) for part in parts] == [700, 300]
