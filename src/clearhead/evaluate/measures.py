"""Measures: from what a model said and what it should have said to a number. Pure functions on lists.

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
LARGEST = 700  # e to more than this is no float


class Signed(NamedTuple):
    """A number, and the signature that says exactly how it was computed."""

    value: float
    signature: str


# --- texts ------------------------------------------------------------------------------------------------------------


def bleu(outputs: Texts, references: Texts) -> Signed:
    """Sacrebleu's BLEU of a corpus, 0 to 100: cased, on plain text, which it tokenizes itself (13a)."""
    from sacrebleu.metrics.bleu import BLEU

    return by_sacrebleu(BLEU(), outputs, references)


def lower_cased_bleu(outputs: Texts, references: Texts) -> Signed:
    """BLEU after lower-casing, tokenized by 13a, unsmoothed: the nearest to papers' tokenized lower-cased BLEU-4.

    Those papers count on text that Moses tokenized, ours on what mteval-v13a makes of plain text.
    """
    from sacrebleu.metrics.bleu import BLEU

    return by_sacrebleu(BLEU(lowercase=True, smooth_method="none"), outputs, references)


def chrf(outputs: Texts, references: Texts) -> Signed:
    """Sacrebleu's chrF2 of a corpus, 0 to 100: F-score of character sequences, which half-right words count in."""
    from sacrebleu.metrics.chrf import CHRF

    return by_sacrebleu(CHRF(), outputs, references)


def by_sacrebleu(metric: Metric, outputs: Texts, references: Texts) -> Signed:
    """What a measure of sacrebleu says, with one reference for each output."""
    score = metric.corpus_score(list(outputs), [list(references)])
    return Signed(float(score.score), str(metric.get_signature()))


def exact_match(outputs: Texts, references: Texts) -> float:
    """The part of outputs that equal their reference, but for white space."""
    return accuracy([output.split() for output in outputs], [reference.split() for reference in references])


def rouge_l(output: str, reference: str) -> float:
    """ROUGE-L of one text: F1 of the longest common subsequence of words, lower-cased, without punctuation or stems."""
    ours, theirs = (WORD.findall(text.lower()) for text in (output, reference))
    return f1(longest_common(ours, theirs), len(ours), len(theirs))


def longest_common(one: Sequence[Hashable], other: Sequence[Hashable]) -> int:
    """The length of the longest common subsequence, a whole row of the usual table in each bit operation.

    Bit i of `row` is 0 where the table steps up from its column i to i + 1 (Hyyrö 2004).
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


def f1(hits: int, said: int, wanted: int) -> float:
    """The harmonic mean of precision (hits / said) and recall (hits / wanted); 0 where there is nothing."""
    return 2 * hits / (said + wanted) if said + wanted else 0.0


# --- likelihoods ------------------------------------------------------------------------------------------------------


def perplexity(nats: float, count: int) -> float:
    """Among how many equally likely tokens, or words, a model hesitates: e to the mean of -log p."""
    mean = nats / count
    return math.exp(mean) if mean < LARGEST else math.inf


def bits_per_byte(nats: float, size: int) -> float:
    """What a perfect archiver would need for each byte of the text; the same for all tokenizers."""
    return nats / math.log(2) / size


# --- classes ----------------------------------------------------------------------------------------------------------


def accuracy(outputs: Sequence[Any], references: Sequence[Any]) -> float:
    """The part of outputs that are right."""
    return sum(ours == theirs for ours, theirs in zip(outputs, references, strict=True)) / len(references)


def confusion(outputs: Sequence[int], references: Sequence[int], classes: int) -> Counts:
    """How often each class (row) was taken for each class (column): (C, C)."""
    table = np.zeros((classes, classes), np.int64)
    np.add.at(table, (np.asarray(references), np.asarray(outputs)), 1)
    return table


def class_f1(confused: npt.ArrayLike) -> list[float]:
    """The F1 of each class of a confusion matrix."""
    table = np.asarray(confused)
    said, wanted = table.sum(axis=0), table.sum(axis=1)
    return [f1(int(hits), int(said[i]), int(wanted[i])) for i, hits in enumerate(table.diagonal())]


def macro_f1(table: Counts) -> float:
    """The mean of the F1 of those classes that there are, or that the model said there are."""
    there = table.sum(axis=0) + table.sum(axis=1) > 0
    return float(np.mean(np.array(class_f1(table))[there]))


# --- correlations -----------------------------------------------------------------------------------------------------


def pearson(one: Sequence[float], other: Sequence[float]) -> float:
    """How well a line tells one from the other, -1 to 1; nan if one of them never changes."""
    ours, theirs = (np.asarray(values, np.float64) - np.mean(values, dtype=np.float64) for values in (one, other))
    lengths = float(np.linalg.norm(ours) * np.linalg.norm(theirs))
    return float(ours @ theirs) / lengths if lengths else math.nan


def spearman(one: Sequence[float], other: Sequence[float]) -> float:
    """How well the order of one tells the order of the other: Pearson's correlation of their ranks."""
    return pearson(ranks(one).tolist(), ranks(other).tolist())


def ranks(values: Sequence[float]) -> Floats:
    """The place of each value in their order, from 1; equal ones share the mean of their places."""
    _, which, counts = np.unique(np.asarray(values), return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[which], np.float64)
