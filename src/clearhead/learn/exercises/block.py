"""The exercise `block`: residual connections and norms around the two sublayers."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import torch
from torch import Tensor, nn

from clearhead.config import ModelConfig
from clearhead.learn.exercise import Case, Exercise, Mistake, Patch, Piece, apply_module
from clearhead.model.attention import KVCache
from clearhead.model.block import AddNorm, Block, Visibility


class Reference(nn.Module):
    """The project's own add & norm around two functions."""

    def __init__(
        self,
        d_model: int,
        attention: Callable[[Tensor], Tensor],
        feed_forward: Callable[[Tensor], Tensor],
        norm_first: bool,
    ) -> None:
        super().__init__()
        self.sublayers = (attention, feed_forward)
        self.attention_norm = nn.LayerNorm(d_model)
        self.feed_forward_norm = nn.LayerNorm(d_model)
        config = ModelConfig(d_model=d_model, heads=1, dropout=0.0, norm_order="pre" if norm_first else "post")
        self.config = config

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D)."""
        for sublayer, norm in zip(self.sublayers, (self.attention_norm, self.feed_forward_norm), strict=True):
            add_norm = AddNorm(self.config)
            add_norm.norm.load_state_dict(norm.state_dict())
            x = add_norm(x, sublayer)
        return x


def apply(piece: Piece, x: Tensor, norm_first: bool) -> object:
    """A block with two simple functions in the place of attention and feed-forward."""

    def attention(h: Tensor) -> Tensor:
        return h.cumsum(dim=1) * 0.5 + 1

    def feed_forward(h: Tensor) -> Tensor:
        return torch.relu(h * 2 - 0.5)

    return apply_module(piece.Block(8, attention, feed_forward, norm_first), x)


def cases() -> list[Case]:
    """Both orders."""
    x = torch.randn(2, 5, 8)
    return [Case("post-norm, as in the paper", apply, (x, False)), Case("pre-norm", apply, (x, True))]


PRE = "            x = x + self.attention(self.attention_norm(x))"
AFTER = "        x = self.attention_norm(x + self.attention(x))\n"
LAST = "        return self.feed_forward_norm(x + self.feed_forward(x))\n"
MISTAKES = (
    Mistake(
        "The residual connections are missing",
        "The sublayer's output is added to its input: x + f(x).",
        AFTER + LAST,
        "        x = self.attention_norm(self.attention(x))\n"
        "        return self.feed_forward_norm(self.feed_forward(x))\n",
    ),
    Mistake(
        "Pre-norm and post-norm are exchanged",
        "norm_first = True is pre-norm: the norm is applied to the input of the sublayer.",
        "if self.norm_first:",
        "if not self.norm_first:",
    ),
    Mistake(
        "The norm is applied before the sum",
        "Post-norm is norm(x + f(x)), not x + norm(f(x)): the sum is normalised, too.",
        AFTER + LAST,
        "        x = x + self.attention_norm(self.attention(x))\n"
        "        return x + self.feed_forward_norm(self.feed_forward(x))\n",
    ),
    Mistake(
        "The second sum starts from the input of the block",
        "Feed-forward gets, and is added to, what attention and its norm have left: the same x in both places.",
        AFTER + LAST,
        "        h = self.attention_norm(x + self.attention(x))\n"
        "        return self.feed_forward_norm(x + self.feed_forward(h))\n",
    ),
    Mistake(
        "The same norm is used twice",
        "Each sublayer has its own norm, with its own weight and bias.",
        LAST,
        "        return self.attention_norm(x + self.feed_forward(x))\n",
    ),
    Mistake(
        "Feed-forward comes before attention",
        "First each token takes from others (attention), then it is processed alone (feed-forward).",
        AFTER + LAST,
        "        x = self.feed_forward_norm(x + self.feed_forward(x))\n"
        "        return self.attention_norm(x + self.attention(x))\n",
    ),
    Mistake(
        "Feed-forward reads the input of the block",
        "The sublayers follow each other: feed-forward reads what attention has added to.",
        AFTER + LAST,
        "        h = self.attention_norm(x + self.attention(x))\n"
        "        return self.feed_forward_norm(h + self.feed_forward(x))\n",
    ),
    Mistake(
        "With pre-norm, the normalised x is added instead of x",
        "The residual stream stays untouched: x + f(norm(x)), where the first x is not normalised.",
        PRE + "\n            return x + self.feed_forward(self.feed_forward_norm(x))",
        "            x = self.attention_norm(x)\n            x = x + self.attention(x)\n"
        "            x = self.feed_forward_norm(x)\n            return x + self.feed_forward(x)",
    ),
    Mistake(
        "With pre-norm, the residual connections are missing",
        "x + f(norm(x)): the sublayer's output is added to x.",
        PRE + "\n            return x + self.feed_forward(self.feed_forward_norm(x))",
        "            x = self.attention(self.attention_norm(x))\n"
        "            return self.feed_forward(self.feed_forward_norm(x))",
    ),
    Mistake(
        "norm_first is ignored",
        "There are two orders: if self.norm_first is True, x + f(norm(x)).",
        "if self.norm_first:",
        "if False:",
    ),
)


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


EXERCISE = Exercise(
    name="block",
    reference=SimpleNamespace(Block=Reference),
    cases=cases,
    mistakes=MISTAKES,
    hints=(
        "Two sublayers, two lines for each order. Write post-norm first.",
        "Post-norm: x = self.attention_norm(x + self.attention(x)), and the same for feed-forward.",
        "Pre-norm: x = x + self.attention(self.attention_norm(x)), and the same for feed-forward.",
    ),
    swap=swap,
)
