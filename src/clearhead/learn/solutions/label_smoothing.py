"""Cross-entropy with label smoothing.

Cross-entropy asks for probability 1 for the right token, which no softmax reaches: the logits
would have to grow without end. With smoothing ε, the target is 1 - ε for the right token, and ε
is spread evenly over the whole vocabulary, the right token included (each of V tokens gets ε /
V). The loss of a position is then

    - sum over all tokens v of target(v) · log p(v)
"""

import torch
from torch import Tensor


def smoothed_loss(logits: Tensor, targets: Tensor, smoothing: float) -> Tensor:
    """Return the sum of the losses of all positions, a tensor without axes.

    logits: (N, V)
    targets: (N,), the id of the right token, or -100 for a position that does not count
    """
    counts = targets != -100  # (N,)
    log_probabilities = logits.log_softmax(dim=-1)[counts]  # (M, V)
    right = log_probabilities.gather(1, targets[counts][:, None]).squeeze(1)  # (M,)
    uniform = log_probabilities.mean(dim=-1)  # (M,)
    return -((1 - smoothing) * right + smoothing * uniform).sum()
