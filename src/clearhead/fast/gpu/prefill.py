"""The prefill of a fused model: the encoder, and the prompt through the decoder, recorded as a CUDA graph.

Inputs are padded on the right to one of few lengths, so that most texts find a graph that was recorded for another one.
No token sees what is padded: a prompt's tokens do not see later ones, and the source has a mask.

Shapes: B sentences, S source tokens, T prompt tokens, D model, H heads, G key/value heads, K head size, V vocabulary.
"""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from clearhead.fast.gpu.fused import FusedModel, FusedStack
from clearhead.fast.gpu.graphs import Recorded
from clearhead.fast.kernels.attention import fast_attention
from clearhead.fast.kernels.few_rows import Normed
from clearhead.fast.kernels.rotary import fast_rotate
from clearhead.model import State
from clearhead.model.attention import KVCache
from clearhead.model.block import Visibility
from clearhead.model.cache import GrowingCache
from clearhead.model.checks import check_length, check_prompt, check_real
from clearhead.model.stack import RotaryPosition, padding_mask

Caches = Sequence[tuple[KVCache, KVCache]]

PREFILL_MULTIPLE = 32  # tokens: lengths are multiples of it, except that of a single token
KEPT_PREFILLS = 8  # sizes whose graphs are kept, each with its keys and values; the one used longest ago is dropped
MAX_RECORDED_WORK = 2 * 10**12  # tokens times weights: computing more takes longer than launching the kernels


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


class Inputs(NamedTuple):
    """What a prefill reads: tensors of one size, in memory of their own."""

    prompt: Tensor  # (B, T) padded on the right
    prompt_real: Tensor | None  # (B, T); None: prompts have no padding on the left
    length: Tensor  # () tokens of each prompt, without padding on the right
    source: Tensor | None  # (B, S) in a model with an encoder
    source_real: Tensor | None

    @classmethod
    def like(cls, prompt: Tensor, prompt_real: Tensor | None, source: Tensor | None) -> Inputs:
        """Return empty inputs for such tensors."""
        return cls(
            empty_like(prompt),
            None if prompt_real is None else empty_like(prompt_real),
            torch.zeros((), dtype=torch.long, device=prompt.device),
            None if source is None else empty_like(source),
            None if source is None else empty_like(source).bool(),
        )

    def write(
        self, prompt: Tensor, prompt_real: Tensor | None, source: Tensor | None, source_real: Tensor | None
    ) -> None:
        """Copy tensors of this size, or of less than PREFILL_MULTIPLE columns fewer; None: no padding."""
        self.length.fill_(prompt.size(1))
        self.prompt[:, : prompt.size(1)] = prompt
        if self.prompt_real is not None and prompt_real is not None:
            write_real(self.prompt_real, prompt_real, prompt.size(1))
        if self.source is not None and self.source_real is not None and source is not None:
            self.source[:, : source.size(1)] = source
            write_real(self.source_real, source_real, source.size(1))


def empty_like(t: Tensor) -> Tensor:
    """(B, T) -> zeros with T rounded up."""
    return t.new_zeros(t.size(0), padded_length(t.size(1)))


