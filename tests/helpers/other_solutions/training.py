"""Training: each exercise in another style, and edits that plant a mistake in it."""

from __future__ import annotations

from other_solutions.solution import OtherSolution

TRAINING = {
    "teacher-forcing": OtherSolution(
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
    ),
    "label-smoothing": OtherSolution(
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
    ),
    "noam": OtherSolution(
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
    ),
    "lora": OtherSolution(
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
    ),
}
