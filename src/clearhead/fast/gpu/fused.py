"""The stacks of a model on a GPU, for decoding: the same numbers in fewer kernels.

Query, key and value are one matrix, each residual addition shares a kernel with the norm after it, and linear layers of
a few rows have a kernel of their own. Matrices are in bfloat16, float32 or int8, caches in bfloat16 or float32, the
residual stream and the logits in float32. What attention does depends on the pass: a prefill (prefill.py) or a decode
step (decode_step.py).

Shapes: R rows (tokens), D model, F feed-forward, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from clearhead.config import ModelConfig
from clearhead.fast.int8 import Int8Linear, JoinedInt8, scaled
from clearhead.fast.joined import Copy, JoinedLinear, refresh
from clearhead.fast.kernels.add_norm import add_norm
from clearhead.fast.kernels.attention import fits_tile
from clearhead.fast.kernels.few_rows import MOST_ROWS, Normed, few_rows_linear
from clearhead.fast.train.half_linear import HalfLinear
from clearhead.model import DecoderOnly, EncoderDecoder
from clearhead.model.block import Block, FeedForward
from clearhead.model.norm import LayerNorm, RMSNorm
from clearhead.model.stack import Stack

Inputs = Tensor | Normed  # (R, D)
FUSED_ACTIVATIONS = ("relu", "gelu", "gelu-tanh")  # that the kernel for a few rows applies itself
ALIGNED_ROWS = 128  # rows of the logits' matrix: products are several times as fast with a multiple of this


class FusedLinear:
    """Linear layers of the same input as one matrix, in a dtype of its own or in int8."""

    def __init__(self, linears: Sequence[nn.Linear | Int8Linear], dtype: torch.dtype) -> None:
        self.dtype = dtype
        quantised = [linear for linear in linears if isinstance(linear, Int8Linear)]
        plain = [linear for linear in linears if isinstance(linear, nn.Linear)]
        self.joined: JoinedLinear | JoinedInt8 = (
            JoinedInt8(quantised, dtype) if quantised else JoinedLinear(plain, dtype)
        )
        self.weight, self.bias = self.joined.weight, self.joined.bias
        self.scale = self.joined.scale if isinstance(self.joined, JoinedInt8) else None

    def __call__(self, x: Inputs, activation: str = "none") -> Tensor:
        """(R, D) -> (R, F), with an activation of FUSED_ACTIVATIONS or none."""
        if not isinstance(x, Tensor) or x.size(0) <= MOST_ROWS:
            return few_rows_linear(x, self.weight, self.bias, self.dtype, activation, self.scale)
        if self.scale is None:
            y = F.linear(x, self.weight, self.bias)
        else:
            y = scaled(F.linear(x, self.weight.to(x.dtype)), self.scale, self.bias)
        if activation == "none":
            return y
        return F.relu(y) if activation == "relu" else F.gelu(y, approximate="tanh" if "tanh" in activation else "none")

    def add_to(self, stream: Tensor, x: Tensor) -> None:
        """Add the layer's output for a few rows (R, D) to the residual stream (R, F)."""
        few_rows_linear(x, self.weight, self.bias, stream, scale=self.scale)


