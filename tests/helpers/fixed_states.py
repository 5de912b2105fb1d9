"""An empty decoding state of fixed shape for a model: a search gets its own from a prefill."""

from __future__ import annotations

from torch import Tensor

from clearhead.fast.gpu.fixed import FixedState
from clearhead.model import DecoderOnly, EncoderDecoder


def fixed_state(model: EncoderDecoder | DecoderOnly, prompt: Tensor, capacity: int) -> FixedState:
    """Return an empty state for (B, T) prompts, to be given to the model's `start`."""
    return FixedState(len(model.decoder.blocks), prompt.size(0), prompt.device, capacity, model.config.window)
