"""Lines of text files: plain or compressed; damaged files and other encodings are errors that say where."""

from __future__ import annotations

import gzip
import lzma
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from clearhead.config import UserError
from clearhead.data.examples import Pair
from clearhead.data.readers.files import read_lines
from clearhead.data.readers.tables import SelectedFields, read_rows
from properties import example, given, st
from reading import error_of, read


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
def test_compressed_files_are_read_as_their_lines(tmp_path: Path, ending: str) -> None:
    text = "".join(f"line {number} ü\n" for number in range(50_000))
    path = tmp_path / f"train.txt{ending}"
    path.write_bytes(packed(text.encode(), ending))
    assert "".join(read_lines(path)) == text
    path.write_bytes(packed(b"one\n", ending) + packed(b"two\n", ending))
    assert list(read_lines(path)) == ["one\n", "two\n"]  # several archives one after the other


@pytest.mark.parametrize("ending", [".gz", ".xz", ".zst"])
def test_a_damaged_archive_is_refused_with_its_line(tmp_path: Path, ending: str) -> None:
    data = packed("".join(f"line {number}\n" for number in range(50_000)).encode(), ending)
    path = tmp_path / f"train.txt{ending}"
    for broken in (data[: len(data) // 2], data[:-2], b"this is no archive at all"):
        path.write_bytes(broken)
        assert re.search(
            rf"{path.name} is damaged after line [\d,]+ .*download or compress it again",
            error_of(lambda: list(read_lines(path))),
        )


def test_zst_without_the_package_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    (tmp_path / "a.zst").write_bytes(b"x")
    assert "pip install 'clearhead[data]'" in error_of(lambda: list(read_lines(tmp_path / "a.zst")))


def packed(data: bytes, ending: str) -> bytes:
    if ending == ".zst":
        zstandard = pytest.importorskip("zstandard", reason="zstandard is not installed: pip install 'clearhead[data]'")
        return zstandard.ZstdCompressor().compress(data)
    return gzip.compress(data) if ending == ".gz" else lzma.compress(data)


def test_bytes_that_are_no_utf8(tmp_path: Path) -> None:
    path = tmp_path / "train.txt"
    path.write_bytes(b"fine\nalso f\xc3\xbcr you\nbad \xe9 here\n")
    message = error_of(lambda: list(read_lines(path)))
    assert f"{path}:3: byte 23 of the file (0xe9, 4 bytes into the line) is not UTF-8" in message
    assert message.endswith("iconv -f CP1252 -t UTF-8")


@pytest.mark.parametrize("encoding", ["UTF-16", "UTF-16LE", "UTF-16BE"])
@pytest.mark.parametrize("text", ["text,label\r\nyes,pos\r\n", "é à ü\n", "\nthe second line\n", "Où ? Là.\n"])
def test_utf16_is_named_with_and_without_a_byte_order_mark(tmp_path: Path, text: str, encoding: str) -> None:
    """What the message advises keeps every character; removing the NUL bytes would not."""
    path = tmp_path / "train.txt"
    path.write_bytes(text.encode(encoding))
    message = error_of(lambda: list(read_lines(path)))
    assert message == f"{path} is {encoding}, not UTF-8; convert it: iconv -f {encoding} -t UTF-8"


@pytest.mark.parametrize(
    ("content", "kind"),
    [(b"PK\3\4\x14\0\n", "a zip archive, as .xlsx"), (b"%PDF-1.4\n%\xe2\n", "a PDF"), (b"PAR1\x15\n\xff\n", "Parquet")],
)
def test_files_of_other_programs_are_named(tmp_path: Path, content: bytes, kind: str) -> None:
    path = tmp_path / "train.csv"
    path.write_bytes(content)
    assert f"{path} is not plain text, but {kind}" in error_of(lambda: list(read_lines(path)))


def test_a_compressed_file_without_its_suffix_is_named(tmp_path: Path) -> None:
    path = tmp_path / "train.txt"
    path.write_bytes(gzip.compress(b"text\n"))
    assert f"{path} is not plain text, but compressed; add .gz" in error_of(lambda: list(read_lines(path)))


def test_a_nul_byte_is_refused_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "train.txt"
    path.write_bytes(b"one\ntw\0o\n")
    assert f"{path}:2: byte 6 of the file is NUL" in error_of(lambda: list(read_lines(path)))


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "train.txt").touch()
    assert f"{tmp_path / 'train.txt'} is empty" in error_of(lambda: read(tmp_path, task="language"))


def test_zero_width_and_right_to_left_text_stays_as_it_is(tmp_path: Path) -> None:
    strange = ["a\u200bb", "\u202eabc\u202c", "שלום", "e\u0301", " two  spaces ", "\ufeffmark inside"]
    (tmp_path / "train.tsv").write_text("".join(f"x\t{text}\n" for text in strange), encoding="utf8")
    assert read(tmp_path, source="1", target="2") == [Pair("x", text) for text in strange]
