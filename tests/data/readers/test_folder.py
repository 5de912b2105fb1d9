"""A folder as a corpus: which files are which split, and errors that list what exists."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from clearhead.data.examples import Pair, texts_of
from ordinary_user import as_ordinary_user, folder_for_all
from reading import corpus, error_of, read, write_aligned


def test_a_missing_path_names_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "multi30k").mkdir()
    message = error_of(lambda: corpus(tmp_path / "multi30"))
    assert "data.path" in message
    assert "did you mean 'multi30k'?" in message
    assert error_of(lambda: corpus(tmp_path / "books")).endswith(
        "does not exist; set data.path=PATH to where the corpus is"
    )


def test_a_missing_split_names_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "training.tsv").write_text("a\tb\n")
    assert "data.train = 'train': no such file" in error_of(lambda: read(tmp_path, source="1", target="2"))
    assert "did you mean 'training'?" in error_of(lambda: read(tmp_path, source="1", target="2"))


def test_suggested_names_are_found(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    for name in ("p10", "p11", "p12"):
        (tmp_path / "x" / f"{name}.tsv.gz").write_bytes(gzip.compress(b"a\tb\n"))
    message = error_of(lambda: read(tmp_path, train="x/p1", source="1", target="2"))
    assert f"data.train = 'x/p1': no such file in {tmp_path}; did you mean 'x/p1" in message
    suggested = message.split("'")[-2]
    assert read(tmp_path, train=suggested, source="1", target="2") == [Pair("a", "b")]
    assert "it has x/p10, x/p11, x/p12" in error_of(lambda: read(tmp_path, train="train", source="1", target="2"))
    for number in range(13, 30):
        (tmp_path / "x" / f"p{number}.tsv").touch()
    message = error_of(lambda: read(tmp_path, source="1", target="2"))
    assert message.endswith("x/p18, x/p19, ...; data.train=. takes all of them")
    (tmp_path / "empty").mkdir()
    assert "; set data.path=PATH" in error_of(lambda: read(tmp_path / "empty", source="1", target="2"))


def test_patterns_below_folders(tmp_path: Path) -> None:
    folder = tmp_path / "sub"
    folder.mkdir()
    write_aligned(folder, ["one"], ["eins"])
    assert read(tmp_path, train="sub/train", source="en", target="de") == [Pair("one", "eins")]
    for name in ("p1", "p2"):
        (folder / f"{name}.tsv").write_text(f"{name}\tx\n")
    assert read(tmp_path, train="sub/p*", source="1", target="2") == [Pair("p1", "x"), Pair("p2", "x")]
    assert "no such file" in error_of(lambda: read(tmp_path, train="nowhere/p*", source="1", target="2"))


@pytest.mark.parametrize("hidden", ["", "sub"])
def test_folders_that_may_not_be_read(hidden: str) -> None:
    with folder_for_all() as folder:
        (folder / "data" / "sub").mkdir(parents=True)
        locked = folder / "data" / hidden
        locked.chmod(0)
        expected = f"{locked} cannot be read: Permission denied"
        with as_ordinary_user():
            assert expected in error_of(lambda: read(folder / "data", train="sub", source="1", target="2"))
            assert "Permission denied" in error_of(lambda: corpus(locked / "deeper"))
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
    assert "train.tsv or train.tsv.gz" in error_of(lambda: read(tmp_path, source="1", target="2"))


def test_splits_are_those_with_files(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("a")
    (tmp_path / "dev.txt").write_text("b")
    assert corpus(tmp_path, task="language").splits == ("train",)
    assert corpus(tmp_path, task="language", valid="dev").splits == ("train", "valid")
    assert corpus(tmp_path / "dev.txt", task="language", hold_out=0.5).splits == ("train", "valid")
    assert "set data.hold_out" in error_of(lambda: read(tmp_path / "dev.txt", "valid", task="language"))
    assert "set hold_out = 0" in error_of(lambda: corpus(tmp_path, task="language", valid="dev", hold_out=0.1))


@pytest.mark.parametrize("split", ["valid", "test"])
def test_a_split_with_a_name_of_its_own_must_be_there(tmp_path: Path, split: str) -> None:
    (tmp_path / "train.txt").write_text("a")
    (tmp_path / "val.txt").write_text("b")
    message = error_of(lambda: corpus(tmp_path, task="language", **{split: "vall"}))
    assert message == f"data.{split} = 'vall': no such file in {tmp_path}; did you mean 'val'?"
    message = error_of(lambda: corpus(tmp_path, task="language", **{split: "2016"}))
    assert message.endswith(f"it has train, val; without such data, data.{split}={split}")
    assert "is one file" in error_of(lambda: corpus(tmp_path / "train.txt", task="language", **{split: "val"}))
    assert corpus(tmp_path, task="language", valid="none", hold_out=0.5).splits == ("train", "valid")


def test_hold_out_of_rows_is_taken_from_each_file(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.tsv").write_text("".join(f"{name}{number}\tx\n" for number in range(10)))
    settings: dict[str, Any] = {"train": "*", "source": "1", "target": "2", "hold_out": 0.2}
    held_out = [texts_of(example)[0] for example in read(tmp_path, "valid", **settings)]
    assert held_out == ["a8", "a9", "b8", "b9"]
    assert len(read(tmp_path, "train", **settings)) == 16
    assert "for train; lower it" in error_of(lambda: read(tmp_path, "train", **settings | {"hold_out": 0.99}))


def test_a_folder_without_train_says_how_to_read_what_it_has(tmp_path: Path) -> None:
    for name in ("english.txt", "french.txt"):
        (tmp_path / name).write_text("a\n")
    message = error_of(lambda: read(tmp_path, source="en", target="fr"))
    assert "it has english, french; if line n of one translates line n of the other, name them train.en and" in message
    (tmp_path / "notes.md").write_text("b\n")
    assert error_of(lambda: read(tmp_path, task="language")).endswith(
        "it has english, french, notes.md; data.train=. takes all of them"
    )
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "more.txt").write_text("c\n")
    assert len(read(tmp_path, task="language", train=".")) == 4