class LogitsLinear:
    """The last linear layer of a model, whose results are float32: in bfloat16, different logits become equal."""

    def __init__(self, linear: nn.Linear | Int8Linear, dtype: torch.dtype) -> None:
        self.linear = linear
        self.scale = linear.scale if isinstance(linear, Int8Linear) else None
        stored = linear.quantised if isinstance(linear, Int8Linear) else linear.weight.detach().to(dtype)
        rows = -(-linear.out_features // ALIGNED_ROWS) * ALIGNED_ROWS
        self.padded = F.pad(stored, (0, 0, 0, rows - linear.out_features))
        self.weight = self.padded[: linear.out_features]
        if isinstance(linear, Int8Linear):
            linear.quantised = self.weight  # as in JoinedInt8: not twice in memory

    def copies(self) -> Iterator[Copy]:
        """Yield the copy of the weight, and the parameter."""
        if isinstance(self.linear, nn.Linear):
            yield self.weight, self.linear.weight

    def __call__(self, x: Inputs) -> Tensor:
        """(R, D) -> (R, V)."""
        bias = self.linear.bias
        if not isinstance(x, Tensor) or x.size(0) <= MOST_ROWS:
            return few_rows_linear(x, self.weight, bias, torch.float32, scale=self.scale)
        matrix = self.padded.to(x.dtype).T
        y = x @ matrix if x.dtype == torch.float32 else torch.mm(x, matrix, out_dtype=torch.float32)
        y = y[:, : self.weight.size(0)]
        if self.scale is not None:
            return scaled(y, self.scale, bias)
        return y if bias is None else y + bias


class AttentionPass(Protocol):
    """A pass through a stack: its attention, with index the number of a layer."""

    def attend(self, index: int, qkv: Tensor) -> Tensor:
        """Self-attention of queries, keys and values side by side: (R, (H + 2 G) K) -> (R, H K)."""

    def attend_to_source(self, index: int, queries: Tensor) -> Tensor:
        """Cross-attention: (R, H K) -> (R, H K)."""


class Sublayer(NamedTuple):
    """A sublayer, up to its last matrix."""

    inner: Callable[[Inputs, AttentionPass], Tensor]  # (R, D) -> (R, F)
    out: FusedLinear  # (R, F) -> (R, D)


class FusedStack:
    """A stack of blocks."""

    def __init__(self, stack: Stack, config: ModelConfig, dtype: torch.dtype) -> None:
        self.stack = stack
        self.config = config
        self.dtype = dtype
        self.post = config.norm_order == "post"
        self.matrices: list[FusedLinear] = []
        self.sublayers: list[Sublayer] = []
        self.source_keys_values: list[FusedLinear] = []  # of each layer's cross-attention
        self.norms: list[LayerNorm | RMSNorm] = []  # after each sublayer; with pre-norm, one before the first
        for index, block in enumerate(stack.blocks):
            assert isinstance(block, Block)
            self.add_block(block, index)
        if stack.norm is not None:
            self.norms.append(stack.norm)

    def joined(self, *linears: nn.Linear) -> FusedLinear:
        """Join linear layers, and remember to refresh them."""
        self.matrices.append(FusedLinear(linears, self.dtype))
        return self.matrices[-1]

    def add_block(self, block: Block, index: int) -> None:
        """Add the sublayers of a block."""
        own = block.attention
        qkv = self.joined(own.query, own.key, own.value)
        self.sublayers.append(Sublayer(lambda x, to: to.attend(index, qkv(x)), self.joined(own.out)))
        self.norms.append(block.attention_add_norm.norm)
        if block.cross:
            cross = block.cross_attention
            query = self.joined(cross.query)
            self.source_keys_values.append(self.joined(cross.key, cross.value))
            self.sublayers.append(Sublayer(lambda x, to: to.attend_to_source(index, query(x)), self.joined(cross.out)))
            self.norms.append(block.cross_attention_add_norm.norm)
        self.sublayers.append(self.feed_forward(block.feed_forward))
        self.norms.append(block.feed_forward_add_norm.norm)

    def feed_forward(self, layer: FeedForward) -> Sublayer:
        """The feed-forward sublayer."""
        name = self.config.activation
        up = self.joined(layer.up) if layer.gate is None else self.joined(layer.gate, layer.up)

        def inner(x: Inputs, _to: AttentionPass) -> Tensor:
            if layer.gate is not None:
                gate, value = up(x).chunk(2, dim=-1)
                return layer.activation(gate) * value
            return up(x, name) if name in FUSED_ACTIVATIONS else layer.activation(up(x))

        return Sublayer(inner, self.joined(layer.down))

    def embed(self, ids: Tensor, added: Tensor | None) -> Tensor:
        """The embeddings of tokens (R,) in float32, with positions (R, D) added: (R, D)."""
        x = self.stack.embedding(ids).float()
        if added is not None:
            x = x + added
        if self.stack.segment is not None:
            x = x + self.stack.segment.weight[0]
        return x if self.stack.embedding_norm is None else self.stack.embedding_norm(x)

    def hidden(self, x: Tensor, to: AttentionPass) -> Inputs:
        """From embeddings to hidden states, (R, D) -> (R, D)."""
        if x.size(0) == 1 and not self.post:
            return self.hidden_of_one(x, to)
        norms = iter(self.norms)
        h = x.to(self.dtype) if self.post else add_norm(x, None, next(norms), post=False, dtype=self.dtype)
        for sublayer in self.sublayers:
            h = add_norm(x, sublayer.out(sublayer.inner(h, to)), next(norms), self.post, self.dtype)
        return h

    def hidden_of_one(self, x: Tensor, to: AttentionPass) -> Normed:
        """`hidden` for pre-norm models and one row: norms and residual additions are fused into the linear layers."""
        *norms, final = self.norms
        for sublayer, norm in zip(self.sublayers, norms, strict=True):
            sublayer.out.add_to(x, sublayer.inner(Normed(x, norm), to))
        return Normed(x, final)


class FusedModel:
    """The stacks and the logits of a model."""

    def __init__(self, model: EncoderDecoder | DecoderOnly, dtype: torch.dtype) -> None:
        assert model.head.project is not None
        self.encoder = FusedStack(model.encoder, model.config, dtype) if isinstance(model, EncoderDecoder) else None
        self.decoder = FusedStack(model.decoder, model.config, dtype)
        self.logits = LogitsLinear(model.head.project, dtype)
        self.copies: list[Copy] = []
        self.parameters: list[int] = []  # ids of the weights that were copied: other ones may have replaced them

    @property
    def matrices(self) -> list[FusedLinear]:
        """All matrices except the output projection."""
        return [*self.decoder.matrices, *(self.encoder.matrices if self.encoder else [])]

    @property
    def size(self) -> int:
        """The number of weights of all matrices."""
        return self.logits.weight.numel() + sum(matrix.weight.numel() for matrix in self.matrices)

    def refresh(self) -> None:
        """Copy the model's weights again: they may have changed, except those in int8."""
        joined = [matrix.joined for matrix in self.matrices if isinstance(matrix.joined, JoinedLinear)]
        layers = [self.logits.linear, *(linear for each in joined for linear in each.linears)]
        if self.logits.scale is None and [id(layer.weight) for layer in layers] != self.parameters:
            self.parameters = [id(layer.weight) for layer in layers]
            self.copies = [*self.logits.copies(), *(copy for each in joined for copy in each.copies())]
        refresh(self.copies)


def can_fuse(model: EncoderDecoder | DecoderOnly) -> bool:
    """Whether the kernels compute all that this model does."""
    plain = all(type(module) in (nn.Linear, HalfLinear) for module in model.modules() if isinstance(module, nn.Linear))
    config = model.config
    other = config.query_key_norm or config.window or model.head.dense is not None
    return plain and fits_tile(config.head_size) and not other
