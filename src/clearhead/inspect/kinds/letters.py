"""The letters of the formulas: x the residual stream, W matrices, b biases, Q K V queries, keys and values."""

from __future__ import annotations

from clearhead.config import ModelConfig
from clearhead.inspect.formula import Formula, row, symbol

x, y, n, width = (symbol(letter) for letter in ("x", "y", "n", "d_model"))
Q, K, V, S, A, u, g, h = (symbol(letter) for letter in "QKVSAugh")
epsilon = symbol("ε")


def times(matrix: str, config: ModelConfig, vector: Formula = x) -> Formula:
    """A matrix times a vector, plus a bias if the model has biases."""
    product = row(symbol("W", matrix), vector)
    bias = config.bias or (config.qkv_bias and matrix in ("Q", "K", "V"))
    return row(product, "+", symbol("b", matrix)) if bias else product
