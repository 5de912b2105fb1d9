"""Readers: every format gives back what was written; bad input is an error that says where, and what to do."""

from __future__ import annotations

import csv
import gzip
import io
import json
import lzma
import re
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from clearhead.config import DataConfig, UserError
from clearhead.data.examples import Corpus, Document, Example, LabelledText, Pair, SentencePair, texts_of
from clearhead.data.readers import documents
from clearhead.data.readers.aligned import aligned_line_count
from clearhead.data.readers.documents import join, read_parts
from clearhead.data.readers.files import read_lines
from clearhead.data.readers.folder import FolderCorpus
from clearhead.data.readers.tables import SelectedFields, read_rows
from clearhead.data.sources import open_corpus
from clearhead.text.dialogue import Dialogue, Message
from ordinary_user import as_anybody, folder_for_all

SHARED = Path(__file__).parents[3] / "shared" / "data"
shared = pytest.mark.skipif(not SHARED.is_dir(), reason="the real corpora in ../shared/data are not on this machine")


def corpus(path: Path, **settings: Any) -> FolderCorpus:
    return FolderCorpus(DataConfig(path=str(path), **settings))


def read(path: Path, split: str = "train", **settings: Any) -> list[Example]:
    return list(corpus(path, **settings).read(split))


def complaint(call: Callable[[], object]) -> str:
    with pytest.raises(UserError) as caught:
        call()
    return str(caught.value)


# --- lines -----------------------------------------------------------------------------------------------------------


