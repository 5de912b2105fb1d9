"""Inputs of exported programs, of other sizes than those they were recorded with."""

from __future__ import annotations

import torch
from torch import Tensor

from clearhead.exchange.programs import Program

SIZES = (
    {"batch": 1, "length": 1, "past": 0, "source": 1},
    {"batch": 3, "length": 1, "past": 7, "source": 11},
    {"batch": 4, "length": 40, "past": 0, "source": 50},
)


def random_inputs(program: Program, sizes: dict[str, int]) -> dict[str, Tensor]:
    """Random ids, keys and values; in the second row, sources end earlier and the first new token is padding."""
    found = {}
    for name, example in program.inputs.items():
        shape = [
            sizes[program.axes[name][axis]] if axis in program.axes[name] else n for axis, n in enumerate(example.shape)
        ]
        if example.dtype == torch.bool:
            found[name] = torch.ones(shape, dtype=torch.bool)
            found[name][1:2, shape[1] // 2 + 1 :] = False
        elif name == "padding":
            found[name] = torch.zeros(shape, dtype=torch.long)
            found[name][1:2] = 1
        else:
            found[name] = torch.randint(90, shape) if example.dtype == torch.long else torch.randn(shape)
    return found
