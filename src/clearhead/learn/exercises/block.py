"""The exercise `block`: residual connections and norms around the two sublayers."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import torch
from torch import Tensor, nn

from clearhead.config import ModelConfig
from clearhead.learn.exercise import ExerciseCase, Patch, Piece, apply
from clearhead.model.attention import KVCache
from clearhead.model.block import AddNorm, Block, Visibility


class ReferenceBlock(nn.Module):
    """The project's own add & norm around two functions."""

    def __init__(
        self,
        d_model: int,
        attention: Callable[[Tensor], Tensor],
        feed_forward: Callable[[Tensor], Tensor],
        norm_first: bool,
    ) -> None:
        super().__init__()
        config = ModelConfig(d_model=d_model, heads=1, dropout=0.0, norm_order="pre" if norm_first else "post")
        self.sublayers = ((AddNorm(config), attention), (AddNorm(config), feed_forward))  # a tuple: not registered
        self.attention_norm, self.feed_forward_norm = (add_norm.norm for add_norm, _ in self.sublayers)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D)."""
        for add_norm, sublayer in self.sublayers:
            x = add_norm(x, sublayer)
        return x


REFERENCE = SimpleNamespace(Block=ReferenceBlock)


def cases() -> list[ExerciseCase]:
    """Both orders, with two simple functions in the place of attention and feed-forward."""

    def attention(h: Tensor) -> Tensor:
        return h.cumsum(dim=1) * 0.5 + 1

    def feed_forward(h: Tensor) -> Tensor:
        return torch.relu(h * 2 - 0.5)

    x = torch.randn(2, 5, 8)
    return [
        apply("Block", (8, attention, feed_forward, False), "post-norm, as in the paper", x),
        apply("Block", (8, attention, feed_forward, True), "pre-norm", x),
    ]


def swap(piece: Piece) -> list[Patch]:
    """All encoder blocks of the demo; those of the decoder have a third sublayer."""
    forward = Block.forward

    def own_forward(
        self: Block,
        x: Tensor,
        visibility: Visibility,
        rotation: Tensor | None = None,
        caches: tuple[KVCache | None, KVCache | None] = (None, None),
    ) -> Tensor:
        if self.cross:
            return forward(self, x, visibility, rotation, caches)
        first = self.attention_add_norm

        def attention(h: Tensor) -> Tensor:
            return self.attention(h, None, visibility.mask, visibility.causal, rotation, caches[0])

        own = piece.Block(x.size(-1), attention, self.feed_forward, first.norm_first)
        own.attention_norm = first.norm
        own.feed_forward_norm = self.feed_forward_add_norm.norm
        result: Tensor = own(x)
        return result

    return [Patch(Block, "forward", own_forward)]