@given(st.lists(st.text(st.characters(exclude_characters="\n\r\0", exclude_categories=["Cs"])), min_size=1))
def test_lines_come_back_whatever_they_hold(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
    # Among the characters are U+2028, U+0085, form feeds and zero-width ones, at which str.splitlines would cut.
    path = tmp_path_factory.mktemp("lines") / "x.txt"
    path.write_bytes("".join(line + "\n" for line in lines).encode())
    expected = [lines[0].removeprefix("\ufeff"), *lines[1:]]
    assert [line.removesuffix("\n") for line in read_lines(path)] == expected
    path.write_bytes("".join(line + "\r\n" for line in lines).encode("utf-8-sig"))
    assert [line.removesuffix("\n") for line in read_lines(path)] == lines


@given(st.binary(max_size=200), st.sampled_from([".txt", ".tsv", ".csv", ".jsonl", ".json", ".gz", ".xz", ".zst"]))
@example(b"\n", ".csv")
def test_any_bytes_are_read_or_refused_with_the_name_of_the_file(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, ending: str
) -> None:
    path = tmp_path_factory.mktemp("fuzz") / f"train{ending}"
    path.write_bytes(data)
    reads_or_names(path, lambda: list(read_lines(path)))
    if ending in (".tsv", ".csv", ".jsonl", ".json"):
        reads_or_names(path, lambda: list(read_rows(path, SelectedFields(("1",), ("text",)))))


def reads_or_names(path: Path, call: Callable[[], object]) -> None:
    """Whether reading either works or complains about this file, and does nothing else."""
    message = ""
    try:
        call()
    except UserError as error:
        message = str(error)
    assert not message or path.name in message


@given(st.text(max_size=100), st.sampled_from([".tsv", ".csv", ".jsonl", ".json"]))
@example("\n", ".csv")
def test_any_text_is_read_or_refused_with_the_name_of_the_file(
    tmp_path_factory: pytest.TempPathFactory, text: str, ending: str
) -> None:
    path = tmp_path_factory.mktemp("fuzz") / f"train{ending}"
    path.write_text(text.encode(errors="replace").decode() or "x", encoding="utf8", newline="")
    reads_or_names(path, lambda: list(read_rows(path, SelectedFields(("1",), ("text",)))))


@pytest.mark.parametrize("ending", [".gz", ".xz", ".zst"])
def test_packed_files(tmp_path: Path, ending: str) -> None:
    text = "".join(f"line {number} ü\n" for number in range(50_000))
    path = tmp_path / f"train.txt{ending}"
    path.write_bytes(packed(text.encode(), ending))
    assert "".join(read_lines(path)) == text
    path.write_bytes(packed(b"one\n", ending) + packed(b"two\n", ending))
    assert list(read_lines(path)) == ["one\n", "two\n"]  # several archives one after the other


@pytest.mark.parametrize("ending", [".gz", ".xz", ".zst"])
def test_broken_archives(tmp_path: Path, ending: str) -> None:
    data = packed("".join(f"line {number}\n" for number in range(50_000)).encode(), ending)
    path = tmp_path / f"train.txt{ending}"
    for broken in (data[: len(data) // 2], data[:-2], b"this is no archive at all"):
        path.write_bytes(broken)
        assert re.search(
            rf"{path.name} is damaged after line [\d,]+ .*download or compress it again",
            complaint(lambda: list(read_lines(path))),
        )


def test_zst_without_the_package_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    (tmp_path / "a.zst").write_bytes(b"x")
    assert "pip install 'clearhead[data]'" in complaint(lambda: list(read_lines(tmp_path / "a.zst")))


def packed(data: bytes, ending: str) -> bytes:
    if ending == ".zst":
        import zstandard

        return zstandard.ZstdCompressor().compress(data)
    return gzip.compress(data) if ending == ".gz" else lzma.compress(data)


def test_bytes_that_are_no_utf8(tmp_path: Path) -> None:
    path = tmp_path / "train.txt"
    path.write_bytes(b"fine\nalso f\xc3\xbcr you\nbad \xe9 here\n")
    message = complaint(lambda: list(read_lines(path)))
    assert f"{path}:3: byte 23 of the file (0xe9, 4 bytes into the line) is not UTF-8" in message
    path.write_bytes("text".encode("utf-16"))
    assert "is UTF-16" in complaint(lambda: list(read_lines(path)))


def test_nul_bytes(tmp_path: Path) -> None:
    path = tmp_path / "train.txt"
    path.write_bytes(b"one\ntw\0o\n")
    assert f"{path}:2: a NUL byte, byte 6 of the file" in complaint(lambda: list(read_lines(path)))


def test_an_empty_file(tmp_path: Path) -> None:
    (tmp_path / "train.txt").touch()
    assert f"{tmp_path / 'train.txt'} is empty" in complaint(lambda: read(tmp_path, task="language"))


def test_zero_width_and_right_to_left_text_stays_as_it_is(tmp_path: Path) -> None:
    strange = ["a\u200bb", "\u202eabc\u202c", "שלום", "e\u0301", " two  spaces ", "\ufeffmark inside"]
    (tmp_path / "train.tsv").write_text("".join(f"x\t{text}\n" for text in strange), encoding="utf8")
    assert read(tmp_path, source="1", target="2") == [Pair("x", text) for text in strange]


# --- finding files ---------------------------------------------------------------------------------------------------


def test_a_missing_path_names_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "multi30k").mkdir()
    message = complaint(lambda: corpus(tmp_path / "multi30"))
    assert "data.path" in message
    assert "did you mean 'multi30k'?" in message


def test_a_missing_split_names_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "training.tsv").write_text("a\tb\n")
    assert "data.train = 'train': no such file" in complaint(lambda: read(tmp_path, source="1", target="2"))
    assert "did you mean 'training'?" in complaint(lambda: read(tmp_path, source="1", target="2"))


def test_suggested_names_are_found(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    for name in ("p10", "p11", "p12"):
        (tmp_path / "x" / f"{name}.tsv.gz").write_bytes(gzip.compress(b"a\tb\n"))
    message = complaint(lambda: read(tmp_path, train="x/p1", source="1", target="2"))
    assert f"data.train = 'x/p1': no such file in {tmp_path}; did you mean 'x/p1" in message
    suggested = message.split("'")[-2]
    assert read(tmp_path, train=suggested, source="1", target="2") == [Pair("a", "b")]
    assert "it has x/p10, x/p11, x/p12" in complaint(lambda: read(tmp_path, train="train", source="1", target="2"))
    for number in range(13, 30):
        (tmp_path / "x" / f"p{number}.tsv").touch()
    assert complaint(lambda: read(tmp_path, source="1", target="2")).endswith("x/p18, x/p19, ...")
    (tmp_path / "empty").mkdir()
    assert "there is none" in complaint(lambda: read(tmp_path / "empty", source="1", target="2"))


def test_patterns_below_folders(tmp_path: Path) -> None:
    folder = tmp_path / "sub"
    folder.mkdir()
    write_aligned(folder, ["one"], ["eins"])
    assert read(tmp_path, train="sub/train", source="en", target="de") == [Pair("one", "eins")]
    for name in ("p1", "p2"):
        (folder / f"{name}.tsv").write_text(f"{name}\tx\n")
    assert read(tmp_path, train="sub/p*", source="1", target="2") == [Pair("p1", "x"), Pair("p2", "x")]
    assert "no such file" in complaint(lambda: read(tmp_path, train="nowhere/p*", source="1", target="2"))


@pytest.mark.parametrize("hidden", ["", "sub"])
def test_folders_that_may_not_be_read(hidden: str) -> None:
    with folder_for_all() as folder:
        (folder / "data" / "sub").mkdir(parents=True)
        locked = folder / "data" / hidden
        locked.chmod(0)
        expected = f"{locked} cannot be read: Permission denied"
        with as_anybody():
            assert expected in complaint(lambda: read(folder / "data", train="sub", source="1", target="2"))
            assert "Permission denied" in complaint(lambda: corpus(locked / "deeper"))
        locked.chmod(0o755)


def test_names_stems_patterns_and_folders(tmp_path: Path) -> None:
    for name in ("part-1.tsv", "part-2.tsv", "other.tsv"):
        (tmp_path / name).write_text(f"{name}\tx\n")
    (tmp_path / "sub" / "deep").mkdir(parents=True)
    (tmp_path / "sub" / "b.tsv").write_text("b\tx\n")
    (tmp_path / "sub" / "deep" / "c.tsv").write_text("c\tx\n")
    (tmp_path / "sub" / ".hidden.tsv").write_text("h\tx\n")

    def sources(train: str) -> list[str]:
        return [texts_of(example)[0] for example in read(tmp_path, train=train, source="1", target="2")]

    assert sources("part-*") == sources("part-?.tsv") == ["part-1.tsv", "part-2.tsv"]
    assert sources("other") == sources("other.tsv") == ["other.tsv"]
    assert sources("sub") == ["b", "c"]


def test_a_name_with_two_meanings(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text("a\tb\n")
    (tmp_path / "train.tsv.gz").write_bytes(gzip.compress(b"a\tb\n"))
    assert "train.tsv or train.tsv.gz" in complaint(lambda: read(tmp_path, source="1", target="2"))


def test_splits_are_those_with_files(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("a")
    (tmp_path / "dev.txt").write_text("b")
    assert corpus(tmp_path, task="language").splits == ("train",)
    assert corpus(tmp_path, task="language", valid="dev").splits == ("train", "valid")
    assert corpus(tmp_path / "dev.txt", task="language", hold_out=0.5).splits == ("train", "valid")
    assert "set data.hold_out" in complaint(lambda: read(tmp_path / "dev.txt", "valid", task="language"))
    assert "set hold_out = 0" in complaint(lambda: corpus(tmp_path, task="language", valid="dev", hold_out=0.1))


@pytest.mark.parametrize("split", ["valid", "test"])
def test_a_split_with_a_name_of_its_own_must_be_there(tmp_path: Path, split: str) -> None:
    (tmp_path / "train.txt").write_text("a")
    (tmp_path / "val.txt").write_text("b")
    message = complaint(lambda: corpus(tmp_path, task="language", **{split: "vall"}))
    assert message == f"data.{split} = 'vall': no such file in {tmp_path}; did you mean 'val'?"
    assert "is one file" in complaint(lambda: corpus(tmp_path / "train.txt", task="language", **{split: "val"}))
    assert corpus(tmp_path, task="language", valid="none", hold_out=0.5).splits == ("train", "valid")


# --- aligned files ---------------------------------------------------------------------------------------------------


def write_aligned(folder: Path, sources: list[str], targets: list[str]) -> None:
    (folder / "train.en").write_text("".join(f"{line}\n" for line in sources), encoding="utf8")
    (folder / "train.de").write_text("".join(f"{line}\n" for line in targets), encoding="utf8")


def test_aligned_files_and_their_empty_lines(tmp_path: Path) -> None:
    write_aligned(tmp_path, ["one", "", "three", "  ", "five\u2028!"], ["eins", "zwei", "", "\u3000", "fünf\x85"])
    opened = corpus(tmp_path, source="en", target="de")
    assert list(opened.read("train")) == [Pair("one", "eins"), Pair("five\u2028!", "fünf\x85")]
    assert opened.reports["train"].lines() == [f"3 empty examples dropped (first: {tmp_path / 'train.en'}:2)"]


def test_unequal_line_counts_say_where_the_alignment_is_lost(tmp_path: Path) -> None:
    words = [f"{'x' * (1 + 37 * number % 90)}" for number in range(1000)]
    write_aligned(tmp_path, words, words[:400] + words[401:])
    message = complaint(lambda: read(tmp_path, source="en", target="de"))
    assert "train.en has 1,000 lines" in message
    assert "train.de 999" in message
    assert "alignment is lost near line 401" in message
    write_aligned(tmp_path, words[:-5], words)
    assert "truncated after line 995" in complaint(lambda: read(tmp_path, source="en", target="de"))


@given(st.integers(0, 200), st.integers(1, 5), st.integers(0, 2**32))
def test_the_line_where_the_alignment_is_lost_is_found(place: int, extra: int, seed: int) -> None:
    long = np.random.default_rng(seed).integers(1, 10_000, 200 + extra)
    found = aligned_line_count(long, np.delete(long, slice(place, place + extra)))
    assert abs(found - place) <= 1  # one off if the line after the gap happens to fit too


def test_a_side_that_is_missing(tmp_path: Path) -> None:
    write_aligned(tmp_path, ["a"], ["b"])
    (tmp_path / "train.de").unlink()
    message = complaint(lambda: read(tmp_path, source="en", target="de"))
    assert message == f"data.train = 'train': no file train.de in {tmp_path}; there is none"
    message = complaint(lambda: read(tmp_path, train="trian", source="en", target="de"))
    assert message == f"data.train = 'trian': no file trian.en in {tmp_path}; did you mean 'train'?"
    (tmp_path / "train2.de").write_text("b\n")
    assert "train, train2 exists for only one" in complaint(lambda: read(tmp_path, train="*", source="en", target="de"))


# --- tables and JSON -------------------------------------------------------------------------------------------------


def test_tsv_with_and_without_a_header(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text("sentence\tlabel\n\"quoted\t1\nit's\t0\n")
    by_name = read(tmp_path, task="classification", text="sentence", label="label")
    assert by_name == [LabelledText('"quoted', "1"), LabelledText("it's", "0")]
    by_number = read(tmp_path, task="classification", text="1", label="2")
    assert by_number == [LabelledText("sentence", "label"), *by_name]


def test_a_missing_column_names_the_others(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text("sentence\tlabel\na\t1\n")
    message = complaint(lambda: read(tmp_path, task="classification", text="sentense", label="label"))
    assert "train.tsv:1: no field 'sentense' (data.text); it has: sentence, label; did you mean 'sentence'?" in message
    assert "it has: 1, 2" in complaint(lambda: read(tmp_path, task="classification", text="1", label="3"))
    assert "it has: 1, 2" in complaint(lambda: read(tmp_path, task="classification", text="0", label="1"))
    assert "needs data.label" in complaint(lambda: read(tmp_path, task="classification", text="sentence"))


def test_a_row_with_another_number_of_fields(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text("a\tb\nc\td\te\n")
    assert "train.tsv:2: 3 fields, but line 1 has 2; a stray tab?" in complaint(
        lambda: read(tmp_path, source="1", target="2")
    )


def test_escapes_in_tsv(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text("one\\ntwo\\\\n\tback\\tslash\\x\n")
    assert read(tmp_path, source="1", target="2") == [Pair("one\\ntwo\\\\n", "back\\tslash\\x")]
    assert read(tmp_path, source="1", target="2", escapes=True) == [Pair("one\ntwo\\n", "back\tslash\\x")]


CELL = st.text(st.characters(exclude_characters="\0\r", exclude_categories=["Cs"]), max_size=20)


@given(st.lists(st.tuples(CELL, CELL), min_size=1, max_size=10))
def test_csv_round_trip(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]]) -> None:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows(rows)
    path = tmp_path_factory.mktemp("csv") / "train.csv"
    path.write_text(text.getvalue(), encoding="utf8", newline="")
    assert [row.values for row in read_rows(path, SelectedFields(("1", "2"), ("source", "target")))] == rows


@pytest.mark.parametrize("blank", ["\n", "\r\n\r\n"])
def test_csv_of_blank_lines(tmp_path: Path, blank: str) -> None:
    (tmp_path / "train.csv").write_bytes(blank.encode())
    assert f"{tmp_path / 'train.csv'} has no rows" in complaint(lambda: read(tmp_path, source="1", target="2"))


def test_csv_with_an_open_quotation_mark(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text('a,b\n"c,d\ne,f\n')
    message = complaint(lambda: read(tmp_path, source="1", target="2"))
    assert "train.csv:3: not valid CSV" in message
    assert "quotation mark" in message


@pytest.mark.parametrize("ending", [".jsonl", ".json"])
def test_json(tmp_path: Path, ending: str) -> None:
    records = [{"t": {"en": "a\u2028b", "de": "c"}, "n": 1}, {"t": {"en": "d\n", "de": "e"}, "n": True}]
    lines = "\n\n".join(json.dumps(record, ensure_ascii=False) for record in records)
    (tmp_path / f"train{ending}").write_text(lines if ending == ".jsonl" else json.dumps(records), encoding="utf8")
    assert read(tmp_path, source="t.en", target="t.de") == [Pair("a\u2028b", "c"), Pair("d\n", "e")]
    assert read(tmp_path, task="classification", text="t.en", label="n") == [
        LabelledText("a\u2028b", "1"),
        LabelledText("d\n", "true"),
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"a": "x"}\n{"a": \n', "train.jsonl:2: not valid JSON, column"),
        ('{"a": "x"}\n[1, 2]\n', "train.jsonl:2: expected an object {...}, not [1, 2]"),
        ('{"a": "x"}\n{"b": "y"}\n', "train.jsonl:2: no field 'a' (data.text); it has: b"),
        ('{"a": ["x"]}\n', "train.jsonl:1: the field of data.text is a list"),
        ('{"a": "\\ud800"}\n', "train.jsonl:1: \\u escape of half a character"),
        ('{"a": ' + "[" * 100_000, "train.jsonl:1: JSON that cannot be read"),
    ],
)
def test_malformed_json_lines(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "train.jsonl").write_text(text)
    assert words in complaint(lambda: read(tmp_path, task="language", text="a"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"data": [], "version": 1}', "one object with the fields data, version; expected an array"),
        ("[]", "is an empty array"),
        ("3", "contains 3; expected an array"),
        ('[{"a": "x"}, 3]', "train.json: item 2: expected an object"),
        ('[{"a": "x"},\n{"a" "y"}]', "train.json:2: not valid JSON, column 6"),
    ],
)
def test_malformed_json_arrays(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "train.json").write_text(text)
    assert words in complaint(lambda: read(tmp_path, task="language", text="a"))


def test_of_many_fields_some_are_named(tmp_path: Path) -> None:
    record = json.dumps({f"token{number}": number for number in range(50_000)})
    for text in (record, f"[{record}]"):
        (tmp_path / "train.json").write_text(text)
        message = complaint(lambda: read(tmp_path, task="language", text="x"))
        assert "token8, token9, ...;" in message + ";"
        assert len(message) < 400


def test_columns_of_plain_text(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("a b\n")
    assert "is plain text and has no columns" in complaint(lambda: read(tmp_path, source="1", target="2"))


def test_labels_and_scores(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("a,b,2.5\n")
    settings: dict[str, Any] = {"task": "similarity", "text": "1", "other": "2"}
    assert read(tmp_path, **settings, label="3", best_score=5.0) == [SentencePair("a", "b", 0.5)]
    assert read(tmp_path, **settings) == [SentencePair("a", "b", 1.0)]
    message = complaint(lambda: read(tmp_path, **settings, label="3"))
    assert "train.csv:1: score 2.5 is not between 0 and data.best_score = 1" in message
    for bad in ("much", "nan", "inf", ""):
        (tmp_path / "train.csv").write_text(f"a,b,{bad}\n")
        assert "is not a score" in complaint(lambda: read(tmp_path, **settings, label="3"))
    (tmp_path / "train.csv").write_text("a,b, \n")
    assert "train.csv:1: the label" in complaint(lambda: read(tmp_path, task="classification", text="1", label="3"))


def test_chat_from_columns_and_from_messages(tmp_path: Path) -> None:
    record = {
        "q": "Add.",
        "c": "1 2",
        "a": "3",
        "m": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}],
    }
    (tmp_path / "train.jsonl").write_text(json.dumps(record) + "\n" + json.dumps(record | {"c": "", "a": " "}) + "\n")
    opened = corpus(tmp_path, task="chat", source="q", context="c", target="a")
    assert list(opened.read("train")) == [Dialogue((Message("user", "Add.\n\n1 2"), Message("assistant", "3")))]
    assert opened.reports["train"].counts == {"empty examples dropped": 1}
    messages = read(tmp_path, task="chat", text="m")
    assert messages == [Dialogue((Message("user", "Hi"), Message("assistant", "Ho")))] * 2


def test_an_empty_system_message_is_none(tmp_path: Path) -> None:
    empty = {"role": "system", "content": " \n"}
    spoken = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]
    conversations = [[empty, *spoken], [empty], [empty, spoken[0], spoken[1] | {"content": ""}]]
    (tmp_path / "train.jsonl").write_text("".join(json.dumps({"m": each}) + "\n" for each in conversations))
    opened = corpus(tmp_path, task="chat", text="m")
    assert list(opened.read("train")) == [Dialogue((Message("user", "Hi"), Message("assistant", "Ho")))]
    assert opened.reports["train"].counts == {"empty examples dropped": 2}


@pytest.mark.parametrize(
    "messages",
    [
        "hello",
        [],
        [{"role": "user"}],
        [{"role": "boss", "content": "x"}],
        [{"role": "user", "content": "x"}],
        [{"role": "assistant", "content": "x"}],
        [{"role": "user", "content": "x"}, {"role": "user", "content": "y"}],
    ],
)
def test_broken_conversations_are_named(tmp_path: Path, messages: Any) -> None:
    (tmp_path / "train.jsonl").write_text(json.dumps({"m": messages}) + "\n")
    assert "train.jsonl:1: " in complaint(lambda: read(tmp_path, task="chat", text="m"))


# --- documents -------------------------------------------------------------------------------------------------------


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
        patch.setattr(documents, "PART", 16)
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
        patch.setattr(documents, "PART", 16)
        pieces = list(read_parts(path, separator))
    assert len(pieces) > 2
    expected = path.read_text(encoding="utf8").split(separator)
    assert list(join(iter(pieces))) == [document.strip("\n") for document in expected]


def test_a_long_file_comes_in_pieces(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_text("some words in a line\n" * 50_000)
    pieces = list(read_parts(path, "<end>"))
    assert len(pieces) > 5
    assert max(len(piece.text) for piece in pieces) < 4 * documents.PART
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


def test_hold_out_of_rows_is_taken_from_each_file(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.tsv").write_text("".join(f"{name}{number}\tx\n" for number in range(10)))
    settings: dict[str, Any] = {"train": "*", "source": "1", "target": "2", "hold_out": 0.2}
    held_out = [texts_of(example)[0] for example in read(tmp_path, "valid", **settings)]
    assert held_out == ["a8", "a9", "b8", "b9"]
    assert len(read(tmp_path, "train", **settings)) == 16
    assert "leaves no part" in complaint(lambda: read(tmp_path, "train", **settings | {"hold_out": 0.99}))


# --- which corpus ----------------------------------------------------------------------------------------------------


def test_no_corpus_or_two() -> None:
    assert "set data.corpus" in complaint(lambda: open_corpus(DataConfig()))
    assert "choose one" in complaint(lambda: DataConfig(corpus="phrasebook", path="x"))


@pytest.fixture(scope="module")
def saved_dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    datasets = pytest.importorskip("datasets")
    folder = tmp_path_factory.mktemp("hub") / "saved"
    features = datasets.Features(
        {"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["bad", "good"])}
    )
    rows = {"text": [f"text {number}" for number in range(9)] + [""], "label": [number % 2 for number in range(10)]}
    train = datasets.Dataset.from_dict(rows, features=features)
    datasets.DatasetDict({"train": train, "validation": train.select(range(2))}).save_to_disk(folder)
    return folder


def test_hugging_face_data_sets(saved_dataset: Path) -> None:
    settings: dict[str, Any] = {
        "corpus": f"hf:{saved_dataset}",
        "task": "classification",
        "text": "text",
        "label": "label",
    }
    opened = open_corpus(DataConfig(**settings, valid="validation"))
    assert opened.splits == ("train", "valid")
    assert list(opened.read("valid")) == [LabelledText("text 0", "bad"), LabelledText("text 1", "good")]
    assert len(list(opened.read("train"))) == 9
    held_out = open_corpus(DataConfig(**settings, hold_out=0.3))
    assert [texts_of(example) for example in held_out.read("valid")] == [("text 7",), ("text 8",)]
    assert "did you mean 'validation'?" in complaint(lambda: opened_test(settings))
    missing = DataConfig(**settings | {"text": "words"})
    assert "no field 'words' (data.text); it has: text, label" in complaint(
        lambda: list(open_corpus(missing).read("train"))
    )


def opened_test(settings: dict[str, Any]) -> Corpus:
    return open_corpus(DataConfig(**settings, test="validatoin"))


def test_hugging_face_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    assert "pip install 'clearhead[data]'" in complaint(lambda: open_corpus(DataConfig(corpus="hf:glue")))


# --- the corpora of the table in docs/data.md ------------------------------------------------------------------------

COUNTS: dict[str, tuple[int, ...]] = {
    "multi30k": (29_000, 1_014, 1_000),
    "tatoeba-en-de": (164_600, 2_000, 1_000),
    "tatoeba-en-fr": (161_526, 2_000, 1_000),
    "tinyshakespeare": (1, 1),
    "wikitext-2": (36_718, 3_760, 4_358),
    "books": (133, 4),
    "sst2": (67_349, 872),
    "stsb": (5_749, 1_500),
    "gsm8k": (6_725, 748),
    "flan_cot": (30_095, 3_348),
    "alpaca_5k": (4_499, 499),  # of 4,500 and 500: one answer in each is empty
    "acl_titles": (24_000, 1_249),
}


def documented(name: str) -> dict[str, Any]:
    """The settings of a row of the table in docs/data.md."""
    page = (Path(__file__).parents[2] / "docs" / "data.md").read_text(encoding="utf8")
    row = next(line for line in page.splitlines() if line.startswith(f"| `{name}` |"))
    return tomllib.loads("\n".join(re.findall(r"`(\w+ = [^`]+)`", row.replace("\\|", "|"))))


@shared
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in ("books", "flan_cot") else ()) for name in COUNTS]
)
def test_real_corpora(name: str) -> None:
    opened = open_corpus(DataConfig(path=str(SHARED / name), **documented(name)))
    assert tuple(sum(1 for _ in opened.read(split)) for split in opened.splits) == COUNTS[name]


@shared
def test_tinyshakespeare_is_cut_where_others_cut_it() -> None:
    opened = open_corpus(DataConfig(path=str(SHARED / "tinyshakespeare"), **documented("tinyshakespeare")))
    sizes = [sum(len(texts_of(example)[0]) for example in opened.read(split)) for split in opened.splits]
    assert sizes == [1_003_854, 111_540]
