"""The whole Transformer.

Everything at once, as the paper has it: post-norm, sinusoidal positions, ReLU, and one embedding
matrix that serves source, target and logits. The constructors are given, so that yours can be
compared with the project's own model: same weights, same logits. Copy from your earlier exercises
whatever you like.

    source -> embedding · sqrt(D) + positions -> N encoder blocks -> memory
    target -> embedding · sqrt(D) + positions -> N decoder blocks -> logits

The decoder blocks also read the memory, by cross-attention.
"""

import math

import torch
from torch import Tensor, nn


class Attention(nn.Module):
    """Multi-head attention; x asks, context answers."""

    def __init__(self, d_model: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(d_model, d_model)
        self.key = nn.Linear(d_model, d_model)
        self.value = nn.Linear(d_model, d_model)
        self.out = nn.Linear(d_model, d_model)

    def forward(self, x: Tensor, context: Tensor, mask: Tensor) -> Tensor:
        """Attend from x (B, T, D) to context (B, S, D): (B, T, D).

        mask: boolean, broadcasts to (B, H, T, S); True where a query may attend to a key.
        """
        queries, keys, values = (
            projected.unflatten(-1, (self.heads, -1)).transpose(1, 2)  # (B, T, D) -> (B, H, T, K)
            for projected in (self.query(x), self.key(context), self.value(context))
        )
        scores = queries @ keys.mT / math.sqrt(queries.size(-1))  # (B, H, T, S)
        weights = scores.masked_fill(~mask, -math.inf).softmax(dim=-1)
        return self.out((weights @ values).transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    """Two linear layers with a ReLU between them."""

    def __init__(self, d_model: int, d_ff: int) -> None:
        super().__init__()
        self.up = nn.Linear(d_model, d_ff)
        self.down = nn.Linear(d_ff, d_model)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D)."""
        return self.down(self.up(x).relu())


class EncoderBlock(nn.Module):
    """Self-attention and feed-forward, each followed by add & norm."""

    def __init__(self, d_model: int, d_ff: int, heads: int) -> None:
        super().__init__()
        self.attention = Attention(d_model, heads)
        self.attention_norm = nn.LayerNorm(d_model)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.feed_forward_norm = nn.LayerNorm(d_model)

    def forward(self, x: Tensor, source_mask: Tensor) -> Tensor:
        """(B, S, D) -> (B, S, D); source_mask (B, 1, 1, S) is False at padding."""
        x = self.attention_norm(x + self.attention(x, x, source_mask))
        return self.feed_forward_norm(x + self.feed_forward(x))


class DecoderBlock(nn.Module):
    """Causal self-attention, cross-attention to the memory, feed-forward, each followed by add & norm."""

    def __init__(self, d_model: int, d_ff: int, heads: int) -> None:
        super().__init__()
        self.attention = Attention(d_model, heads)
        self.attention_norm = nn.LayerNorm(d_model)
        self.cross_attention = Attention(d_model, heads)
        self.cross_attention_norm = nn.LayerNorm(d_model)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.feed_forward_norm = nn.LayerNorm(d_model)

    def forward(self, x: Tensor, causal: Tensor, memory: Tensor, source_mask: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D); causal (T, T), memory (B, S, D), source_mask (B, 1, 1, S)."""
        x = self.attention_norm(x + self.attention(x, x, causal))
        x = self.cross_attention_norm(x + self.cross_attention(x, memory, source_mask))
        return self.feed_forward_norm(x + self.feed_forward(x))


class EncoderDecoder(nn.Module):
    """The paper's model."""

    def __init__(self, vocab: int, d_model: int, d_ff: int, heads: int, layers: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocab, d_model)
        self.encoder = nn.ModuleList(EncoderBlock(d_model, d_ff, heads) for _ in range(layers))
        self.decoder = nn.ModuleList(DecoderBlock(d_model, d_ff, heads) for _ in range(layers))

    def embed(self, ids: Tensor) -> Tensor:
        """Scaled embeddings plus sinusoidal positions: (B, T) -> (B, T, D)."""
        size = self.embedding.embedding_dim
        pairs = torch.arange(0, size, 2)
        angles = torch.arange(ids.size(1))[:, None] / 10_000 ** (pairs / size)  # (T, D/2)
        positions = torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)  # (T, D)
        return self.embedding(ids) * math.sqrt(size) + positions

    def encode(self, source: Tensor, source_mask: Tensor) -> Tensor:
        """The memory: (B, S) -> (B, S, D)."""
        x = self.embed(source)
        for block in self.encoder:
            x = block(x, source_mask)
        return x

    def decode(self, target: Tensor, memory: Tensor, source_mask: Tensor) -> Tensor:
        """The decoder's last hidden states: (B, T) -> (B, T, D)."""
        causal = torch.ones(target.size(1), target.size(1), dtype=torch.bool).tril()
        x = self.embed(target)
        for block in self.decoder:
            x = block(x, causal, memory, source_mask)
        return x

    def forward(self, source: Tensor, target: Tensor, source_real: Tensor) -> Tensor:
        """The logits (B, T, V) of the token that follows each target token.

        source (B, S), target (B, T), which begins with the start token; source_real (B, S), False at padding.
        """
        source_mask = source_real[:, None, None, :]
        memory = self.encode(source, source_mask)
        return self.decode(target, memory, source_mask) @ self.embedding.weight.T
