"""TSV, CSV and JSON: columns by name or number; malformed rows are errors that name file and line."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from clearhead.data.examples import Document, LabelledText, Pair
from clearhead.data.readers.tables import SelectedFields, is_header, read_rows
from properties import assume, given, st
from reading import error_of, read


def test_tsv_with_and_without_a_header(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text("sentence\tlabel\n\"quoted\t1\nit's\t0\n")
    by_name = read(tmp_path, task="classification", text="sentence", label="label")
    assert by_name == [LabelledText('"quoted', "1"), LabelledText("it's", "0")]
    message = error_of(lambda: read(tmp_path, task="classification", text="1", label="2"))
    assert "train.tsv:1 looks like a header" in message
    assert "give them by name: data.text=sentence data.label=label; or" in message
    (tmp_path / "train.tsv").write_text("\"quoted\t1\nit's\t0\n")
    assert read(tmp_path, task="classification", text="1", label="2") == by_name


@pytest.mark.parametrize(
    ("rows", "header"),
    [
        (["english,french", "the cat,le chat"], True),
        (["id,texte_1", "7,le chat"], True),
        (["english,french"], False),  # nothing to compare it with
        (["the cat,le chat", "a dog,un chien"], False),
        (["go,va", "the cat,le chat", "run,cours"], False),  # another row of single words
        (["excellent,good", "very bad,bad", "it is fine,good"], False),  # a label that recurs
        (["text,text", "the cat,le chat"], False),
        (["7,name", "8,the cat"], False),
    ],
)
def test_a_header_is_told_from_an_example(tmp_path: Path, rows: list[str], header: bool) -> None:
    (tmp_path / "train.csv").write_text("\n".join(rows) + "\n")
    if header:
        assert "train.csv:1 looks like a header" in error_of(lambda: read(tmp_path, source="1", target="2"))
    else:
        assert len(read(tmp_path, source="1", target="2")) == len(rows)


def test_a_missing_column_names_the_others(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text("sentence\tlabel\na\t1\n")
    message = error_of(lambda: read(tmp_path, task="classification", text="sentense", label="label"))
    assert "train.tsv:1: no field 'sentense' (data.text); it has: sentence, label; did you mean 'sentence'?" in message
    assert "it has: 1, 2" in error_of(lambda: read(tmp_path, task="classification", text="1", label="3"))
    assert "it has: 1, 2" in error_of(lambda: read(tmp_path, task="classification", text="0", label="1"))
    assert "needs data.label" in error_of(lambda: read(tmp_path, task="classification", text="sentence"))


def test_a_row_with_another_number_of_fields(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text("a\tb\nc\td\te\n")
    assert "train.tsv:2: 3 fields, but line 1 has 2; a stray tab?" in error_of(
        lambda: read(tmp_path, source="1", target="2")
    )


def test_escapes_of_tsv_are_resolved_only_if_asked(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text("one\\ntwo\\\\n\tback\\tslash\\x\n")
    assert read(tmp_path, source="1", target="2") == [Pair("one\\ntwo\\\\n", "back\\tslash\\x")]
    assert read(tmp_path, source="1", target="2", escapes=True) == [Pair("one\ntwo\\n", "back\tslash\\x")]


CELL = st.text(st.characters(exclude_characters="\0\r", exclude_categories=["Cs"]), max_size=20)


@given(st.lists(st.tuples(CELL, CELL), min_size=1, max_size=10))
def test_csv_is_read_as_it_was_written(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]]) -> None:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows(rows)
    assume(not is_header(rows[0], rows[1:]))
    path = tmp_path_factory.mktemp("csv") / "train.csv"
    path.write_text(text.getvalue(), encoding="utf8", newline="")
    assert [row.values for row in read_rows(path, SelectedFields(("1", "2"), ("source", "target")))] == rows


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("names", [{"text": "text", "label": "label"}, {"text": "1", "label": "2"}])
def test_csv_of_spreadsheets_in_other_countries(tmp_path: Path, names: dict[str, str], separator: str) -> None:
    """They separate by semicolons or tabs; fields may contain the other separators, quoted or not."""
    rows = [["text", "label"], ["good, really; yes\tindeed", "pos"], ["bad", "neg"]]
    with (tmp_path / "train.csv").open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file, delimiter=separator).writerows(rows)
    found = read(tmp_path, task="classification", **names)
    assert found == [LabelledText(*row) for row in rows[names["text"] == "text" :]]


def test_a_comma_separates_if_the_columns_can_be_read_so(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("Hello; world\nSo; what\n")
    assert read(tmp_path, task="language", text="1") == [Document("Hello; world"), Document("So; what")]
    (tmp_path / "train.csv").write_text("a;b,c;d\ne;f,g;h\n")
    assert read(tmp_path, source="1", target="2") == [Pair("a;b", "c;d"), Pair("e;f", "g;h")]


def test_a_row_that_does_not_fit_is_no_reason_for_another_separator(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("One more.\ntwo, or three\n")
    assert "train.csv:2: 2 fields, but line 1 has 1" in error_of(lambda: read(tmp_path, task="language", text="1"))
    (tmp_path / "train.csv").write_text("text;label\ngood;pos\n")
    message = error_of(lambda: read(tmp_path, task="classification", text="txt", label="label"))
    assert "no field 'txt' (data.text); it has: text, label" in message


def test_a_json_file_with_the_other_ending_is_told_its_own(tmp_path: Path) -> None:
    row = json.dumps({"a": "x", "b": "y"})
    (tmp_path / "train.json").write_text(f"{row}\n{row}\n")
    assert error_of(lambda: read(tmp_path, source="a", target="b")).endswith("name a file of JSON lines .jsonl")
    (tmp_path / "train.json").unlink()
    for array in (f"[{row}]\n", f"[\n{row}\n]\n"):
        (tmp_path / "train.jsonl").write_text(array)
        message = error_of(lambda: read(tmp_path, source="a", target="b"))
        assert "train.jsonl:1: the beginning of an array; name a file with one array .json" in message


def test_a_file_of_a_spreadsheet_is_not_called_plain_text(tmp_path: Path) -> None:
    (tmp_path / "book.xlsx").write_bytes(b"PK\3\4\x14\0\n")
    message = error_of(lambda: read(tmp_path / "book.xlsx", task="classification", text="text", label="label"))
    assert "book.xlsx is not plain text, but a zip archive, as .xlsx" in message


def test_columns_that_are_not_named_are_listed(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("text;label\ngood;pos\n")
    message = error_of(lambda: read(tmp_path, task="similarity"))
    assert "data.text=FIELD data.other=FIELD [data.label=FIELD] [data.best_score=5]" in message
    assert message.endswith("it has 1 ('text'), 2 ('label')")
    (tmp_path / "train.csv").rename(tmp_path / "train.txt")
    assert error_of(lambda: read(tmp_path, task="similarity")).endswith("train.txt is plain text, without columns")
    assert "plain text and has no columns" in error_of(lambda: read(tmp_path, source="1", target="2"))


@pytest.mark.parametrize("blank", ["\n", "\r\n\r\n"])
def test_csv_of_blank_lines(tmp_path: Path, blank: str) -> None:
    (tmp_path / "train.csv").write_bytes(blank.encode())
    assert f"{tmp_path / 'train.csv'} has no rows" in error_of(lambda: read(tmp_path, source="1", target="2"))


def test_csv_with_an_open_quotation_mark(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text('a,b\n"c,d\ne,f\n')
    message = error_of(lambda: read(tmp_path, source="1", target="2"))
    assert "train.csv:3: not valid CSV" in message
    assert "quotation mark" in message


@pytest.mark.parametrize("ending", [".jsonl", ".json"])
def test_json_is_read_with_nested_columns(tmp_path: Path, ending: str) -> None:
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
    assert words in error_of(lambda: read(tmp_path, task="language", text="a"))


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
    assert words in error_of(lambda: read(tmp_path, task="language", text="a"))


def test_of_many_fields_some_are_named(tmp_path: Path) -> None:
    record = json.dumps({f"token{number}": number for number in range(50_000)})
    for text in (record, f"[{record}]"):
        (tmp_path / "train.json").write_text(text)
        message = error_of(lambda: read(tmp_path, task="language", text="x"))
        assert "token8, token9, ...;" in message + ";"
        assert len(message) < 400


def test_columns_of_plain_text(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("a b\n")
    assert "is plain text and has no columns" in error_of(lambda: read(tmp_path, source="1", target="2"))
