"""Measures: pure functions from outputs and references to a number.

Shapes: N examples, C classes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric

Texts = Sequence[str]
Counts = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

WORD = re.compile(r"\w+")
LARGEST_EXPONENT = 700  # exp of more than this overflows a float


class SacrebleuScore(NamedTuple):
    """A score with sacrebleu's signature, which says exactly how it was computed."""

    value: float
    signature: str


# --- texts ------------------------------------------------------------------------------------------------------------


def bleu(outputs: Texts, references: Texts) -> SacrebleuScore:
    """Sacrebleu's corpus BLEU, 0 to 100: cased, on plain text, which sacrebleu tokenizes itself (13a)."""
    from sacrebleu.metrics.bleu import BLEU

    return by_sacrebleu(BLEU(), outputs, references)


def lower_cased_bleu(outputs: Texts, references: Texts) -> SacrebleuScore:
    """Unsmoothed BLEU of lower-cased text, tokenized by 13a: comparable to the lower-cased tokenized BLEU-4 of papers.

    The papers' text is tokenized by Moses; here plain text is tokenized by mteval-v13a, so the numbers differ a little.
    """
    from sacrebleu.metrics.bleu import BLEU

    return by_sacrebleu(BLEU(lowercase=True, smooth_method="none"), outputs, references)


def chrf(outputs: Texts, references: Texts) -> SacrebleuScore:
    """Sacrebleu's corpus chrF2, 0 to 100: an F-score of character n-grams, so a partly correct word counts in part."""
    from sacrebleu.metrics.chrf import CHRF

    return by_sacrebleu(CHRF(), outputs, references)


def by_sacrebleu(metric: Metric, outputs: Texts, references: Texts) -> SacrebleuScore:
    """The score of a sacrebleu metric, with one reference for each output."""
    score = metric.corpus_score(list(outputs), [list(references)])
    return SacrebleuScore(float(score.score), str(metric.get_signature()))


def exact_match(outputs: Texts, references: Texts) -> float:
    """The fraction of outputs that equal their reference, ignoring white space."""
    return accuracy([output.split() for output in outputs], [reference.split() for reference in references])


def rouge_l(output: str, reference: str) -> float:
    """ROUGE-L of one text: F1 of the longest common subsequence of lower-cased words; no punctuation, no stemming."""
    ours, theirs = (WORD.findall(text.lower()) for text in (output, reference))
    return f1(longest_common(ours, theirs), len(ours), len(theirs))


def longest_common(one: Sequence[Hashable], other: Sequence[Hashable]) -> int:
    """The length of the longest common subsequence; each bit operation computes a whole row of the usual table.

    Bit i of `row` is 0 where the table increases from column i to column i + 1 (Hyyrö 2004).
    """
    places: dict[Hashable, int] = {}
    for place, item in enumerate(one):
        places[item] = places.get(item, 0) | 1 << place
    whole = (1 << len(one)) - 1
    row = whole
    for item in other:
        matched = row & places.get(item, 0)
        row = (row + matched | row - matched) & whole
    return len(one) - row.bit_count()


def f1(hits: int, predicted: int, true: int) -> float:
    """The harmonic mean of precision (hits / predicted) and recall (hits / true); 0 if both counts are 0."""
    return 2 * hits / (predicted + true) if predicted + true else 0.0


# --- likelihoods ------------------------------------------------------------------------------------------------------


def perplexity(nats: float, count: int) -> float:
    """Compute exp of the mean of -log p: as uncertain as a choice among this many equally likely tokens (or words)."""
    mean = nats / count
    return math.exp(mean) if mean < LARGEST_EXPONENT else math.inf


def bits_per_byte(nats: float, size: int) -> float:
    """The mean of -log2 p per byte of text, which is comparable between tokenizers."""
    return nats / math.log(2) / size


# --- classes ----------------------------------------------------------------------------------------------------------


def accuracy(outputs: Sequence[Any], references: Sequence[Any]) -> float:
    """The fraction of outputs that equal their reference."""
    return sum(ours == theirs for ours, theirs in zip(outputs, references, strict=True)) / len(references)


def confusion(outputs: Sequence[int], references: Sequence[int], classes: int) -> Counts:
    """The confusion matrix (C, C): how often each true class (row) was predicted as each class (column)."""
    table = np.zeros((classes, classes), np.int64)
    np.add.at(table, (np.asarray(references), np.asarray(outputs)), 1)
    return table


def class_f1(confused: npt.ArrayLike) -> list[float]:
    """The F1 of each class of a confusion matrix."""
    table = np.asarray(confused)
    predicted = table.sum(axis=0)
    true = table.sum(axis=1)
    return [f1(int(hits), int(predicted[i]), int(true[i])) for i, hits in enumerate(table.diagonal())]


def macro_f1(table: Counts) -> float:
    """The mean F1 of the classes that occur, as a true or as a predicted class."""
    occurring = table.sum(axis=0) + table.sum(axis=1) > 0
    return float(np.mean(np.array(class_f1(table))[occurring]))


# --- correlations -----------------------------------------------------------------------------------------------------


def pearson(one: Sequence[float], other: Sequence[float]) -> float:
    """Pearson's linear correlation, -1 to 1; nan if one of the sequences is constant."""
    ours, theirs = (np.asarray(values, np.float64) - np.mean(values, dtype=np.float64) for values in (one, other))
    lengths = float(np.linalg.norm(ours) * np.linalg.norm(theirs))
    return float(ours @ theirs) / lengths if lengths else math.nan


def spearman(one: Sequence[float], other: Sequence[float]) -> float:
    """Spearman's rank correlation: Pearson's correlation of the ranks."""
    return pearson(ranks(one).tolist(), ranks(other).tolist())


def ranks(values: Sequence[float]) -> Floats:
    """The rank of each value, from 1; equal values share the mean of their ranks."""
    _, which, counts = np.unique(np.asarray(values), return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[which], np.float64)
