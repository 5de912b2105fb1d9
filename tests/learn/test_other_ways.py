"""Mistakes are recognised by what is computed, not by how it is written: other code, with the same mistakes in it.

Each exercise has a second solution in another style, and at least four mistakes that are planted in it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from clearhead.learn.catalogue import NAMES, load_exercise
from clearhead.learn.checking import check
from clearhead.learn.pieces import file_name

OTHER: dict[str, tuple[str, dict[str, tuple[str, str]]]] = {}  # exercise -> another solution, mistake -> edit of it

OTHER["bpe"] = (
    """
def count_pairs(words):
    found = {}
    for tokens, times in words:
        for i in range(len(tokens) - 1):
            key = (tokens[i], tokens[i + 1])
            found[key] = found.get(key, 0) + times
    return found

def merge(tokens, pair):
    rest, result = list(tokens), []
    while rest:
        if len(rest) > 1 and (rest[0], rest[1]) == pair:
            result.append(rest.pop(0) + rest.pop(0))
        else:
            result.append(rest.pop(0))
    return result
""",
    {
        "The number of occurrences of a word is ignored": ("+ times", "+ 1"),
        "Pairs are counted across the border of two words": (
            "    for tokens, times in words:\n",
            "    flat = [t for tokens, _ in words for t in tokens]\n"
            "    often = [n for tokens, n in words for _ in tokens]\n"
            "    for i in range(len(flat) - 1):\n"
            "        found[flat[i], flat[i + 1]] = found.get((flat[i], flat[i + 1]), 0) + often[i]\n"
            "    return found\n"
            "    for tokens, times in words:\n",
        ),
        "Only the first occurrence is merged": (
            "result.append(rest.pop(0) + rest.pop(0))",
            "return result + [rest.pop(0) + rest.pop(0)] + rest",
        ),
        "The two tokens stay beside their merge": (
            "result.append(rest.pop(0) + rest.pop(0))",
            "result.extend([rest[0] + rest[1], rest.pop(0), rest.pop(0)])",
        ),
    },
)
OTHER["sinusoids"] = (
    """
import math
import torch

