"""Triton kernels for a GPU, each with the plain PyTorch formula that it must equal.

Nothing depends on them: without Triton or without a GPU the plain formula runs. They exist where PyTorch has no kernel
for the case: a loss without whole logits, attention over sentences of a few dozen tokens, attention of one new token.
"""

from __future__ import annotations

import importlib.util

from torch import Tensor

INSTALLED = importlib.util.find_spec("triton") is not None


def usable(x: Tensor) -> bool:
    """Whether kernels can run on this tensor: Triton is installed, and the tensor is on a GPU."""
    return INSTALLED and x.is_cuda
