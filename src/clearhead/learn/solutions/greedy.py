"""Greedy decoding.

The decoder predicts one token; it is appended to what the decoder reads, and the next one is
predicted, until the end token comes or there are enough. The sentences of a batch end at
different times: what has ended is padded.
"""

from collections.abc import Callable

import torch
from torch import Tensor


def greedy(next_logits: Callable[[Tensor], Tensor], prompt: Tensor, end: int, pad: int, most: int) -> Tensor:
    """Return the tokens that continue each prompt: (B, N), where N is `most`, or less if all have ended before.

    next_logits: returns the logits (B, V) of the token that follows ids (B, T); call it with everything so far
    prompt: (B, T), such as one start token for each sentence
    end: the token that ends a sentence; it is part of the result, and `pad` follows it
    """
    ids = prompt
    ended = torch.zeros(prompt.size(0), dtype=torch.bool)
    for _ in range(most):
        best = next_logits(ids).argmax(dim=-1)  # (B,)
        best = torch.where(ended, pad, best)
        ids = torch.cat([ids, best[:, None]], dim=1)
        ended = ended | (best == end)
        if ended.all():
            break
    return ids[:, prompt.size(1) :]
