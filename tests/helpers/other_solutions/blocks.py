"""The parts of a block: each exercise in another style, and edits that plant a mistake in it."""

from __future__ import annotations

from other_solutions.solution import OtherSolution

BLOCKS = {
    "layer-norm": OtherSolution(
        """
def layer_norm(x, weight, bias, epsilon=1e-5):
    count = x.shape[-1]
    centred = x - x.sum(-1, keepdim=True) / count
    squares = (centred * centred).sum(-1, keepdim=True) / count
    return centred * (squares + epsilon) ** -0.5 * weight + bias
""",
        {
            "The variance is divided by D - 1 (unbiased)": (
                "sum(-1, keepdim=True) / count\n    return",
                "sum(-1, keepdim=True) / (count - 1)\n    return",
            ),
            "The square root is missing": ("** -0.5", "** -1"),
            "Epsilon is added outside the square root": ("(squares + epsilon) ** -0.5", "1 / (squares**0.5 + epsilon)"),
            "Weight and bias are not used": (" * weight + bias", ""),
            "The bias is not added": (" + bias", ""),
            "Epsilon is missing": ("(squares + epsilon)", "squares"),
        },
    ),
    "feed-forward": OtherSolution(
        """
import torch
from torch import nn

class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.up = nn.Linear(d_model, d_ff)
        self.down = nn.Linear(d_ff, d_model)

    def forward(self, x):
        inner = x @ self.up.weight.T + self.up.bias
        inner = inner.clamp(min=0)
        return inner @ self.down.weight.T + self.down.bias
""",
        {
            "The nonlinearity is missing": ("        inner = inner.clamp(min=0)\n", ""),
            "The ReLU comes before the first matrix": (
                "inner = x @ self.up.weight.T + self.up.bias\n        inner = inner.clamp(min=0)",
                "inner = x.clamp(min=0) @ self.up.weight.T + self.up.bias",
            ),
            "The input is added": ("return inner", "return x + inner"),
            "The nonlinearity is GELU": ("inner.clamp(min=0)", "nn.GELU()(inner)"),
            "There is a second ReLU after the second matrix": (
                "return inner @ self.down.weight.T + self.down.bias",
                "return (inner @ self.down.weight.T + self.down.bias).clamp(min=0)",
            ),
        },
    ),
    "block": OtherSolution(
        """
from torch import nn

class Block(nn.Module):
    def __init__(self, d_model, attention, feed_forward, norm_first):
        super().__init__()
        self.attention = attention
        self.feed_forward = feed_forward
        self.attention_norm = nn.LayerNorm(d_model)
        self.feed_forward_norm = nn.LayerNorm(d_model)
        self.norm_first = norm_first

    def forward(self, x):
        for f, norm in ((self.attention, self.attention_norm), (self.feed_forward, self.feed_forward_norm)):
            x = x + f(norm(x)) if self.norm_first else norm(x + f(x))
        return x
""",
        {
            "The residual connections are missing": ("norm(x + f(x))", "norm(f(x))"),
            "With pre-norm, the residual connections are missing": ("x + f(norm(x))", "f(norm(x))"),
            "Pre-norm and post-norm are exchanged": ("if self.norm_first", "if not self.norm_first"),
            "The norm is applied before the sum": ("norm(x + f(x))", "x + norm(f(x))"),
            "The same norm is used twice": (
                "(self.feed_forward, self.feed_forward_norm)",
                "(self.feed_forward, self.attention_norm)",
            ),
            "With pre-norm, the normalised x is added instead of x": ("x + f(norm(x))", "norm(x) + f(norm(x))"),
        },
    ),
}
