"""What there is to say of each kind of tensor: a title and a paragraph, its formula, and where the code computes it.

Letters: x the residual stream, E and P learned tables, W matrices, b biases, Q K V queries, keys, values.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from clearhead.config import ModelConfig
from clearhead.glass.formula import (
    Formula,
    at,
    call,
    equals,
    fraction,
    number,
    power,
    root,
    row,
    spell,
    symbol,
    total,
)
from clearhead.model.attention import Attention, rotate, weigh
from clearhead.model.block import AddNorm, FeedForward, LayerNorm, RMSNorm
from clearhead.model.families import EncoderOnly, Head
from clearhead.model.stack import LearnedPosition, RotaryPosition, SinusoidalPosition, Stack, TokenEmbedding

# topic -> the function that computes it, and how those of its lines begin that do
CODE: dict[str, tuple[Callable[..., Any], *tuple[str, ...]]] = {
    "embedding": (TokenEmbedding.forward, "return F.embedding"),
    "embedding.plain": (TokenEmbedding.forward, "return F.embedding"),
    "position.sinusoidal": (SinusoidalPosition.forward, "angle = ", "return torch.stack"),
    "position.learned": (LearnedPosition.forward, "return self.table"),
    "position.rotary": (RotaryPosition.forward, "angle = ", "return torch.stack"),
    "segment": (Stack.forward, "x = x + self.segment"),
    "sum": (Stack.forward, "x = self.embedding", "x = x + self.position", "x = x + self.segment", "x = self.sum"),
    "normalized.layer": (LayerNorm.forward, "mean = ", "variance = ", "own = "),
    "normalized.rms": (RMSNorm.forward, "own = "),
    "norm.layer": (LayerNorm.forward, "return F.layer_norm"),
    "norm.rms": (RMSNorm.forward, "return F.rms_norm"),
    "query": (Attention.forward, "queries = self.split"),
    "key": (Attention.answer, "keys, values = self.split"),
    "queries": (Attention.forward, "queries = self.split", "queries = self.queries"),
    "queries.rotary": (rotate, "first, second", "cos, sin", "return torch.cat"),
    "keys": (Attention.answer, "keys, values = self.split"),
    "keys.rotary": (rotate, "first, second", "cos, sin", "return torch.cat"),
    "values": (Attention.answer, "keys, values = self.split"),
    "queries.cross": (Attention.forward, "queries = self.split", "queries = self.queries"),
    "keys.cross": (Attention.answer, "keys, values = self.split"),
    "values.cross": (Attention.answer, "keys, values = self.split"),
    "mask": (Attention.spell_out, "elif mask is None", "mask = torch.ones", "own_mask = "),
    "mask.causal": (Attention.spell_out, "if causal", "mask = causal_mask", "own_mask = "),
    "scores": (Attention.compare, "return queries @"),
    "weights": (weigh, "weights = scores", "return weights"),
    "head_outputs": (Attention.attend, "return F.dropout(weights", "return F.scaled_dot_product_attention"),
    "attention": (Attention.forward, "return self.out"),
    "cross_attention": (Attention.forward, "return self.out"),
    "added": (AddNorm.forward, "return self.norm(self.added"),
    "add_norm.post": (AddNorm.forward, "return self.norm(self.added"),
    "add_norm.pre": (AddNorm.forward, "if self.norm_first", "return self.added"),
    "gate": (FeedForward.forward, "inner = "),
    "up": (FeedForward.forward, "inner = "),
    "inner.relu": (FeedForward.forward, "inner = "),
    "inner.gelu": (FeedForward.forward, "inner = "),
    "inner.swiglu": (FeedForward.forward, "inner = "),
    "feed_forward": (FeedForward.forward, "return self.down"),
    "pooled.mean": (EncoderOnly.pool, "if real is None", "return x.mean"),
    "pooled.first": (EncoderOnly.pool, 'if self.config.pool == "first"', "return x[:, 0]"),
    "dense": (Head.forward, "if self.dense", "x = self.activated"),
    "activated": (Head.forward, "x = self.activated"),
    "logits": (Head.forward, "return x if self.project is None"),
    "logits.classes": (Head.forward, "return x if self.project is None"),
}
x, y, n, width = (symbol(letter) for letter in ("x", "y", "n", "d_model"))
Q, K, V, S, A, u, g, h = (symbol(letter) for letter in "QKVSAugh")


@cache
def words() -> dict[str, dict[str, str]]:
    """The title and the paragraph of each topic."""
    return tomllib.loads((Path(__file__).parent / "topics.toml").read_text(encoding="utf8"))


def formulas(config: ModelConfig) -> dict[str, Formula]:
    """The formula of each topic, in a model of these settings."""
    return stack_formulas(config) | attention_formulas(config) | feed_forward_formulas(config) | head_formulas(config)


def times(matrix: str, config: ModelConfig, vector: Formula = x) -> Formula:
    """A matrix times a vector, and a bias if the model has them."""
    product = row(symbol("W", matrix), vector)
    return row(product, "+", symbol("b", matrix)) if config.bias else product


def stack_formulas(config: ModelConfig) -> dict[str, Formula]:
    """Embeddings, positions, norms."""
    entry = at(symbol("E"), "id")
    wave = fraction(symbol("t"), power(symbol("10000"), fraction(symbol("2i"), width)))
    turn = fraction(symbol("t"), power(symbol("base"), fraction(symbol("2i"), symbol("d_head"))))
    spread = root(row(symbol("variance"), "+", symbol("ε")))
    gained, result = row(symbol("γ"), "·", n), row(x, "+", call("sublayer", x))
    return {
        "embedding": equals(x, row(entry, "·", root(width))),
        "embedding.plain": equals(x, entry),
        "position.sinusoidal": equals(at(symbol("p"), "t, 2i"), call("sin", wave)),
        "position.learned": equals(at(symbol("p"), "t"), at(symbol("P"), "t")),
        "position.rotary": equals(at(symbol("φ"), "t, i"), turn),
        "segment": equals(symbol("segment"), at(symbol("G"), "0")),
        "sum": equals(x, entering(config)),
        "normalized.layer": equals(n, fraction(row(x, "−", symbol("mean")), spread)),
        "normalized.rms": equals(n, fraction(x, root(row(call("mean", power(x, symbol("2"))), "+", symbol("ε"))))),
        "norm.layer": equals(y, row(gained, "+", symbol("β")) if config.bias else gained),
        "norm.rms": equals(y, gained),
        "added": equals(y, result),
        "add_norm.post": equals(y, call("norm", result)),
        "add_norm.pre": equals(y, row(x, "+", call("sublayer", call("norm", x)))),
    }


def entering(config: ModelConfig) -> Formula:
    """What is added up before the first block."""
    added = symbol("embedding")
    if config.position in ("sinusoidal", "learned"):
        added = row(added, "+", symbol("position"))
    return row(added, "+", symbol("segment")) if config.segments else added


def attention_formulas(config: ModelConfig) -> dict[str, Formula]:
    """From queries to the joined heads."""
    angle, source, joined = symbol("φ"), symbol("x", "encoder"), symbol("[head_1 … head_h]")
    return {
        "query": equals(symbol("q"), times("Q", config)),
        "key": equals(symbol("k"), times("K", config)),
        "queries": equals(Q, times("Q", config)),
        "queries.rotary": equals(Q, call("rotate", row(times("Q", config), ",", angle))),
        "queries.cross": equals(Q, times("Q", config, symbol("x", "decoder"))),
        "keys": equals(K, times("K", config)),
        "keys.rotary": equals(K, call("rotate", row(times("K", config), ",", angle))),
        "keys.cross": equals(K, times("K", config, source)),
        "values": equals(V, times("V", config)),
        "values.cross": equals(V, times("V", config, source)),
        "mask": equals(at(symbol("m"), "i, j"), symbol("1")),
        "mask.causal": equals(at(symbol("m"), "i, j"), symbol("1 if j ≤ i else 0")),
        "scores": equals(S, fraction(row(Q, power(K, symbol("T"))), root(symbol("d_head")))),
        "weights": equals(A, call("softmax", row(S, spell("where"), symbol("m"), "=", number(1)))),
        "head_outputs": equals(symbol("head"), row(A, V)),
        "attention": equals(y, times("O", config, joined)),
        "cross_attention": equals(y, times("O", config, joined)),
    }


def feed_forward_formulas(config: ModelConfig) -> dict[str, Formula]:
    """Between the two matrices, and after them."""
    return {
        "gate": equals(g, times("gate", config)),
        "up": equals(u, times("1", config)),
        "inner.relu": equals(h, call("max", row(symbol("0"), ",", u))),
        "inner.gelu": equals(h, row(u, "·", call("Φ", u))),
        "inner.swiglu": equals(h, row(g, "·", call("sigmoid", g), "·", u)),
        "feed_forward": equals(y, times("2", config, h)),
    }


def head_formulas(config: ModelConfig) -> dict[str, Formula]:
    """From the last vectors to the logits."""
    dense = times("D", config)
    bend = config.activation if config.head == "vocabulary" else "tanh"
    logits = row(symbol("W"), x)
    logits = row(logits, "+", symbol("b")) if config.head_bias else logits
    return {
        "pooled.mean": equals(y, fraction(total("t", at(x, "t")), symbol("T"))),
        "pooled.first": equals(y, at(x, "0")),
        "dense": equals(y, dense),
        "activated": equals(y, call(bend, symbol("dense"))),
        "logits": equals(symbol("z"), logits),
        "logits.classes": equals(symbol("z"), logits),
    }
