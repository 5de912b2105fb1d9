"""Tokens and positions: each exercise in another style, and edits that plant a mistake in it."""

from __future__ import annotations

from other_solutions.solution import OtherSolution

POSITIONS = {
    "bpe": OtherSolution(
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
    ),
    "sinusoids": OtherSolution(
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
            "Sine and cosine are exchanged": (
                "[math.sin(angle), math.cos(angle)]",
                "[math.cos(angle), math.sin(angle)]",
            ),
            "The exponent is i / D instead of 2i / D": ("2 * i / d_model", "i / d_model"),
            "Positions are counted from 1": ("position /", "(position + 1) /"),
            "The angle is multiplied by 10000^(2i/D) instead of divided": (
                "position / math.pow",
                "position * math.pow",
            ),
        },
    ),
    "rotary": OtherSolution(
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
    ),
}