def sinusoids(length, d_model):
    rows = []
    for position in range(length):
        row = []
        for i in range(d_model // 2):
            angle = position / math.pow(10000, 2 * i / d_model)
            row += [math.sin(angle), math.cos(angle)]
        rows.append(row)
    return torch.tensor(rows)
""",
    {
        "Sine and cosine are exchanged": ("[math.sin(angle), math.cos(angle)]", "[math.cos(angle), math.sin(angle)]"),
        "The exponent is i / D instead of 2i / D": ("2 * i / d_model", "i / d_model"),
        "Positions are counted from 1": ("position /", "(position + 1) /"),
        "The angle is multiplied by 10000^(2i/D) instead of divided": ("position / math.pow", "position * math.pow"),
    },
)
OTHER["rotary"] = (
    """
import torch

def rotate(x, positions, base=10000.0):
    half = x.shape[-1] // 2
    frequency = torch.exp(-torch.log(torch.tensor(base)) * torch.arange(half) / half)
    angle = torch.outer(positions.float(), frequency)
    number = torch.complex(x[..., :half].contiguous(), x[..., half:].contiguous())
    turned = number * torch.polar(torch.ones_like(angle), angle)
    return torch.cat([turned.real, turned.imag], -1)
""",
    {
        "It turns the other way": ("torch.ones_like(angle), angle)", "torch.ones_like(angle), -angle)"),
        "All pairs turn equally fast": ("torch.arange(half) / half", "torch.zeros(half)"),
        "The exponent is i / K instead of 2i / K": ("torch.arange(half) / half", "torch.arange(half) / half / 2"),
        "The position is the index in x, not the one that is given": (
            "positions.float()",
            "torch.arange(x.shape[2]).float()",
        ),
        "The base is always 10000": ("torch.tensor(base)", "torch.tensor(10000.0)"),
        "Neighbouring channels are paired": (
            "number = torch.complex(x[..., :half].contiguous(), x[..., half:].contiguous())\n",
            "number = torch.view_as_complex(x.reshape(*x.shape[:-1], half, 2))\n"
            "    return torch.view_as_real(number * torch.polar(torch.ones_like(angle), angle)).flatten(-2)\n",
        ),
    },
)
OTHER["attention"] = (
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
)
OTHER["causal-mask"] = (
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
)
OTHER["heads"] = (
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
)
CROSS = """
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
"""
OTHER["cross-attention"] = (
    CROSS,
    {
        "The values come from the target": ("self.value(memory)", "self.value(x)"),
        "The keys come from the target": ("self.key(memory)", "self.key(x)"),
        "Padding of the source is not ignored": ("attn_mask=mask", "attn_mask=None"),
        "The last matrix is missing": ("return self.out(y)", "return y"),
        "The mask is inverted": ("mask = memory_real", "mask = ~memory_real"),
        "The division by sqrt(d_k) is missing": ("attn_mask=mask", "attn_mask=mask, scale=1.0"),
    },
)
OTHER["layer-norm"] = (
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
)
OTHER["feed-forward"] = (
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
)
OTHER["block"] = (
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
)
OTHER["teacher-forcing"] = (
    """
import torch
from torch.nn.utils.rnn import pad_sequence

def shift(sentences, start, end, pad):
    inputs = [torch.tensor([start] + ids) for ids in sentences]
    labels = [torch.tensor(ids + [end]) for ids in sentences]
    return (
        pad_sequence(inputs, batch_first=True, padding_value=pad),
        pad_sequence(labels, batch_first=True, padding_value=-100),
    )
""",
    {
        "Inputs and labels are not shifted": ("[start] + ids", "ids + [end]"),
        "Padding is not ignored in the labels": ("padding_value=-100", "padding_value=pad"),
        "The inputs are padded with -100": ("padding_value=pad", "padding_value=-100"),
        "The shift goes the wrong way": (
            "    return (\n",
            "    inputs, labels = labels, inputs\n    return (\n",
        ),
    },
)
OTHER["label-smoothing"] = (
    """
import torch

def smoothed_loss(logits, targets, smoothing):
    total = 0
    for row, target in zip(logits, targets):
        if target == -100:
            continue
        log_p = row - torch.logsumexp(row, 0)
        wanted = torch.full_like(row, smoothing / len(row))
        wanted[target] += 1 - smoothing
        total = total - (wanted * log_p).sum()
    return total
""",
    {
        "Padding is not ignored": ("            continue\n", "            target = 0\n"),
        "It is a mean, not a sum": ("return total", "return total / (targets != -100).sum()"),
        "The softmax is missing": ("row - torch.logsumexp(row, 0)", "row"),
        "The sign is missing": ("total - (wanted", "total + (wanted"),
        "Every token gets ε instead of ε / V": ("smoothing / len(row)", "smoothing"),
        "Smoothing is ignored": ("wanted = ", "smoothing = 0\n        wanted = "),
        "The right token keeps weight 1": ("+= 1 - smoothing", "+= 1"),
    },
)
OTHER["noam"] = (
    """
def learning_rate(step, d_model, warmup):
    if step < warmup:
        return d_model**-0.5 * step / warmup**1.5
    return d_model**-0.5 / step**0.5
""",
    {
        "There is no warm-up": ("if step < warmup", "if step < 0"),
        "It never falls": ("d_model**-0.5 / step**0.5", "d_model**-0.5 / warmup**0.5"),
        "The larger of the two is taken": ("if step < warmup", "if step > warmup"),
        "Steps are counted from 0": ("* step / warmup**1.5", "* (step - 1) / warmup**1.5"),
    },
)
OTHER["greedy"] = (
    """
import torch

def greedy(next_logits, prompt, end, pad, most):
    written = []
    open_rows = torch.ones(len(prompt), dtype=torch.bool)
    while len(written) < most and open_rows.any():
        ids = torch.cat([prompt, *[w[:, None] for w in written]], 1)
        _, best = next_logits(ids).max(-1)
        best[~open_rows] = pad
        open_rows &= best != end
        written.append(best)
    return torch.stack(written, 1)
""",
    {
        "Sentences go on after their end": ("        best[~open_rows] = pad\n", ""),
        "The search stops when the first sentence has ended": ("open_rows.any()", "open_rows.all()"),
        "The search never stops early": (" and open_rows.any()", ""),
        "The model reads only the newest token": ("next_logits(ids)", "next_logits(ids[:, -1:])"),
        "The least likely token is taken": (".max(-1)", ".min(-1)"),
        "One token too few": ("< most and", "< most - 1 and"),
        "The prompt is part of the result": (
            "torch.stack(written, 1)",
            "torch.cat([prompt, torch.stack(written, 1)], 1)",
        ),
    },
)
OTHER["beam"] = (
    """
import torch

def beam(next_logits, end, width, most, alpha):
    ids, totals = torch.zeros(1, 0, dtype=torch.long), torch.zeros(1)
    done = []
    for length in range(1, most + 1):
        every = totals[:, None] + torch.log_softmax(next_logits(ids), -1)
        size = every.shape[1]
        values, places = every.flatten().sort(descending=True)
        rows = torch.cat([ids[places // size], places[:, None] % size], 1)
        penalty = ((5 + length) / 6) ** alpha
        for value, row in zip(values[:width], rows[:width]):
            if row[-1] == end or length == most:
                done.append((float(value / penalty), row.tolist()))
        keep = rows[:, -1] != end
        ids, totals = rows[keep][:width], values[keep][:width]
    score, row = max(done)
    if row[-1] == end:
        row = row[:-1]
    return row, score
""",
    {
        "The score is not divided by the length penalty": ("value / penalty", "value"),
        "The score is divided by the length": ("penalty = ((5 + length) / 6) ** alpha", "penalty = length"),
        "The score is divided by length^alpha": ("penalty = ((5 + length) / 6) ** alpha", "penalty = length**alpha"),
        "The score is multiplied by the length penalty": ("value / penalty", "value * penalty"),
        "Probabilities are added instead of log-probabilities": ("torch.log_softmax", "torch.softmax"),
        "The first complete text is returned": ("max(done)", "done[0]"),
        "The end token is part of the result": ("row = row[:-1]", "pass"),
    },
)
OTHER["kv-cache"] = (
    """
import torch

class KVCache:
    def __init__(self):
        self.keys = None
        self.values = None
        self.count = 0

    def positions(self, count):
        return torch.arange(count) + self.count

    def append(self, keys, values):
        old = [] if self.keys is None else [(self.keys, self.values)]
        pairs = old + [(keys, values)]
        self.keys = torch.cat([k for k, _ in pairs], -2)
        self.values = torch.cat([v for _, v in pairs], -2)
        self.count = self.keys.shape[-2]
        return self.keys, self.values

    def select(self, rows):
        self.keys = self.keys.index_select(0, rows)
        self.values = self.values.index_select(0, rows)
""",
    {
        "The cache position is wrong: it starts at 0 again": (" + self.count\n", "\n"),
        "The cache position is one too large": (" + self.count\n", " + self.count + (self.count >= 0)\n"),
        "New keys and values replace the old ones": ("pairs = old + [(keys, values)]", "pairs = [(keys, values)]"),
        "New keys and values come before the old ones": ("old + [(keys, values)]", "[(keys, values)] + old"),
        "select keeps the values of all rows": ("        self.values = self.values.index_select(0, rows)\n", ""),
    },
)
OTHER["lora"] = (
    """
import torch
import torch.nn.functional as F

def start(inputs, outputs, rank):
    a = torch.empty(rank, inputs).uniform_(-0.1, 0.1)
    return a, torch.zeros((outputs, rank))

def lora(x, weight, a, b, scale):
    return F.linear(x, weight) + F.linear(F.linear(x, a), b) * scale

def merge(weight, a, b, scale):
    return torch.addmm(weight, b, a, alpha=scale)
""",
    {
        "The scale is missing": (", b) * scale", ", b)"),
        "The frozen matrix is missing": ("F.linear(x, weight) + ", ""),
        "The adapter is missing": (" + F.linear(F.linear(x, a), b) * scale", ""),
        "The merge forgets the scale": ("alpha=scale", "alpha=1"),
        "B does not start at 0": ("torch.zeros((outputs", "torch.ones((outputs"),
        "A starts at 0, too": ("uniform_(-0.1, 0.1)", "zero_()"),
    },
)
OTHER["encoder-decoder"] = (
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
        "The decoder's self-attention is not causal": ("self.attention(x, x, causal)", "self.attention(x, x, None)"),
        "Embeddings are not multiplied by sqrt(D)": (" * size**0.5", ""),
        "Positions are missing": (" + table", ""),
        "The mask of the decoder lets every token see the next one": (
            "index[:, None] >= index",
            "index[:, None] >= index - 1",
        ),
        "Only one block is used": ("layer(memory, source_mask)", "layer(self.embed(source), source_mask)"),
        "Padding of the source is not ignored": ("mask = source_real[", "mask = (source_real | True)["),
    },
)


def test_every_exercise_has_a_second_solution_with_four_mistakes() -> None:
    assert tuple(OTHER) == NAMES
    assert all(len(edits) >= 4 for _, edits in OTHER.values())


@pytest.mark.parametrize("name", NAMES)
def test_another_way_to_write_it_is_right_and_its_mistakes_are_recognised(name: str, tmp_path: Path) -> None:
    exercise = load_exercise(name)
    path = tmp_path / file_name(name)
    code, edits = OTHER[name]
    path.write_text(code)
    verdict = check(exercise, path)
    assert verdict.right, verdict
    found = {}
    for mistake, (old, new) in edits.items():
        assert code.count(old) == 1, old
        path.write_text(code.replace(old, new))
        verdict = check(exercise, path)
        found[mistake] = verdict.mistake or f"{verdict.problem} {verdict.lines}"
    assert found == {mistake: mistake for mistake in edits}
