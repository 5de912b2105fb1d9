"""Measures agree with examples by hand, slow implementations, and the libraries that others use."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from clearhead.evaluate import measures
from clearhead.evaluate.measures import (
    accuracy,
    bits_per_byte,
    bleu,
    chrf,
    class_f1,
    confusion,
    exact_match,
    longest_common,
    lower_cased_bleu,
    macro_f1,
    pearson,
    perplexity,
    ranks,
    rouge_l,
    spearman,
)
from properties import given, st

OUTPUTS = ["the cat sat on the mat", "A dog, barks loudly at night"]
REFERENCES = ["the cat sat on a mat", "a dog barks loudly at night"]


def test_bleu_is_that_of_its_definition() -> None:
    """One sentence by hand: 5/6, 3/5, 2/4 and 1/3 of 1- to 4-grams are right, and it is as long as the reference."""
    score = bleu(OUTPUTS[:1], REFERENCES[:1])
    assert score.value == pytest.approx(100 * (5 / 6 * 3 / 5 * 2 / 4 * 1 / 3) ** 0.25)
    assert score.signature.startswith("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:")
    assert bleu(REFERENCES, REFERENCES).value == pytest.approx(100)


def test_lower_cased_bleu_is_named_as_such() -> None:
    """The comma is a word of its own, and "A" is "a": 11 of 13 words are right."""
    score = lower_cased_bleu(OUTPUTS, REFERENCES)
    precisions = ((5 + 6) / 13, (3 + 4) / 11, (2 + 2) / 9, (1 + 1) / 7)
    assert score.value == pytest.approx(100 * math.prod(precisions) ** 0.25)
    assert "|case:lc|" in score.signature
    assert "|tok:13a|smooth:none|" in score.signature
    assert bleu(OUTPUTS, REFERENCES).value < score.value


def test_chrf_counts_half_right_words() -> None:
    assert chrf(["chanter"], ["chantera"]).value > 50
    assert chrf(["xyz"], ["chantera"]).value == 0
    assert chrf(REFERENCES, REFERENCES).value == pytest.approx(100)
    assert "nc:6|nw:0" in chrf(OUTPUTS, REFERENCES).signature


def test_exact_match_forgives_white_space_alone() -> None:
    assert exact_match(["a  b ", "a b", "A b"], ["a b", "a c", "a b"]) == pytest.approx(1 / 3)


def test_rouge_l_is_that_counted_by_hand() -> None:
    """Of "police killed the gunman", "police kill the gunman" has 3 of 4 words in order; the other order 2 of 4."""
    assert rouge_l("police kill the gunman", "police killed the gunman") == pytest.approx(0.75)
    assert rouge_l("the gunman kill police", "police killed the gunman") == pytest.approx(0.5)
    assert rouge_l("Élève, été!", "élève été") == 1.0
    assert rouge_l("short", "a short one") == pytest.approx(2 * 1 * (1 / 3) / (1 + 1 / 3))
    assert rouge_l("", "a") == rouge_l("a", "") == rouge_l("", "") == 0.0


@given(st.lists(st.integers(0, 4), max_size=40), st.lists(st.integers(0, 4), max_size=40))
def test_the_longest_common_subsequence_is_that_of_the_table(one: list[int], other: list[int]) -> None:
    table = [[0] * (len(other) + 1) for _ in range(len(one) + 1)]
    for i, a in enumerate(one):
        for j, b in enumerate(other):
            table[i + 1][j + 1] = table[i][j] + 1 if a == b else max(table[i][j + 1], table[i + 1][j])
    assert longest_common(one, other) == table[-1][-1]


def test_perplexity_and_bits_follow_from_the_likelihood() -> None:
    """A model that knows nothing hesitates among all 8 tokens, and needs 3 bits for each; of 2 bytes, say."""
    nats = 10 * math.log(8)
    assert perplexity(nats, 10) == pytest.approx(8)
    assert perplexity(nats, 5) == pytest.approx(64)  # the same text in half as many words
    assert bits_per_byte(nats, 20) == pytest.approx(1.5)
    assert perplexity(1e6, 1) == math.inf


def test_accuracy_and_f1_are_those_counted_by_hand() -> None:
    """Three classes, the last never there and never said."""
    outputs, references = [0, 0, 1, 1, 1], [0, 1, 1, 1, 0]
    table = confusion(outputs, references, 3)
    assert table.tolist() == [[1, 1, 0], [1, 2, 0], [0, 0, 0]]
    assert accuracy(outputs, references) == pytest.approx(3 / 5)
    assert class_f1(table) == pytest.approx([0.5, 2 / 3, 0])
    assert macro_f1(table) == pytest.approx((0.5 + 2 / 3) / 2)


def test_a_class_that_is_only_said_counts_against_the_model() -> None:
    assert macro_f1(confusion([2, 0], [0, 0], 3)) == pytest.approx((2 / 3 + 0) / 2)


def test_ranks_share_their_places() -> None:
    assert ranks([30, 10, 20, 20, 20]).tolist() == [5, 1, 3, 3, 3]
    assert ranks([1, 1]).tolist() == [1.5, 1.5]


def test_correlations_by_hand() -> None:
    assert spearman([1, 2, 3, 4], [1, 8, 27, 64]) == pytest.approx(1)
    assert spearman([1, 2, 3], [3, 2, 1]) == pytest.approx(-1)
    # textbook: 1 - 6 * sum of squared differences / (n (n^2 - 1)), here 1 - 6 * 4 / 60
    assert spearman([1, 2, 3, 4], [2, 1, 4, 3]) == pytest.approx(0.6)
    # with ties: ranks 1, 2.5, 2.5, 4 against 1, 2, 3, 4
    assert spearman([1, 2, 2, 3], [1, 2, 3, 4]) == pytest.approx(4.5 / math.sqrt(4.5 * 5))
    assert pearson([1, 2, 3], [2, 4, 7]) == pytest.approx(5 / math.sqrt(2 * 38 / 3))
    assert math.isnan(spearman([1, 1, 1], [1, 2, 3]))


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=3, max_size=30))
def test_spearman_is_that_of_numpy_and_slow_ranks(pairs: list[tuple[int, int]]) -> None:
    one, other = zip(*pairs, strict=True)

    def slow(values: Sequence[int]) -> list[float]:
        return [sum(w < v for w in values) + (sum(w == v for w in values) + 1) / 2 for v in values]

    if len(set(one)) > 1 and len(set(other)) > 1:
        assert spearman(one, other) == pytest.approx(np.corrcoef(slow(one), slow(other))[0, 1])


def test_measures_are_pure() -> None:
    outputs = list(OUTPUTS)
    assert measures.bleu(outputs, REFERENCES) == measures.bleu(outputs, REFERENCES)
    assert outputs == OUTPUTS
