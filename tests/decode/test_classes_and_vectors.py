"""Classes and sentence vectors of a run, for texts of any length."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from clearhead.config import UserError
from clearhead.decode.embed import embed_steps
from clearhead.decode.steps import run_steps
from clearhead.library import Loaded
from clearhead.runs import Run
from clearhead.text.tokenizer import Tokenizers, load_tokenizer
from tiny_runs import SENTENCES, tiny_run


def test_probabilities_sum_to_one_and_the_label_is_the_likeliest(classifier: Run) -> None:
    found = Loaded(classifier).classify([*SENTENCES, "the red car " * 30])
    for each in found:
        assert sum(each.probabilities.values()) == pytest.approx(1)
        assert each.probabilities[each.label] == max(each.probabilities.values())
    assert len({tuple(each.probabilities.values()) for each in found}) == len(found)
    alone = [Loaded(classifier).classify(text) for text in [*SENTENCES, "the red car " * 30]]
    for each, other in zip(found, alone, strict=True):
        assert each.probabilities == pytest.approx(other.probabilities, abs=1e-6)


def test_a_long_text_is_the_mean_of_its_windows(classifier: Run) -> None:
    run, tokenizer = classifier, classifier.tokenizers.target
    ids = tokenizer.encode("the dog sees the red house and runs")
    assert 10 < len(ids) < 20
    windows = [[tokenizer.start, *part, tokenizer.end] for part in (ids[:10], ids[10:])]
    outputs = torch.cat([run.model(torch.tensor([window])) for window in windows])
    weights = torch.tensor([[float(len(window))] for window in windows])
    expected = ((outputs * weights).sum(0) / weights.sum()).softmax(-1)
    found = Loaded(run).classify("the dog sees the red house and runs")
    assert list(found.probabilities.values()) == pytest.approx(expected.tolist(), abs=1e-6)


def test_vectors_have_length_one_whatever_the_text() -> None:
    loaded = Loaded(tiny_run("encoder-only", head="embedding"))
    vectors = loaded.embed([*SENTENCES, "\x00", "😀" * 1000])
    torch.testing.assert_close(vectors.norm(dim=1), torch.ones(6))
    torch.testing.assert_close(loaded.embed(SENTENCES[1]), vectors[1])
    assert vectors[0] @ vectors[1] < 0.999
    assert loaded.embed([]).shape == (0, 16)


def test_long_texts_are_read_in_steps_so_that_others_can_take_turns() -> None:
    run = tiny_run("encoder-only", head="embedding")
    steps = embed_steps(run, ["the red car " * 3000])
    assert next(steps) is None
    assert next(steps) is None  # there is more than one
    assert torch.equal(run_steps(steps), Loaded(run).embed(["the red car " * 3000]))


def test_a_text_without_a_token_has_a_vector_too(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "red"]))
    bert = load_tokenizer(tmp_path)
    assert bert.encode("\x00") == []  # BERT leaves control characters out
    loaded = Loaded(replace(tiny_run("encoder-only", head="embedding"), tokenizers=Tokenizers(bert, bert)))
    torch.testing.assert_close(loaded.embed(["\x00", "red"]).norm(dim=1), torch.ones(2))


def test_an_empty_text_has_no_class(classifier: Run) -> None:
    with pytest.raises(UserError, match="text 2 is empty"):
        Loaded(classifier).classify(["a", " \n"])
    assert Loaded(classifier).classify([]) == []
