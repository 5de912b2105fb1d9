"""`clearhead data` tells what a corpus holds, and what to say when it cannot know."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from clearhead.bundled import FOLDER, TRANSLATOR
from clearhead.config import DataConfig, UserError
from clearhead.corpora.catalogue import CORPORA
from clearhead.data import summary
from clearhead.data.summary import histogram, length_of, show_corpus
from clearhead.verbs.data import guess, list_corpora, settings_of

SMALL = ["data.size=200", "tokenizer.vocab=500"]


def test_all_corpora_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    list_corpora()
    shown = capsys.readouterr().out
    assert all(name in shown for name in CORPORA)


@pytest.mark.parametrize("name", CORPORA)
def test_a_built_in_corpus_shows_sizes_lengths_and_samples(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    show_corpus(settings_of(name, SMALL), samples=2)
    shown = capsys.readouterr().out
    assert f"{name}: {CORPORA[name].task}" in shown
    for words in ("train", "compositional", "known from train", "tokens of the longest sequence", "samples", "200"):
        assert words in shown
    assert "│" in shown  # tokens can be told apart without colour


def aligned(folder: Path) -> Path:
    for ending, text in (("en", "the cat\nthe dog\n"), ("de", "die Katze\nder Hund\n")):
        (folder / f"train.{ending}").write_text(text)
    return folder


def test_aligned_files_are_recognised(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert guess(aligned(tmp_path)) == {"task": "translation", "source": "en", "target": "de"}
    show_corpus(settings_of(str(tmp_path), ["tokenizer.vocab=300"]), samples=1)
    assert "Katze" in capsys.readouterr().out.replace("│", "")


def test_plain_text_is_recognised(tmp_path: Path) -> None:
    (tmp_path / "input.txt").write_text("to be or not to be\n")
    assert settings_of(str(tmp_path / "input.txt"), []).data.task == "language"


def test_a_table_is_described_until_somebody_says_what_it_is(tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").write_text(json.dumps({"question": "why?", "answer": "because"}) + "\n")
    with pytest.raises(UserError, match=r"train\.jsonl, with the fields question, answer; say what to read, such as"):
        settings_of(str(tmp_path), [])
    said = settings_of(str(tmp_path), ["data.task=chat", "data.source=question", "data.target=answer"])
    assert said.data.task == "chat"
    with pytest.raises(UserError, match=r"(?s)data\.task=chat data\.text=FIELD \(a list.*\nwhere FIELD is"):
        settings_of(str(tmp_path), [])
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match=r"empty contains no files$"):
        settings_of(str(tmp_path / "empty"), [])
    (tmp_path / "train.csv").write_text("english,french\nthe cat,le chat\n")
    (tmp_path / "README.txt").write_text("a table\n")
    (tmp_path / "train.jsonl").unlink()
    with pytest.raises(UserError, match=r"train\.csv, with the fields english, french; say what to read"):
        settings_of(str(tmp_path), [])
    (tmp_path / "odd.jsonl").write_text("12\n")
    with pytest.raises(UserError, match=r"odd\.jsonl, with the fields none: its rows are not objects"):
        settings_of(str(tmp_path / "odd.jsonl"), [])
    (tmp_path / "train.csv").write_text("good,1\n")
    with pytest.raises(UserError, match=r"train\.csv, with the fields 1 \('good'\), 2 \('1'\)"):
        settings_of(str(tmp_path / "train.csv"), [])


def test_recipes_name_their_data(tmp_path: Path) -> None:
    recipe = tmp_path / "mine.toml"
    recipe.write_text('[data]\ncorpus = "stories"\ntask = "language"\n[tokenizer]\nvocab = 777\n')
    assert settings_of(str(recipe), ["data.size=9"]).data.size == 9
    assert settings_of(str(recipe), []).tokenizer.vocab == 777


def test_text_is_never_taken_for_markup(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "[bold]odd").mkdir()
    table = tmp_path / "[bold]odd" / "train.tsv"
    table.write_text("text\tlabel\nfine [/red]\t[/red]\nbad\t[b]\n")
    overrides = ["data.task=classification", "data.text=text", "data.label=label", "tokenizer.vocab=300"]
    show_corpus(settings_of(str(table.parent), overrides), samples=2)
    shown = capsys.readouterr().out
    assert "[bold]odd" in shown
    assert "[/red]" in shown.replace("│", "")


def test_what_is_too_long_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "train.tsv").write_text("a\tb\n" + "x\ty\n" * 3 + "word " * 50 + "\tz\n")
    overrides = ["data.task=translation", "data.source=a", "data.target=b", "data.max_length=10", "tokenizer.vocab=300"]
    show_corpus(settings_of(str(tmp_path), overrides), samples=0)
    assert "25.0% are longer than data.max_length = 10 and will be dropped" in capsys.readouterr().out


def test_only_the_beginning_of_much_text_is_looked_at(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(summary, "INSPECTED", 30_000)
    (tmp_path / "train.txt").write_text("one two three\n" * 4_000)
    show_corpus(settings_of(str(tmp_path), ["data.separator=\n", "tokenizer.vocab=300"]), samples=1)
    shown = capsys.readouterr().out
    assert "4,000" in shown
    assert re.search(r"words are counted in the first 2,\d\d\d examples", shown)


def test_a_corpus_without_examples_says_why(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text("a\tb\n \t\n")
    settings = ["data.source=a", "data.target=b", f"tokenizer.path={FOLDER / TRANSLATOR}"]
    with pytest.raises(UserError, match=r"has no train examples; 1 empty examples dropped \(first: .*train\.tsv:2\)"):
        show_corpus(settings_of(str(tmp_path), settings), samples=2)


def test_a_data_set_without_train_says_what_it_has(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    rows = datasets.Dataset.from_dict({"text": ["hello"]})
    datasets.DatasetDict({"validation": rows}).save_to_disk(str(tmp_path / "saved"))
    settings = ["data.task=language", "data.text=text"]
    with pytest.raises(UserError, match=r"data\.train = 'train': no such split in .*; known: validation"):
        show_corpus(settings_of(f"hf:{tmp_path / 'saved'}", settings), samples=2)


def test_an_unknown_name_gets_a_suggestion() -> None:
    with pytest.raises(UserError, match="did you mean 'phrasebook'"):
        settings_of("phrasbook", [])


def test_the_histogram_counts_every_example(tmp_path: Path) -> None:
    from rich.console import Console

    from clearhead.config import TokenizerConfig
    from clearhead.data.examples import Document
    from clearhead.text.tokenizer import train_tokenizer

    examples = [Document("a " * n) for n in range(1, 101)]
    tokenizer = train_tokenizer(TokenizerConfig(vocab=300), ["a b c"], progress=False)
    console = Console(width=80, record=True, file=(tmp_path / "out").open("w"))
    console.print(histogram(sorted(length_of(each, tokenizer) for each in examples), DataConfig()))
    shares = [float(line.split()[-1][:-1]) for line in console.export_text().splitlines() if line.endswith("%")]
    assert sum(shares) == pytest.approx(100, abs=1)


def test_a_long_document_is_one_example_of_the_histogram(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "book.txt").write_text("one two three four\n" * 20_000)
    show_corpus(settings_of(str(tmp_path / "book.txt"), ["tokenizer.vocab=300", "tokenizer.kind=words"]), samples=0)
    found = re.search(r"median ([\d,]+), longest ([\d,]+)", capsys.readouterr().out)
    assert found
    assert found[1] == found[2]
    assert int(found[1].replace(",", "")) == pytest.approx(100_001, abs=10)  # parts are cut at line ends
