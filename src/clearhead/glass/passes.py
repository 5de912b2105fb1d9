"""The passes that pages look at: ids and changes are kept, tensors only as far as there is room for them.

What was let go is computed again when it is asked for, so a page never notices.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from clearhead.config import ModelConfig, require
from clearhead.glass.kinds import kind_at
from clearhead.glass.names import names_of
from clearhead.glass.patch import Changes, patch
from clearhead.glass.paths import Node, block_of
from clearhead.glass.reading import Reading, read
from clearhead.glass.trace import EVERYTHING, Enough, Trace, capture, uncompiled, watched
from clearhead.runs import Run

ROOM = 768 * 2**20  # bytes of tensors, over all passes
ALL_AT_ONCE = 256 * 2**20  # a pass that is expected to take more is captured block by block
MOST_PASSES = 200
SMALL = 64  # rows and columns of a thumbnail
THUMBNAILS = ("thumbnails",)


@dataclass(frozen=True)
class Pass:
    """One text, with changes, through one model; which one is asked for each time, since snapshots come and go."""

    run: Callable[[], Run]
    reading: Reading
    changes: Changes


def begin_pass(run: Callable[[], Run], text: str, target: str | None, changes: Changes) -> Pass:
    """Read a text, and let an encoder-decoder write its own answer if none is given."""
    with patch(run(), changes):
        return Pass(run, read(run(), text, target), changes)


class Passes:
    """The latest passes by their ids, and the tensors of those that were looked at last."""

    def __init__(self) -> None:
        self.begun: OrderedDict[str, Pass] = OrderedDict()
        self.parts: OrderedDict[tuple[str, tuple[str, ...]], Trace] = OrderedDict()  # the one used longest ago first

    def __contains__(self, number: str) -> bool:
        return number in self.begun

    def __getitem__(self, number: str) -> Pass:
        require(number in self.begun, f"trace {number!r} is not known any more; load the page again")
        return self.begun[number]

    def add(self, number: str, begun: Pass) -> None:
        """Remember a pass; the oldest is forgotten."""
        self.begun[number] = begun
        if len(self.begun) > MOST_PASSES:
            self.drop(next(iter(self.begun)))
            self.begun.popitem(last=False)

    def part(self, number: str, *names: str) -> Trace:
        """A trace that holds these tensors, and what is usually looked at beside them."""
        begun = self[number]
        for key, trace in reversed(self.parts.items()):
            if key[0] == number and key[1] != THUMBNAILS and all(name in trace for name in names):
                self.parts.move_to_end(key)
                return trace
        run = begun.run()
        only = EVERYTHING if fits(begun) else together(run, names)
        known = self.unchanged(run, begun) if begun.changes else {}
        found = capture(run, begun.reading, begun.changes, only, gradients=False, known=known)
        return self.keep(number, tuple(only), found)

    def unchanged(self, run: Run, begun: Pass) -> dict[str, Tensor]:
        """What is held of the same tokens without changes, and comes before these: it need not be computed again."""
        for (_, what), trace in self.parts.items():
            if what == EVERYTHING and trace.run is run and trace.ids == begun.reading.ids and not trace.changes:
                return trace.unchanged_by(begun.changes)
        return {}

    def thumbnails(self, number: str) -> Trace:
        """All tensors of a pass that is too large to be held, each made small as soon as it is there."""
        if (number, THUMBNAILS) in self.parts:
            return self.parts[number, THUMBNAILS]
        begun, small = self[number], Thumbnails()
        run = begun.run()
        names = names_of(run.model, run.recipe.model)
        looking = watched(run.model, names, small, gradients=False)
        with patch(run, begun.changes), looking, uncompiled(run.model), torch.no_grad(), suppress(Enough):
            run.model(*begun.reading.inputs(run.device))
        return self.keep(number, THUMBNAILS, Trace(run, begun.reading, begun.changes, small))

    def keep(self, number: str, what: tuple[str, ...], trace: Trace) -> Trace:
        """Hold a part, and let go of others if need be."""
        self.parts[number, what] = trace
        self.make_room()
        return trace

    def bytes(self) -> int:
        """How much memory all tensors take."""
        return sum(trace.bytes() for trace in self.parts.values())

    def make_room(self) -> None:
        """Let go of what was used longest ago, but never of what was just captured."""
        while len(self.parts) > 1 and self.bytes() > ROOM:
            self.parts.popitem(last=False)

    def drop(self, number: str) -> None:
        """Free the tensors of a pass."""
        self.drop_where(lambda key, _: key[0] == number)

    def drop_where(self, holds: Callable[[tuple[str, tuple[str, ...]], Trace], bool]) -> None:
        """Free the parts for which this holds."""
        for key in [key for key, trace in self.parts.items() if holds(key, trace)]:
            del self.parts[key]


class Thumbnails(dict[str, Tensor]):
    """Tensors by their names, made small as they come."""

    def __setitem__(self, name: str, value: Tensor) -> None:
        super().__setitem__(name, shrunk(value, SMALL) if value.dim() > 2 else value)


def shrunk(value: Tensor, most: int) -> Tensor:
    """The last two axes at most so long, the largest of each patch standing for it."""
    if max(value.shape[-2:]) <= most:
        return value
    size = [min(length, most) for length in value.shape[-2:]]
    flat = value.reshape(-1, 1, *value.shape[-2:]).float()
    return F.adaptive_max_pool2d(flat, size).view(*value.shape[:-2], *size)


def fits(begun: Pass) -> bool:
    """Whether a whole trace can be held: squares of attention, streams, logits."""
    run = begun.run()
    config, tokens = run.recipe.model, max(map(len, begun.reading.ids.values()))
    blocks = sum(1 for _ in run.model.blocks())
    attentions = 2 * blocks if config.family == "encoder-decoder" else blocks
    squares = attentions * config.heads * tokens**2 * 9  # scores and weights in 4 bytes each, the mask in 1
    streams = (attentions + blocks) * tokens * 4 * (6 * config.d_model + 3 * config.d_ff)
    return squares + streams + 4 * tokens * config.vocab <= ALL_AT_ONCE


def together(run: Run, names: Sequence[str]) -> list[str]:
    """What one capture gives: several names as they are; with one, all of the residual stream, or of its block."""
    if len(names) > 1:
        return list(names)
    config = run.recipe.model
    return [name for name in names_of(run.model, config) if group(name, config) == group(names[0], config)]


def group(name: str, config: ModelConfig) -> str:
    """What a tensor is captured together with: the whole residual stream, or its block."""
    return "stream" if kind_at(Node(name, config)).in_stream else block_of(name)