def padded_length(length: int) -> int:
    """The length to which this many tokens are padded."""
    return length if length == 1 else -(-length // PREFILL_MULTIPLE) * PREFILL_MULTIPLE


def write_real(own: Tensor, real: Tensor | None, length: int) -> None:
    """Write a mask of real tokens into a buffer, in its first `length` columns; None: all of them are real."""
    own[:, :length] = True if real is None else real
    own[:, length:] = False


class RecordedPrefills:
    """The prefills of a model, by size: the first one of a size kernel by kernel, the second recorded, then replayed.

    What a prefill returns is valid until the next one of the same size.
    """

    def __init__(self, model: FusedModel) -> None:
        self.model = model
        self.sizes: OrderedDict[Hashable, tuple[Inputs, Recorded[tuple[Tensor, State]]]] = OrderedDict()

    def start_target(
        self, source: Tensor, prompt: Tensor, source_real: Tensor | None = None, prompt_real: Tensor | None = None
    ) -> tuple[Tensor, State]:
        """`EncoderDecoder.start`: return the logits (B, V) of the first new token, and the state."""
        assert self.model.encoder is not None
        check_length(source.size(1), self.model.encoder.stack.position_limit)
        check_real(source_real)
        return self.start(prompt, prompt_real, source, source_real)

    def start_text(self, prompt: Tensor, prompt_real: Tensor | None = None) -> tuple[Tensor, State]:
        """`DecoderOnly.start`: return the logits (B, V) of the first new token, and the state."""
        return self.start(prompt, prompt_real, None, None)

    def start(
        self, prompt: Tensor, prompt_real: Tensor | None, source: Tensor | None, source_real: Tensor | None
    ) -> tuple[Tensor, State]:
        """Read prompts, after the encoder has read the source if there is one."""
        check_prompt(prompt)
        check_length(prompt.size(1), self.model.decoder.stack.position_limit)
        check_real(prompt_real)
        inputs, prefill = self.of_size(prompt, prompt_real, source)
        inputs.write(prompt, prompt_real, source, source_real)
        logits, state = prefill()
        return logits, shortened(state, prompt.size(1))

    def of_size(
        self, prompt: Tensor, prompt_real: Tensor | None, source: Tensor | None
    ) -> tuple[Inputs, Recorded[tuple[Tensor, State]]]:
        """Return the inputs and the prefill for tensors of such sizes."""
        width = padded_length(prompt.size(1))
        read = 0 if source is None else padded_length(source.size(1))
        key = (prompt.size(0), width, prompt_real is None, read)
        found = self.sizes.pop(key, None)
        if found is None:
            inputs = Inputs.like(prompt, prompt_real, source)
            recordable = prompt.size(0) * (width + read) * self.model.size <= MAX_RECORDED_WORK
            found = inputs, Recorded(lambda: start(self.model, inputs), recordable)
        self.sizes[key] = found  # the newest is the last
        if len(self.sizes) > KEPT_PREFILLS:
            self.sizes.popitem(last=False)
        return found


def start(model: FusedModel, inputs: Inputs) -> tuple[Tensor, State]:
    """Return the logits (B, V) of the first new token, and a state that also has what is padded on the right."""
    prompt, real, length, source, source_real = inputs
    state = State(len(model.decoder.stack.blocks), prompt.size(0), prompt.device)
    if source is not None:
        assert model.encoder is not None
        mask = padding_mask(source_real)
        numbers = within(torch.arange(source.size(1), device=source.device), model.encoder)
        memory = PrefillPass(model.encoder, source.shape, Visibility(mask)).run(source, numbers)
        state.set_memory(memory, mask)
    positions, visibility = state.advance(prompt, real)
    if real is None:
        state.count.copy_(length)
    passing = PrefillPass(model.decoder, prompt.shape, visibility, state.caches)
    hidden = passing.run(prompt, within(positions, model.decoder))
    return model.logits(hidden.index_select(1, length[None] - 1)[:, 0]), state


def within(positions: Tensor, stack: FusedStack) -> Tensor:
    """Positions that learned embeddings have a row for: padding may lie beyond the last."""
    limit = stack.stack.position_limit
    return positions if limit is None else positions.clamp(max=limit - 1)


def shortened(state: State, length: int) -> State:
    """Return a view of a state that has its first `length` tokens only."""
    short = copy.copy(state)
    short.length = length
    short.real = state.real[:, :length]
    short.caches = [(first_tokens(own, length), first_tokens(cross, cross.length)) for own, cross in state.caches]
    return short


def first_tokens(cache: KVCache, length: int) -> KVCache:
    """Return a cache with the first `length` tokens of another one, in the same memory."""
    first = GrowingCache()
    first.length = length
    first.store = list(cache.store)
    return first
