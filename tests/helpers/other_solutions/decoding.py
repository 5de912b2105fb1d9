"""Decoding: each exercise in another style, and edits that plant a mistake in it."""

from __future__ import annotations

from other_solutions.solution import OtherSolution

DECODING = {
    "greedy": OtherSolution(
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
    ),
    "beam": OtherSolution(
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
            "The score is divided by length^alpha": (
                "penalty = ((5 + length) / 6) ** alpha",
                "penalty = length**alpha",
            ),
            "The score is multiplied by the length penalty": ("value / penalty", "value * penalty"),
            "Probabilities are added instead of log-probabilities": ("torch.log_softmax", "torch.softmax"),
            "The first complete text is returned": ("max(done)", "done[0]"),
            "The end token is part of the result": ("row = row[:-1]", "pass"),
        },
    ),
    "kv-cache": OtherSolution(
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
    ),
}
