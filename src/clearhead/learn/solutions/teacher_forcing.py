"""Teacher forcing: inputs and labels.

In training, the decoder reads the right target, shifted by one place, and predicts at every place
the token that comes next: one pass trains all places at once, and the causal mask keeps it from
looking at the answer.

    target        je    vois  le    chat
    inputs        start je    vois  le    chat
    labels        je    vois  le    chat  end
"""

import torch
from torch import Tensor


def shift(sentences: list[list[int]], start: int, end: int, pad: int) -> tuple[Tensor, Tensor]:
    """Return the inputs and the labels of a batch of target sentences: (B, T) and (B, T), int64.

    T is one more than the longest sentence has. Inputs begin with `start` and are padded on the right with `pad`.
    Labels have `end` after the last token of each sentence, and -100 where there is padding: the loss ignores it.
    """
    length = max(len(ids) for ids in sentences) + 1
    inputs = torch.full((len(sentences), length), pad)
    labels = torch.full((len(sentences), length), -100)
    for row, ids in enumerate(sentences):
        inputs[row, : len(ids) + 1] = torch.tensor([start, *ids])
        labels[row, : len(ids) + 1] = torch.tensor([*ids, end])
    return inputs, labels
