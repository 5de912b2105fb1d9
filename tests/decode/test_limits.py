"""What a run was not trained to read is said on stderr, once for each text, and never on stdout."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from clearhead.config import TokenizerConfig
from clearhead.decode.limits import has_other_numbers, unseen_words, warnings_about
from clearhead.text.tokenizer import Tokenizers, train_tokenizer
from clearhead.text.words import read_words, words_of, write_words
from clearhead.train.prepare import save_words
from command_line import Verb
from tiny_runs import tiny_run


@pytest.mark.parametrize(
    ("text", "translation"),
    [
        ("about 2,500,000 people", "environ 2 500 000 personnes"),
        ("4.5 kg at 7:45", "4,5 kg à 7 h 45"),
        ("$1,200 in 2024", "1\u202f200 dollars en 2024"),
        ("page 3 of 12", "de 12 pages, la 3"),
        ("no number", "aucun nombre"),
    ],
)
def test_the_same_numbers_may_be_written_in_another_way(text: str, translation: str) -> None:
    assert not has_other_numbers(text, translation)


@pytest.mark.parametrize(
    ("text", "translation"),
    [
        ("about 2,500,000 people", "environ 200 000 personnes"),
        ("$19.99", "dix-neuf dollars"),
        ("we won 3-1", "nous avons gagné 31"),
        ("4.5 kg", "45 kg"),
        ("call 06 26 18 44 52", "appelez le 26 1824"),
        ("a cat", "2 chats"),
    ],
)
def test_other_numbers_are_found(text: str, translation: str) -> None:
    assert has_other_numbers(text, translation)


def test_unseen_words_are_those_that_are_not_in_the_list(tmp_path: Path) -> None:
    write_words(["The red car", "a cat isn't here"], tmp_path / "words.txt")
    run = replace(tiny_run(), folder=tmp_path)
    assert unseen_words(run, "the RED zebra isn't a zebra, 4x4 giraffe") == ["zebra", "giraffe"]
    assert warnings_about(run, "a zebra") == ["words that do not occur in the training data: zebra"]
    assert unseen_words(tiny_run(), "a zebra") == []  # no list, no warning


def test_a_corpus_with_too_many_words_has_no_list(tmp_path: Path) -> None:
    write_words((f"{'ab'[n % 2]}{chr(0x4E00 + n // 2)}" for n in range(30_000)), tmp_path / "small.txt")
    assert len(read_words(tmp_path / "small.txt")) == 30_000
    write_words((a * 2 + chr(0x4E00 + n) for a in "abc" for n in range(20_000)), tmp_path / "large.txt")
    assert not (tmp_path / "large.txt").exists()
    assert read_words(tmp_path / "large.txt") == frozenset()


def test_training_saves_the_words_that_the_model_reads(tmp_path: Path) -> None:
    data = replace(tiny_run().recipe.data, size=50)
    save_words(data, tmp_path)
    known = read_words(tmp_path / "words.txt")
    assert {*words_of("the is a")} <= known
    assert "le" not in known  # a word of the targets


def test_words_of_the_run_that_training_begins_with_are_known(tmp_path: Path) -> None:
    data = replace(tiny_run().recipe.data, size=50)
    (tmp_path / "init").mkdir()
    (tmp_path / "tuned").mkdir()
    save_words(data, tmp_path / "tuned", str(tmp_path / "init"))
    assert not (tmp_path / "tuned" / "words.txt").exists()  # an imported model: its words are not known
    (tmp_path / "init" / "words.txt").write_text("zebra\n")
    save_words(data, tmp_path / "tuned", str(tmp_path / "init"))
    assert {"zebra", "the"} <= read_words(tmp_path / "tuned" / "words.txt")


def test_long_texts_and_unknown_words_are_named() -> None:
    run = replace(tiny_run(), longest=3)
    [warning] = warnings_about(run, "the red car is fast")
    assert warning.endswith("tokens; the longest text in the training data had 3")
    words = train_tokenizer(TokenizerConfig(kind="words", vocab=20), ["the red car"], progress=False)
    of_words = replace(tiny_run(), tokenizers=Tokenizers(words, words))
    [warning] = warnings_about(of_words, "the blue bus")
    assert warning == "2 of its words or characters have no token and are read as <unknown>"


def test_chat_and_fill_warn_too(verb: Verb, tmp_path: Path, runs: dict[str, Path]) -> None:
    for task in ("chat", "masked"):
        run = shutil.copytree(runs[task], tmp_path / task)
        (run / "words.txt").write_text("a\ncat\n")
    warning = "words that do not occur in the training data: zebra\n"
    _, notes, code = verb(
        "chat", tmp_path / "chat", "--greedy", "--tokens", 3, stdin="a cat\na zebra\n/system giraffe\n"
    )
    assert (notes, code) == (f"'a zebra': {warning}(a new conversation)\n", 0)
    _, notes, code = verb("fill", tmp_path / "masked", "a <mask>", "a <mask> zebra")
    assert (notes, code) == (f"'a <mask> zebra': {warning}", 0)  # a mask is not an unseen word


def test_a_word_is_named_once_in_many_lines(verb: Verb, tmp_path: Path, runs: dict[str, Path]) -> None:
    run = shutil.copytree(runs["classification"], tmp_path / "run")
    (run / "words.txt").write_text("a\ncat\n")
    _, notes, code = verb("classify", run, stdin="a zebra\na zebra\na giraffe and a zebra\n" * 3)
    warning = "words that do not occur in the training data:"
    named = [line for line in notes.splitlines() if warning in line]
    assert named == [f"'a zebra': {warning} zebra", f"'a giraffe and a zebra': {warning} giraffe, and"]
    assert code == 0


def test_a_long_word_is_named_by_its_beginning(verb: Verb, tmp_path: Path, runs: dict[str, Path]) -> None:
    run = shutil.copytree(runs["classification"], tmp_path / "run")
    (run / "words.txt").write_text("a\ncat\n")
    _, notes, _ = verb("classify", run, stdin="a " + "x" * 10_000)
    assert f"training data: {'x' * 40}…\n" in notes
    assert len(notes) < 1000


def test_verbs_warn_on_stderr_and_write_the_same(verb: Verb, tmp_path: Path, runs: dict[str, Path]) -> None:
    pairs = {"translation": "translate", "language": "generate", "classification": "classify", "similarity": "embed"}
    for task, name in pairs.items():
        run = shutil.copytree(runs[task], tmp_path / task)
        options = ["--greedy", "--tokens", "3"] if name == "generate" else []
        before = verb(name, run, "--json", "a zebra", *options)
        again = shutil.copytree(run, tmp_path / f"{task}-again")
        (again / "words.txt").write_text("a\ncat\n")
        lines, notes, code = verb(name, again, "--json", "a zebra", *options)
        assert (lines, code) == (before[0], 0)
        assert notes == f"'a zebra': words that do not occur in the training data: zebra\n{before[1]}"
