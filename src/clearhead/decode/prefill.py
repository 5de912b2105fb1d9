"""The prefill of a fused model: the encoder, and the prompt through the decoder.

Shapes: B sentences, S source tokens, T prompt tokens, D model, H heads, G key/value heads, K head size, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from clearhead.decode.fused import FusedModel, FusedStack
from clearhead.kernels.attention import fast_attention
from clearhead.kernels.few_rows import Normed
from clearhead.kernels.rotary import fast_rotate
from clearhead.model import State
from clearhead.model.attention import KVCache
from clearhead.model.block import Visibility
from clearhead.model.checks import check_length, check_prompt
from clearhead.model.stack import RotaryPosition, padding_mask

Caches = Sequence[tuple[KVCache, KVCache]]


class PrefillPass:
    """A pass of (B, T) tokens through a stack; keys and values go into the caches, if there are any."""

    def __init__(self, stack: FusedStack, shape: torch.Size, visibility: Visibility, caches: Caches = ()) -> None:
        self.stack = stack
        self.shape = shape
        self.visibility = visibility
        self.caches = caches
        self.rotation: Tensor | None = None
        shared = stack.config.kv_heads or stack.config.heads
        self.sizes = [stack.config.heads, shared, shared]
        self.head_size = stack.config.head_size

    def run(self, ids: Tensor, positions: Tensor) -> Tensor:
        """From ids (B, T) at their positions to hidden states (B, T, D)."""
        added = None
        position = self.stack.stack.position
        if isinstance(position, RotaryPosition):
            self.rotation = position(positions, torch.float32)
        elif position is not None:
            added = position(positions, torch.float32).expand(*ids.shape, -1).flatten(0, 1)
        hidden = self.stack.hidden(self.stack.embed(ids.flatten(), added), self)
        if isinstance(hidden, Normed):
            hidden = hidden.norm(hidden.x).to(self.stack.dtype)
        return hidden.view(*ids.shape, -1)

    def attend(self, index: int, qkv: Tensor) -> Tensor:
        """Self-attention: (B T, (H + 2 G) K) -> (B T, H K)."""
        heads = qkv.view(*self.shape, -1, self.head_size).transpose(1, 2)  # (B, H + 2 G, T, K)
        queries, keys, values = torch.split(heads, self.sizes, dim=1)
        if self.rotation is not None:
            queries = fast_rotate(queries, self.rotation)
            keys = fast_rotate(keys, self.rotation)
        if self.caches:
            keys, values = self.caches[index][0].append(keys, values)
        return self.mix(queries, keys, values, self.visibility.mask, self.visibility.causal)

    def attend_to_source(self, index: int, queries: Tensor) -> Tensor:
        """Cross-attention, whose keys and values are computed here: (B T, H K) -> (B T, H K)."""
        memory = self.visibility.memory
        assert memory is not None
        both = self.stack.source_keys_values[index](memory.flatten(0, 1))
        keys, values = both.view(*memory.shape[:2], -1, self.head_size).transpose(1, 2).chunk(2, dim=1)
        keys, values = self.caches[index][1].append(keys, values)
        split = queries.view(*self.shape, -1, self.head_size).transpose(1, 2)
        return self.mix(split, keys, values, self.visibility.memory_mask, causal=False)

    def mix(self, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
        """Attention of all heads, which are then joined: (B, H, T, K) -> (B T, H K)."""
        grouped = self.sizes[0] != self.sizes[1]
        mixed = fast_attention(queries, keys, values, mask, 0.0, causal, enable_gqa=grouped)
        return mixed.transpose(1, 2).reshape(-1, self.sizes[0] * self.head_size)


def start_target(
    model: FusedModel,
    source: Tensor,  # (B, S)
    prompt: Tensor,  # (B, T)
    source_real: Tensor | None = None,
    prompt_real: Tensor | None = None,
) -> tuple[Tensor, State]:
    """`EncoderDecoder.start`: return the logits (B, V) of the first new token, and the state."""
    assert model.encoder is not None
    check_length(source.size(1), model.encoder.stack.position_limit)
    mask = padding_mask(source_real)
    numbers = torch.arange(source.size(1), device=source.device)
    memory = PrefillPass(model.encoder, source.shape, Visibility(mask)).run(source, numbers)
    state = State(len(model.decoder.stack.blocks), prompt.size(0), prompt.device)
    state.set_memory(memory, mask)
    return read_prompt(model, state, prompt, prompt_real)


def start_text(model: FusedModel, prompt: Tensor, prompt_real: Tensor | None = None) -> tuple[Tensor, State]:
    """`DecoderOnly.start`: return the logits (B, V) of the first new token, and the state."""
    state = State(len(model.decoder.stack.blocks), prompt.size(0), prompt.device)
    return read_prompt(model, state, prompt, prompt_real)


def read_prompt(model: FusedModel, state: State, prompt: Tensor, real: Tensor | None) -> tuple[Tensor, State]:
    """Let the decoder read a prompt (B, T)."""
    check_prompt(prompt)
    check_length(prompt.size(1), model.decoder.stack.position_limit)
    positions, visibility = state.advance(prompt, real)
    hidden = PrefillPass(model.decoder, prompt.shape, visibility, state.caches).run(prompt, positions)
    return model.logits(hidden[:, -1].contiguous()), state
