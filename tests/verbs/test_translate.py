"""`clearhead translate` says what the library says, a line for a line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import clearhead
from clearhead.decode.translate import SearchSettings
from clearhead.text.tokenizer import Tokenizers
from clearhead.verbs.translate import note_other_numbers
from command_line import TRAINED, Terminal, Verb
from saved_runs import save
from tiny_runs import tiny_run, tokenizers
from trained_tokenizers import OURS


def test_translate_says_what_the_library_says(verb: Verb) -> None:
    loaded, texts = clearhead.load(TRAINED), ["the red car is fast", "", "a cat runs", "   "]
    expected = loaded.translate(texts)
    assert verb("translate", TRAINED, *texts) == (expected, "", 0)
    assert verb("translate", TRAINED, stdin="\r\n".join(texts)) == (expected, "", 0)
    assert verb("translate", TRAINED, texts[0], "--beam", 1, "--prefix", "la") == (
        [loaded.translate(texts[0], beam=1, prefix="la")],
        "",
        0,
    )


def test_changed_numbers_are_noted(verb: Verb) -> None:
    texts = ["It costs $19.99.", "Where is the station?"]
    lines, notes, _ = verb("translate", "english-french", *texts)
    assert "19" not in lines[0], "the translator has learned amounts: find another example"
    assert f"check the numbers in 1 of 2 translations; they differ in '{texts[0]}' -> '{lines[0]}'" in notes


@pytest.mark.parametrize("one_sentence", [True, False])
def test_a_summary_may_leave_numbers_out(one_sentence: bool, capsys: pytest.CaptureFixture[str]) -> None:
    run = replace(clearhead.load(TRAINED).run, one_sentence=one_sentence)
    note_other_numbers(run, [("3 cats", "trois chats")])
    assert ("check the numbers" in capsys.readouterr().err) == one_sentence


def test_translations_come_with_their_scores(verb: Verb) -> None:
    best = clearhead.load(TRAINED).nbest("a cat runs", SearchSettings(nbest=3))
    lines, _, _ = verb("translate", TRAINED, "a cat runs", "--nbest", 3)
    assert lines == [f"{each.score:.4f}\t{each.text}" for each in best]
    [line], _, _ = verb("translate", TRAINED, "a cat runs", "--nbest", 3, "--json")
    read = json.loads(line)
    assert read["source"] == "a cat runs"
    assert [each["text"] for each in read["translations"]] == [each.text for each in best]
    assert read["translations"][0] == pytest.approx(vars(best[0]))


def test_draws_are_repeated_by_their_seed_and_every_line_has_its_own(
    verb: Verb, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ("translate", TRAINED, "--sample", "--top-k", 20, "--temperature", 1.5, "--seed", 3)
    lines, _, _ = verb(*options, stdin="a cat runs\n" * 6)
    assert len(set(lines)) > 2
    monkeypatch.setattr("clearhead.terminal.pipes.BATCH_BYTES", 16)  # the lines come in three parts
    assert verb(*options, stdin="a cat runs\n" * 6)[0] == lines


@pytest.mark.parametrize("text", ["the red car is fast. " * 4762, "x" * 100_000], ids=["sentences", "one word"])
def test_100_000_characters_are_translated(verb: Verb, text: str) -> None:
    [line], notes, code = verb("translate", TRAINED, "--beam", 1, stdin=text)
    assert len(line) > 1000
    assert code == 0
    assert "tokens; the longest text in the training data had 59" in notes


def test_a_progress_bar_counts_the_spans_of_one_long_line(verb: Verb, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clearhead.verbs.options.DELAY", 0)
    text = "the red car is fast. " * 5
    with Terminal() as terminal:
        verb("translate", TRAINED, text)
    assert "4/4 spans" in terminal.getvalue()  # after the first one, which may have to begin with --prefix
    with Terminal() as terminal:
        verb("translate", TRAINED, "the red car is fast")
    assert "spans" not in terminal.getvalue()


def test_characters_that_a_tokenizer_does_not_know(verb: Verb, tmp_path: Path) -> None:
    words = OURS["words"]
    run = tiny_run(wider=words.vocab - tokenizers().target.vocab)
    folder = save(replace(run, tokenizers=Tokenizers(words, words)), tmp_path)
    lines, _, code = verb("translate", folder, "日本語 zzz \x00", "😀", "\u200b")
    assert (len(lines), code) == (3, 0)
