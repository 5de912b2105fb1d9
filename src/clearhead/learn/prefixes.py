"""What the exercises about decoding search in: a function from all tokens so far to the logits of the next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from clearhead.decode.search import Prefill
from clearhead.model import EncoderDecoder, State
from clearhead.model.block import Visibility
from clearhead.text.tokenizer_formats import SPECIALS

START = list(SPECIALS).index("start")  # in the tokenizers that clearhead trains
NextLogits = Callable[[Tensor], Tensor]  # ids (B, T) -> logits (B, V) of the token that follows


def make_next_logits(vocab: int, seed: int, sharpness: float = 2.0) -> NextLogits:
    """Return a function whose logits depend on every token so far, most on the last ones."""
    generator = torch.Generator().manual_seed(seed)
    table = torch.randn(vocab, vocab, generator=generator) * sharpness
    first = torch.randn(vocab, generator=generator) * sharpness

    def next_logits(ids: Tensor) -> Tensor:
        age = torch.arange(ids.size(1) - 1, -1, -1)
        return first * 0.5 ** ids.size(1) + (table[ids] * 0.7 ** age[:, None]).sum(1)

    return next_logits


@dataclass
class PrefixDecoder:
    """Wrap such a function as a model that searches can decode from; its cache stores ids as keys and values."""

    next_logits: NextLogits

    def start(self, prompt: Tensor) -> Prefill:
        """Read prompts (B, T)."""
        state = State(1, prompt.size(0), prompt.device)
        return self.step(prompt, state), state

    def step(self, ids: Tensor, state: State) -> Tensor:
        """Read more tokens of each row (B, T)."""
        cache, _ = state.caches[0]
        new = ids[:, None, :, None]  # (B, 1 head, T, 1 channel)
        keys, _ = cache.append(new, new)
        return self.next_logits(keys[:, 0, :, 0])


def next_logits_of(model: EncoderDecoder, state: State, sentences: slice = slice(None)) -> NextLogits:
    """Return such a function for a model that has encoded its source, for some of the sentences; it uses no cache."""
    assert state.memory is not None
    memory = state.memory[sentences]
    mask = None if state.memory_mask is None else state.memory_mask[sentences]

    def next_logits(ids: Tensor) -> Tensor:
        hidden = model.decoder(ids, Visibility(causal=True, memory=memory, memory_mask=mask))
        return model.head(hidden[:, -1])

    return next_logits
