"""The decode step of a model on a GPU, in a quarter of the kernels: `model.step` for one token of each row.

Query, key and value are one matrix; attention rotates, appends to the cache and attends in one kernel; each residual
addition shares a kernel with the norm after it; linear layers of a few rows have a kernel of their own. Matrices and
caches are in bfloat16 or float32, the residual stream and the logits in float32.

Shapes: R rows, D model, H heads, K head size, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from clearhead.decode.fixed import FixedState
from clearhead.kernels.add_norm import add_norm
from clearhead.kernels.attention import fits_tile
from clearhead.kernels.cached_attention import CacheTable, cached_attention
from clearhead.kernels.few_rows import MOST_ROWS, Normed, few_rows_linear
from clearhead.kernels.token_attention import token_attention
from clearhead.model import DecoderOnly, EncoderDecoder
from clearhead.model.block import Block, FeedForward
from clearhead.model.norm import LayerNorm, RMSNorm
from clearhead.model.stack import RotaryPosition, Stack

Inputs = Tensor | Normed  # (R, D)
FUSED_ACTIVATIONS = ("relu", "gelu", "gelu-tanh")  # that the kernel for a few rows applies itself


class JoinedLinear:
    """Linear layers of the same input as one matrix, in a dtype of its own."""

    def __init__(self, linears: Sequence[nn.Linear], dtype: torch.dtype) -> None:
        self.linears = linears
        self.weight = torch.cat([linear.weight.detach() for linear in linears]).to(dtype)
        biases = [linear.bias.detach() for linear in linears if linear.bias is not None]
        self.bias = torch.cat(biases).to(dtype) if biases else None

    def copies(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield each part of the joined tensors, and the parameter that it is a copy of."""
        sizes = [linear.out_features for linear in self.linears]
        yield from zip(torch.split(self.weight, sizes), (linear.weight for linear in self.linears), strict=True)
        if self.bias is not None:
            yield from zip(torch.split(self.bias, sizes), (linear.bias for linear in self.linears), strict=True)

    def __call__(self, x: Inputs, activation: str = "none") -> Tensor:
        """(R, D) -> (R, F), with an activation of FUSED_ACTIVATIONS or none."""
        if not isinstance(x, Tensor) or x.size(0) <= MOST_ROWS:
            return few_rows_linear(x, self.weight, self.bias, self.weight.dtype, activation)
        y = F.linear(x, self.weight, self.bias)
        if activation == "none":
            return y
        return F.relu(y) if activation == "relu" else F.gelu(y, approximate="tanh" if "tanh" in activation else "none")

    def add_to(self, stream: Tensor, x: Tensor) -> None:
        """Add the layer's output for a few rows (R, D) to the residual stream (R, F)."""
        few_rows_linear(x, self.weight, self.bias, stream)

    def logits(self, x: Inputs) -> Tensor:
        """(R, D) -> (R, V) in float32: in bfloat16, different logits would become equal."""
        if not isinstance(x, Tensor) or x.size(0) <= MOST_ROWS:
            return few_rows_linear(x, self.weight, self.bias, torch.float32)
        y = torch.mm(x, self.weight.T, out_dtype=torch.float32) if x.dtype != torch.float32 else x @ self.weight.T
        return y if self.bias is None else y + self.bias


