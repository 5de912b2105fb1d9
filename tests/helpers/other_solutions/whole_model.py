"""The whole model: each exercise in another style, and edits that plant a mistake in it."""

from __future__ import annotations

from other_solutions.solution import OtherSolution

WHOLE_MODEL = {
    "encoder-decoder": OtherSolution(
        """
import math
import torch
import torch.nn.functional as F
from torch import nn

class Attention(nn.Module):
    def __init__(self, d_model, heads):
        super().__init__()
        self.heads = heads
        for name in ("query", "key", "value", "out"):
            setattr(self, name, nn.Linear(d_model, d_model))

    def forward(self, x, context, mask):
        split = lambda t: torch.stack(t.chunk(self.heads, -1), 1)
        q, k, v = split(self.query(x)), split(self.key(context)), split(self.value(context))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.out(torch.cat(list(y.unbind(1)), -1))

class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.up = nn.Linear(d_model, d_ff)
        self.down = nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.down(F.relu(self.up(x)))

class EncoderBlock(nn.Module):
    def __init__(self, d_model, d_ff, heads):
        super().__init__()
        self.attention = Attention(d_model, heads)
        self.attention_norm = nn.LayerNorm(d_model)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.feed_forward_norm = nn.LayerNorm(d_model)

    def forward(self, x, source_mask):
        y = self.attention_norm(self.attention(x, x, source_mask) + x)
        return self.feed_forward_norm(self.feed_forward(y) + y)

class DecoderBlock(nn.Module):
    def __init__(self, d_model, d_ff, heads):
        super().__init__()
        self.attention = Attention(d_model, heads)
        self.attention_norm = nn.LayerNorm(d_model)
        self.cross_attention = Attention(d_model, heads)
        self.cross_attention_norm = nn.LayerNorm(d_model)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.feed_forward_norm = nn.LayerNorm(d_model)

    def forward(self, x, causal, memory, source_mask):
        y = self.attention_norm(self.attention(x, x, causal) + x)
        z = self.cross_attention_norm(self.cross_attention(y, memory, source_mask) + y)
        return self.feed_forward_norm(self.feed_forward(z) + z)

class EncoderDecoder(nn.Module):
    def __init__(self, vocab, d_model, d_ff, heads, layers):
        super().__init__()
        self.embedding = nn.Embedding(vocab, d_model)
        self.encoder = nn.ModuleList(EncoderBlock(d_model, d_ff, heads) for _ in range(layers))
        self.decoder = nn.ModuleList(DecoderBlock(d_model, d_ff, heads) for _ in range(layers))

    def embed(self, ids):
        size = self.embedding.weight.shape[1]
        table = torch.zeros(ids.shape[1], size)
        for t in range(ids.shape[1]):
            for i in range(0, size, 2):
                table[t, i] = math.sin(t / 10000 ** (i / size))
                table[t, i + 1] = math.cos(t / 10000 ** (i / size))
        return self.embedding(ids) * size**0.5 + table

    def encode(self, source, source_mask):
        memory = self.embed(source)
        for layer in self.encoder:
            memory = layer(memory, source_mask)
        return memory

    def decode(self, target, memory, source_mask):
        index = torch.arange(target.shape[1])
        x = self.embed(target)
        for layer in self.decoder:
            x = layer(x, index[:, None] >= index, memory, source_mask)
        return x

    def forward(self, source, target, source_real):
        mask = source_real[:, None, None]
        return F.linear(self.decode(target, self.encode(source, mask), mask), self.embedding.weight)
""",
        {
            "The division by sqrt(d_k) is missing": ("attn_mask=mask", "attn_mask=mask, scale=1.0"),
            "Keys and values come from x": (
                "split(self.key(context)), split(self.value(context))",
                "split(self.key(x)), split(self.value(x))",
            ),
            "The nonlinearity is missing": ("F.relu(self.up(x))", "self.up(x)"),
            "The decoder's self-attention is not causal": (
                "self.attention(x, x, causal)",
                "self.attention(x, x, None)",
            ),
            "Embeddings are not multiplied by sqrt(D)": (" * size**0.5", ""),
            "Positions are missing": (" + table", ""),
            "The mask of the decoder lets every token see the next one": (
                "index[:, None] >= index",
                "index[:, None] >= index - 1",
            ),
            "Only one block is used": ("layer(memory, source_mask)", "layer(self.embed(source), source_mask)"),
            "Padding of the source is not ignored": ("mask = source_real[", "mask = (source_real | True)["),
        },
    ),
}
