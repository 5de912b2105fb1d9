"""Attention: each exercise in another style, and edits that plant a mistake in it."""

from __future__ import annotations

from other_solutions.solution import OtherSolution

ATTENTION = {
    "attention": OtherSolution(
        """
import torch

def attention(queries, keys, values, mask=None):
    scores = torch.einsum("bhtk,bhsk->bhts", queries, keys) * queries.shape[-1] ** -0.5
    if mask is None:
        mask = torch.ones_like(scores, dtype=torch.bool)
    exp = torch.exp(scores) * mask
    return torch.einsum("bhts,bhsk->bhtk", exp / exp.sum(-1, keepdim=True).clamp(min=1e-30), values)
""",
        {
            "The division by sqrt(d_k) is missing": (" * queries.shape[-1] ** -0.5", ""),
            "The scores are divided by d_k, not by its square root": ("** -0.5", "** -1"),
            "The softmax runs over the queries": ("exp.sum(-1", "exp.sum(-2"),
            "The mask is inverted": ("torch.exp(scores) * mask", "torch.exp(scores) * (~mask if (~mask).any() else 1)"),
            "The mask is ignored": ("torch.exp(scores) * mask", "torch.exp(scores)"),
            "A query that may attend to nothing becomes NaN": (".clamp(min=1e-30)", ""),
        },
    ),
    "causal-mask": OtherSolution(
        """
import torch

def causal_mask(length):
    index = torch.arange(length)
    return index[:, None] >= index[None, :]

def padded_causal_mask(real):
    rows = [torch.logical_and(causal_mask(len(row)), row.expand(len(row), -1)) for row in real]
    return torch.stack(rows)[:, None]
""",
        {
            "The mask is inverted": (">=", "<"),
            "Tokens attend to later ones instead of earlier ones": (">=", "<="),
            "A token may not attend to itself": (">=", ">"),
            "A token may see one token too far": ("index[:, None] >=", "index[:, None] + 1 >="),
            "Rows of padding are masked instead of columns": (
                "row.expand(len(row), -1)",
                "row[:, None].expand(-1, len(row))",
            ),
            "Padding is not ignored": ("row.expand(len(row), -1)", "torch.ones_like(row)"),
        },
    ),
    "heads": OtherSolution(
        """
import torch

def split(x, heads):
    return torch.stack(x.chunk(heads, dim=-1), dim=1)

def merge(x):
    return torch.cat(list(x.unbind(1)), dim=-1)
""",
        {
            "Heads are split by reshape, without a transpose": (
                "torch.stack(x.chunk(heads, dim=-1), dim=1)",
                "x.contiguous().view(x.shape[0], heads, x.shape[1], -1)",
            ),
            "The transpose after the split is missing": ("dim=1)", "dim=2)"),
            "The channels of a head are not neighbours": (
                "torch.stack(x.chunk(heads, dim=-1), dim=1)",
                "torch.stack([x[..., h::heads] for h in range(heads)], dim=1)",
            ),
            "Heads are merged by reshape, without a transpose": (
                "torch.cat(list(x.unbind(1)), dim=-1)",
                "x.contiguous().view(x.shape[0], x.shape[2], -1)",
            ),
            "The merged channels alternate between the heads": (
                "torch.cat(list(x.unbind(1)), dim=-1)",
                "torch.stack(list(x.unbind(1)), dim=-1).flatten(-2)",
            ),
        },
    ),
    "cross-attention": OtherSolution(
        """
import torch
from torch import nn
import torch.nn.functional as F

class CrossAttention(nn.Module):
    def __init__(self, d_model, heads):
        super().__init__()
        self.heads = heads
        self.head_size = d_model // heads
        self.query = nn.Linear(d_model, d_model)
        self.key = nn.Linear(d_model, d_model)
        self.value = nn.Linear(d_model, d_model)
        self.out = nn.Linear(d_model, d_model)

    def split(self, x):
        return torch.stack(x.chunk(self.heads, dim=-1), dim=1)

    def forward(self, x, memory, memory_real):
        q, k, v = self.split(self.query(x)), self.split(self.key(memory)), self.split(self.value(memory))
        mask = memory_real[:, None, None, :].expand(-1, 1, x.shape[1], -1)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        y = torch.cat(list(y.unbind(1)), -1)
        return self.out(y)
""",
        {
            "The values come from the target": ("self.value(memory)", "self.value(x)"),
            "The keys come from the target": ("self.key(memory)", "self.key(x)"),
            "Padding of the source is not ignored": ("attn_mask=mask", "attn_mask=None"),
            "The last matrix is missing": ("return self.out(y)", "return y"),
            "The mask is inverted": ("mask = memory_real", "mask = ~memory_real"),
            "The division by sqrt(d_k) is missing": ("attn_mask=mask", "attn_mask=mask, scale=1.0"),
        },
    ),
}