class FusedStep:
    """The step of one model."""

    def __init__(self, model: EncoderDecoder | DecoderOnly, dtype: torch.dtype) -> None:
        assert model.head.project is not None
        self.stack = model.decoder
        self.activation = model.config.activation
        self.dtype = dtype
        self.matrices: list[JoinedLinear] = []
        self.post = model.config.norm_order == "post"
        self.sublayers: list[Sublayer] = []
        self.norms: list[LayerNorm | RMSNorm] = []  # after each sublayer; with pre-norm, one before the first
        for index, block in enumerate(model.decoder.blocks):
            assert isinstance(block, Block)
            self.add_block(block, index)
        if model.decoder.norm is not None:
            self.norms.append(model.decoder.norm)
        self.logits = self.joined(model.head.project)

    def joined(self, *linears: nn.Linear) -> JoinedLinear:
        """Join linear layers, and remember to refresh them."""
        self.matrices.append(JoinedLinear(linears, self.dtype))
        return self.matrices[-1]

    def add_block(self, block: Block, index: int) -> None:
        """Add the sublayers of a block."""
        own = block.attention
        inputs = self.joined(own.query, own.key, own.value)
        self.sublayers.append(Sublayer(self_attention(index, inputs), self.joined(own.out)))
        self.norms.append(block.attention_add_norm.norm)
        if block.cross:
            cross = block.cross_attention
            inner = cross_attention(index, self.joined(cross.query), cross.heads)
            self.sublayers.append(Sublayer(inner, self.joined(cross.out)))
            self.norms.append(block.cross_attention_add_norm.norm)
        self.sublayers.append(self.feed_forward(block.feed_forward))
        self.norms.append(block.feed_forward_add_norm.norm)

    def feed_forward(self, layer: FeedForward) -> Sublayer:
        """The feed-forward sublayer."""
        name = self.activation
        down = self.joined(layer.down)
        up = self.joined(layer.up) if layer.gate is None else self.joined(layer.gate, layer.up)

        def inner(x: Inputs, _memory: Memory) -> Tensor:
            if layer.gate is not None:
                gate, value = up(x).chunk(2, dim=-1)
                return layer.activation(gate) * value
            return up(x, name) if name in FUSED_ACTIVATIONS else layer.activation(up(x))

        return Sublayer(inner, down)

    def memory(self, state: FixedState) -> Memory:
        """Return what the steps of a search over a state share."""
        return Memory(self.stack, state)

    def refresh(self) -> None:
        """Copy the model's weights again: they may have changed."""
        copies = [pair for matrix in self.matrices for pair in matrix.copies()]
        torch._foreach_copy_([mine for mine, _ in copies], [theirs.detach() for _, theirs in copies])

    def __call__(self, ids: Tensor, memory: Memory) -> Tensor:
        """Read one more token of each row (R,): return the logits (R, V) of the next."""
        x = self.embed(ids, memory)
        h = self.few_rows(x, memory) if x.size(0) <= MOST_ROWS and not self.post else self.many_rows(x, memory)
        memory.state.written += 1
        memory.state.count += 1
        return self.logits.logits(h)

    def many_rows(self, x: Tensor, memory: Memory) -> Tensor:
        """From embeddings to hidden states, (R, D) -> (R, D)."""
        norms = iter(self.norms)
        h = x.to(self.dtype) if self.post else add_norm(x, None, next(norms), post=False, dtype=self.dtype)
        for sublayer in self.sublayers:
            h = add_norm(x, sublayer.out(sublayer.inner(h, memory)), next(norms), self.post, self.dtype)
        return h

    def few_rows(self, x: Tensor, memory: Memory) -> Normed:
        """The same with pre-norm and for a few rows: norms and residual additions are part of the linear layers."""
        *norms, final = self.norms
        for sublayer, norm in zip(self.sublayers, norms, strict=True):
            sublayer.out.add_to(x, sublayer.inner(Normed(x, norm), memory))
        return Normed(x, final)

    def embed(self, ids: Tensor, memory: Memory) -> Tensor:
        """The embeddings of tokens (R,) at their positions, in float32: (R, D)."""
        stack = self.stack
        x = stack.embedding(ids).float()
        if memory.positions is not None:
            last = memory.positions.size(0) - 1
            x = x + memory.positions.index_select(0, memory.state.count[:, 0].clamp(max=last))
        if stack.segment is not None:
            x = x + stack.segment.weight[0]
        return x if stack.embedding_norm is None else stack.embedding_norm(x)


class Memory:
    """What the steps of a search read and write: the caches, the table of positions, the rows of hypotheses."""

    def __init__(self, stack: Stack, state: FixedState) -> None:
        device = state.count.device
        self.state = state
        self.rotation: tuple[Tensor, Tensor] | None = None
        self.positions: Tensor | None = None  # (T, D)
        numbers = torch.arange(min(state.capacity, stack.position_limit or state.capacity), device=device)
        if isinstance(stack.position, RotaryPosition):
            cos, sin = stack.position(numbers, torch.float32)[:, 0, 0]
            self.rotation = cos.contiguous(), sin.contiguous()
        elif stack.position is not None:
            self.positions = stack.position(numbers, torch.float32)
        origin = torch.zeros(state.real.shape, dtype=torch.int32, device=device) if state.hypotheses > 1 else None
        self.table = CacheTable(state.written, state.real, state.count, origin)

    def restart(self) -> None:
        """All tokens so far are in their own rows."""
        if self.table.origin is not None:
            rows = torch.arange(self.table.origin.size(0), device=self.table.origin.device)
            self.table.origin.copy_(rows[:, None].expand_as(self.table.origin))

    def reorder(self, parents: Tensor) -> None:
        """Let hypothesis i of sentence b continue what was hypothesis parents[b, i] of it: (B, W)."""
        if self.table.origin is not None:
            first = torch.arange(0, parents.numel(), parents.size(1), device=parents.device)
            rows = (first[:, None] + parents).flatten()
            self.table.origin.copy_(self.table.origin.index_select(0, rows))


class Sublayer(NamedTuple):
    """A sublayer, up to its last matrix."""

    inner: Callable[[Inputs, Memory], Tensor]  # (R, D) -> (R, F)
    out: JoinedLinear  # (R, F) -> (R, D)


def self_attention(index: int, inputs: JoinedLinear) -> Callable[[Inputs, Memory], Tensor]:
    """Self-attention of layer `index`, without its last matrix."""

    def inner(x: Inputs, memory: Memory) -> Tensor:
        keys, values = memory.state.caches[index][0].store
        return cached_attention(inputs(x), keys, values, memory.table, memory.rotation)

    return inner


def cross_attention(index: int, query: JoinedLinear, heads: int) -> Callable[[Inputs, Memory], Tensor]:
    """Cross-attention of layer `index`, without its last matrix: a sentence's hypotheses share its source."""

    def inner(x: Inputs, memory: Memory) -> Tensor:
        keys, values = memory.state.caches[index][1].store
        mask = memory.state.memory_mask
        assert mask is not None
        queries = query(x)
        return token_attention(queries.view(queries.size(0), heads, 1, -1), keys, values, mask).flatten(1)

    return inner


def can_fuse(model: EncoderDecoder | DecoderOnly) -> bool:
    """Whether the kernels compute all that this model's decoder does."""
    modules = [*model.decoder.modules(), *model.head.modules()]
    plain = all(type(module) is nn.Linear for module in modules if isinstance(module, nn.Linear))
    config = model.config
    return plain and fits_tile(config.head_size) and not config.query_key_norm and model.head.dense is None
