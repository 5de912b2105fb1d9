"""Beam search.

The most likely first token may lead nowhere. A beam keeps the `width` most likely beginnings of a
text at each step. Longer texts are less likely, as each token costs probability, so complete
texts are compared by

    log-probability / ((5 + length) / 6)^alpha

where the length is the number of tokens, the end token included.
"""

from collections.abc import Callable

import torch
from torch import Tensor


def beam(
    next_logits: Callable[[Tensor], Tensor], end: int, width: int, most: int, alpha: float
) -> tuple[list[int], float]:
    """Return the best text of at most `most` tokens, without its end token, and its score.

    next_logits: returns the logits (B, V) of the token that follows ids (B, T), int64; at first they are (1, 0)

    At each step, all open hypotheses are continued by every token. Of the `width` most likely continuations (by
    log-probability), those that end with `end` are complete. The `width` most likely that do not end stay open. After
    `most` tokens, the `width` most likely continuations are complete, whether they end or not.
    """
    beams: list[tuple[float, list[int]]] = [(0.0, [])]  # log-probability and tokens of the open hypotheses
    complete: list[tuple[float, list[int]]] = []  # score and tokens
    for length in range(1, most + 1):
        logits = next_logits(torch.tensor([ids for _, ids in beams], dtype=torch.long))
        scores = logits.log_softmax(dim=-1).tolist()
        longer = []  # all continuations: log-probability and tokens
        for (total, ids), row in zip(beams, scores, strict=True):
            longer += [(total + row[token], [*ids, token]) for token in range(len(row))]
        longer.sort(reverse=True)
        for total, ids in longer[:width]:
            if ids[-1] == end or length == most:
                complete.append((total / ((5 + length) / 6) ** alpha, ids))
        beams = [each for each in longer if each[1][-1] != end][:width]
    score, best = max(complete)
    return best[:-1] if best[-1] == end else best, score
