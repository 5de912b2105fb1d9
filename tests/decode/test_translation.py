"""Translating with a run: one text or many, n-best lists, sampling, texts that are too long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from clearhead import cli
from clearhead.config import UserError
from clearhead.decode.sampling import SamplingSettings
from clearhead.decode.translate import SearchSettings, translate
from clearhead.library import Loaded
from clearhead.runs import Run
from clearhead.text.tokenizer import Tokenizer
from saved_runs import save
from tiny_runs import SENTENCES, tiny_run

WILD = SamplingSettings(temperature=1.5)
LONG_AND_SHORT = [
    "the red car is fast",
    "a",
    "the dog sees the red house and the cat and the car",
    "",
    "a cat runs",
    " \t",
]


@pytest.mark.parametrize(
    "how", [SearchSettings(), SearchSettings(beam=1), SearchSettings(nbest=3)], ids=["beam", "greedy", "3 best"]
)
def test_many_texts_are_translated_as_each_alone_and_in_order(translator: Run, how: SearchSettings) -> None:
    together = translate(translator, LONG_AND_SHORT, how)
    alone = [translate(translator, [text], how)[0] for text in LONG_AND_SHORT]
    for some, others in zip(together, alone, strict=True):
        assert [each.text for each in some] == [each.text for each in others]
        assert [each.score for each in some] == pytest.approx([each.score for each in others])
    assert [found[0].text for found in (together[3], together[5])] == ["", ""]
    assert len({found[0].text for found in together}) > 3  # they do differ


def test_no_text_is_tokenized_twice(
    translator: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not to warn about it, for its length, and then again to be translated."""
    encoded: list[str] = []
    plain = Tokenizer._encode_new

    def counted(self: Tokenizer, texts: Sequence[str]) -> list[list[int]]:
        encoded.extend(texts)
        return plain(self, texts)

    folder = save(translator, tmp_path / "run")
    monkeypatch.setattr(Tokenizer, "_encode_new", counted)
    monkeypatch.setattr("sys.argv", ["clearhead", "translate", str(folder), "a cat", "the red car is fast", "a cat"])
    cli.main()
    assert sorted(encoded) == ["a cat", "the red car is fast"]
    assert len(capsys.readouterr().out.splitlines()) == 3


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"beam": 100_000_000}, "beam = 100,000,000"),
        ({"beam": 2, "nbest": 100_000_000}, "nbest = 100,000,000"),
        ({"nbest": 1_000_000_000, "choice": SamplingSettings()}, "nbest = 1,000,000,000"),
    ],
)
def test_a_search_that_does_not_fit_into_the_memory_is_refused(
    translator: Run, settings: dict[str, Any], named: str
) -> None:
    """Before it is begun: the system would end the process without a word."""
    with pytest.raises(UserError, match=rf"^{named} for each of 1 texts needs at least .* GB of memory, and .*smaller"):
        translate(translator, SENTENCES[:1], SearchSettings(**settings))


def test_the_best_come_first_and_all_are_different(translator: Run) -> None:
    best = Loaded(translator).nbest("the red car is fast", SearchSettings(beam=3, nbest=5))
    scores = [each.score for each in best]
    assert len({each.text for each in best}) >= 4
    assert len(best) == 5
    assert scores == sorted(scores, reverse=True)
    assert best[0].text == Loaded(translator).translate("the red car is fast", beam=5)


def test_a_seed_draws_the_same_translations_again_and_each_text_has_its_own(translator: Run) -> None:
    def drawn(texts: list[str], seed: int | None) -> list[list[str]]:
        found = translate(translator, texts, SearchSettings(choice=WILD, nbest=2, seed=seed))
        assert all(first.score >= second.score for first, second in found)
        return [[each.text for each in best] for best in found]

    twice = drawn(["a cat runs"] * 2, 5)
    assert twice == drawn(["a cat runs"] * 2, 5)
    assert twice == [*drawn(["a cat runs"], 5), *drawn(["a cat runs"], 6)]
    assert len({text for some in twice for text in some}) == 4
    assert drawn(["a cat runs"], None) != drawn(["a cat runs"], None)


def test_a_translation_begins_as_it_has_to(translator: Run) -> None:
    loaded = Loaded(translator)
    assert loaded.translate("a cat runs", prefix="la voiture").startswith("la voiture")
    assert loaded.translate("a cat runs", prefix="la voiture", beam=1) != loaded.translate("a cat runs", beam=1)
    both = loaded.translate("a cat runs. " * 12, prefix="voici", beam=1)
    assert both.startswith("voici")
    assert both.count("voici") == 1  # a text begins once, however many sentences it has


def test_a_text_that_is_too_long_is_translated_sentence_by_sentence(translator: Run) -> None:
    loaded = Loaded(translator)
    sentences = ["the dog sees the red house.", "a cat runs!", "the red car is fast."]
    assert sum(len(translator.tokenizers.source.encode(each)) for each in sentences) > 20
    whole = loaded.translate("  " + " ".join(sentences[:2]) + "\n\n" + sentences[2] + " ")
    first, second, third = loaded.translate(sentences)
    assert whole == f"{first} {second}\n\n{third}"


def test_single_sentences_are_all_that_some_runs_have_learned(translator: Run) -> None:
    alone = Loaded(replace(translator, one_sentence=True))
    one, two = alone.translate(["a cat.", "a dog."])
    assert alone.translate("a cat. a dog.") == f"{one} {two}"
    assert Loaded(translator).translate("a cat. a dog.") != f"{one} {two}"  # short enough to be read at once


def test_learned_positions_end_a_translation_in_time() -> None:
    run = replace(tiny_run(position="learned", max_length=24), longest=20)
    [[best]] = translate(run, ["the red car is fast"], SearchSettings(beam=1))
    assert best.text
    [[best]] = translate(run, ["the dog sees " * 50], SearchSettings(beam=1))
    assert best.text


def test_a_translation_that_does_not_end_says_so(translator: Run) -> None:
    run = replace(translator, model=tiny_run(dtype=torch.float64).model)
    end = run.tokenizers.target.end
    with torch.no_grad():
        run.model.head.project.weight[end] = 0
    assert not all(best.ended for (best,) in translate(run, list(SENTENCES), SearchSettings(beam=1)))


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"beam": 0}, "beam = 0"), ({"nbest": 0}, "nbest = 0"), ({"length_penalty": -1.0}, "length_penalty = -1.0")],
)
def test_a_search_that_makes_no_sense_is_refused(settings: dict[str, int], message: str) -> None:
    with pytest.raises(UserError, match=message):
        SearchSettings(**settings)
