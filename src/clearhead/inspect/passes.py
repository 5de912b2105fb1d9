"""The forward passes that pages show. Ids and changes are kept; of the tensors, the most recently used up to a limit.

Tensors that were evicted are computed again when a page asks for them.
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
from clearhead.inspect.inputs import ModelInputs
from clearhead.inspect.kinds import kind_at
from clearhead.inspect.names import names_of
from clearhead.inspect.patch import Changes, patch
from clearhead.inspect.paths import Node, block_of
from clearhead.inspect.trace import EVERYTHING, CaptureComplete, Trace, capture, captured, uncompiled
from clearhead.runs import Run

MEMORY_LIMIT = 768 * 2**20  # bytes of tensors, over all passes
WHOLE_PASS_LIMIT = 256 * 2**20  # bytes; a pass that is expected to take more is captured block by block
MOST_PASSES = 200
THUMBNAIL_SIZE = 64  # rows and columns
THUMBNAILS = "thumbnails"


@dataclass(frozen=True)
class TracedPass:
    """A text, with changes, through the model of a run; `run` is a function, since snapshots are loaded and freed."""

    run: Callable[[], Run]
    inputs: ModelInputs
    changes: Changes
    before: str = ""  # id of the pass to compare with: same tokens, finished model, no changes; "": this pass itself


class Passes:
    """The latest passes by their ids, and traces with the most recently used tensors."""

    def __init__(self) -> None:
        self.by_id: OrderedDict[str, TracedPass] = OrderedDict()  # the oldest first
        self.parts: OrderedDict[tuple[str, tuple[str, ...]], Trace] = OrderedDict()  # the least recently used first

    def __contains__(self, pass_id: str) -> bool:
        return pass_id in self.by_id

    def __getitem__(self, pass_id: str) -> TracedPass:
        require(pass_id in self.by_id, f"trace {pass_id!r} is not known any more; load the page again")
        return self.by_id[pass_id]

    def add(self, pass_id: str, added: TracedPass) -> None:
        """Remember a pass; the oldest is forgotten."""
        self.by_id[pass_id] = added
        if len(self.by_id) > MOST_PASSES:
            self.drop(next(iter(self.by_id)))
            self.by_id.popitem(last=False)

    def part(self, pass_id: str, *names: str) -> Trace:
        """A trace that has these tensors, and those that are usually shown with them."""
        wanted = self[pass_id]
        for key, trace in reversed(self.parts.items()):
            if key[0] == pass_id and key[1][0] != THUMBNAILS and all(name in trace for name in names):
                self.parts.move_to_end(key)
                return trace
        run = wanted.run()
        only = EVERYTHING if fits(wanted) else together(run, names)
        known = self.reusable(pass_id)
        found = capture(run, wanted.inputs, wanted.changes, only, gradients=False, known=known)
        return self.keep(pass_id, tuple(only), found)

    def reusable(self, pass_id: str) -> dict[str, Tensor]:
        """Tensors that need no new computation: kept from this pass, or unaffected by its changes."""
        wanted = self[pass_id]
        known: dict[str, Tensor] = {}
        for (kept, names), trace in self.parts.items():
            if names[0] == THUMBNAILS:
                continue
            if kept == pass_id:
                known |= trace.tensors()
            elif wanted.changes and trace.run is wanted.run() and trace.ids == wanted.inputs.ids and not trace.changes:
                known |= trace.unchanged_by(wanted.changes)
        return known

    def thumbnails(self, pass_id: str, names: Sequence[str]) -> Trace:
        """Tensors of a pass that are too large to keep, each shrunk as soon as it is computed."""
        key = (pass_id, (THUMBNAILS, *names))
        if key in self.parts:
            return self.parts[key]
        wanted = self[pass_id]
        run = wanted.run()
        small = Thumbnails()
        capturing = captured(run.model, names, small, gradients=False)
        with patch(run, wanted.changes), capturing, uncompiled(run.model), torch.no_grad(), suppress(CaptureComplete):
            run.model(*wanted.inputs.tensors(run.device))
        return self.keep(*key, Trace(run, wanted.inputs, wanted.changes, small))

    def keep(self, pass_id: str, names: tuple[str, ...], trace: Trace) -> Trace:
        """Keep a trace; evict the least recently used ones above the memory limit, but never this one."""
        self.parts[pass_id, names] = trace
        while len(self.parts) > 1 and self.bytes() > MEMORY_LIMIT:
            self.parts.popitem(last=False)
        return trace

    def bytes(self) -> int:
        """How much memory all tensors take."""
        shared = {id(each): each for trace in self.parts.values() for each in trace.tensors().values()}
        return sum(each.numel() * each.element_size() for each in shared.values())

    def drop(self, pass_id: str) -> None:
        """Free the tensors of a pass."""
        self.drop_where(lambda key, _: key[0] == pass_id)

    def drop_where(self, condition: Callable[[tuple[str, tuple[str, ...]], Trace], bool]) -> None:
        """Free the traces for which a condition is true."""
        for key in [key for key, trace in self.parts.items() if condition(key, trace)]:
            del self.parts[key]


class Thumbnails(dict[str, Tensor]):
    """Tensors by their names, shrunk when they are stored."""

    def __setitem__(self, name: str, value: Tensor) -> None:
        super().__setitem__(name, shrunk(value, THUMBNAIL_SIZE) if value.dim() > 2 else value)


def shrunk(value: Tensor, most: int) -> Tensor:
    """A tensor whose last two axes have at most `most` entries, each the maximum of a patch."""
    if max(value.shape[-2:]) <= most:
        return value
    size = [min(length, most) for length in value.shape[-2:]]
    flat = value.reshape(-1, 1, *value.shape[-2:]).float()
    return F.adaptive_max_pool2d(flat, size).view(*value.shape[:-2], *size)


def fits(wanted: TracedPass) -> bool:
    """Whether all tensors of a pass can be kept, by an estimate of their size."""
    run = wanted.run()
    config = run.recipe.model
    tokens = max(map(len, wanted.inputs.ids.values()))
    blocks = sum(1 for _ in run.model.blocks())
    attentions = 2 * blocks if config.family == "encoder-decoder" else blocks
    squares = attentions * config.heads * tokens**2 * 9  # scores and weights in 4 bytes each, the mask in 1
    streams = (attentions + blocks) * tokens * 4 * (6 * config.d_model + 3 * config.d_ff)
    return squares + streams + 4 * tokens * config.vocab <= WHOLE_PASS_LIMIT


def together(run: Run, names: Sequence[str]) -> list[str]:
    """The names to capture in one pass: several names as they are; with one, its block or the whole residual stream.

    The residual stream comes with the logits too, so that a block can be computed later without those before it.
    """
    if len(names) > 1:
        return list(names)
    config = run.recipe.model
    groups = {group(names[0], config)}
    if "head" in groups:
        groups.add("stream")
    return [name for name in names_of(run.model, config) if group(name, config) in groups]


def group(name: str, config: ModelConfig) -> str:
    """What a tensor is captured together with: the whole residual stream, or its block."""
    return "stream" if kind_at(Node(name, config)).in_stream else block_of(name)
