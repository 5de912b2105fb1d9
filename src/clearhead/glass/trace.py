"""Trace: one pass of a text through a run's model, with every named intermediate kept.

Looking changes no bit of the output: where the model runs a fused kernel, what it hides is computed beside it.
Shapes are those of the model's table in docs/architecture.md, with a batch of one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor, nn

from clearhead.glass.names import axes_of, choose, names_of, side_of, unknown
from clearhead.glass.patch import HOOKS, Changes, parameters_of, patch
from clearhead.glass.paths import block_of, block_output, kind_of
from clearhead.glass.reading import Reading, read
from clearhead.runs import Run
from clearhead.text.tokenizer import Tokenizer

EVERYTHING = ("*",)
EMPTY: Mapping[str, Tensor] = MappingProxyType({})


@dataclass(frozen=True)
class Named:
    """One intermediate, with what its axes mean and count."""

    name: str
    value: Tensor  # on the CPU, float32 at least
    axes: tuple[str, ...]  # ("batch", "head", "query", "key")
    labels: tuple[tuple[str, ...], ...]  # one for each index of each axis: tokens, "head 0", numbers of channels
    sides: tuple[str, ...]  # whose tokens an axis counts: "source", "target", or "" for anything else


class Trace(Mapping[str, Tensor]):
    """Every named intermediate of one pass, in the order of computing. `with` frees it at the end."""

    def __init__(self, run: Run, reading: Reading, changes: Changes, seen: dict[str, Tensor]) -> None:
        self.run, self.reading, self.changes, self._seen = run, reading, changes, seen

    def __repr__(self) -> str:
        return f"Trace({self.text!r}, {len(self)} tensors; print(.tree()) lists them)"

    @property
    def text(self) -> str:
        """What was read."""
        return self.reading.text

    @property
    def target_text(self) -> str:
        """What was written: given, or the model's own."""
        return self.reading.target

    @property
    def tokens(self) -> dict[str, tuple[str, ...]]:
        """The tokens that enter each side, as readable text: "source", "target"."""
        return self.reading.tokens

    @property
    def ids(self) -> dict[str, tuple[int, ...]]:
        """The ids that enter each side."""
        return self.reading.ids

    def __getitem__(self, name: str) -> Tensor:
        if name not in self._seen:
            raise unknown("trace", name, self.names())
        value = self._seen[name]
        return value.to(torch.promote_types(value.dtype, torch.float32))

    def __contains__(self, name: object) -> bool:
        return name in self._seen

    def __iter__(self) -> Iterator[str]:
        return iter(self._seen)

    def __len__(self) -> int:
        return len(self._seen)

    def __enter__(self) -> Trace:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Free all tensors."""
        self._seen.clear()

    def names(self) -> list[str]:
        """What was kept, in the order of computing."""
        return list(self._seen)

    def bytes(self) -> int:
        """How much memory the tensors take."""
        return sum(tensor.numel() * tensor.element_size() for tensor in self._seen.values())

    def named(self, name: str) -> Named:
        """A tensor with its axes and labels."""
        value = self[name]
        config = self.run.recipe.model
        axes = self.axes(name)
        sides = tuple(side_of(name, axis, config) for axis in axes)
        counted = zip(axes, sides, value.shape, strict=True)
        labels = tuple(self.tokens[side] if side else self.labels(axis, size) for axis, side, size in counted)
        return Named(name, value, axes, labels, sides)

    def axes(self, name: str) -> tuple[str, ...]:
        """What each axis of a tensor counts."""
        return axes_of(name, self[name].dim(), self.run.recipe.model)

    def labels(self, axis: str, size: int) -> tuple[str, ...]:
        """Names for the indices of an axis that does not count tokens."""
        if axis == "word":
            return vocabulary(self.run.tokenizers.target, size)
        if axis == "class" and self.run.labels:
            return self.run.labels
        if axis == "part":
            return ("cosine", "sine")
        if axis == "head":
            shared = self.run.recipe.model.heads // size  # heads that have these keys and values in common
            groups = [range(n * shared, (n + 1) * shared) for n in range(size)]
            return tuple(f"heads {group[0]}–{group[-1]}" if shared > 1 else f"head {group[0]}" for group in groups)
        return tuple(map(str, range(size)))

    def tree(self) -> str:
        """All names with their shapes, as an indented list."""
        lines: list[str] = []
        above: list[str] = []
        for name in self._seen:
            words = name.split(".")
            for depth, word in enumerate(words[:-1]):
                if above[: depth + 1] != words[: depth + 1]:
                    lines.append("  " * depth + word)
                    above = words[: depth + 1]
            above = words[:-1]
            lines.append(f"{'  ' * len(above)}{words[-1]} {list(self._seen[name].shape)}")
        return "\n".join(lines)

    def again(self, changes: Changes | None = None, only: Sequence[str] = EVERYTHING, gradients: bool = False) -> Trace:
        """The same tokens once more: with other changes, other tensors kept, or a graph for gradients."""
        return capture(self.run, self.reading, self.changes if changes is None else changes, only, gradients)

    def unchanged_by(self, changes: Changes) -> dict[str, Tensor]:
        """Of a trace without changes, the tensors that these leave as they are: of all blocks before the first change.

        If something outside the blocks is changed, there are none. `capture` takes them instead of computing them.
        """
        model, config, known = self.run.model, self.run.recipe.model, dict[str, Tensor]()
        changed = {block_of(name) for name in choose([*names_of(model, config), *parameters_of(self.run)], changes)}
        if self.changes or not all(".blocks." in name for name in changed):
            return known
        for block, inside in groupby((name for name in names_of(model, config) if ".blocks." in name), block_of):
            found = {name: self._seen[name] for name in inside if name in self._seen}
            if block in changed or block_output(block) not in found:
                break
            known |= found
        return known


def trace(
    run: Run,
    text: str,
    target: str | None = None,
    changes: Changes | None = None,
    only: Sequence[str] = EVERYTHING,
    gradients: bool = False,
) -> Trace:
    """Run a text through the model and keep all intermediates, or `only` those whose names match.

    An encoder-decoder reads the target word for word; without one it writes its own first, with the same changes.
    `gradients` keeps the graph, so that torch.autograd.grad can go from any tensor to any other before it; the fused
    kernels then make way for the spelled-out sums, which agree to about 1e-5, and tensors stay on the model's device.
    """
    with patch(run, changes or {}):
        reading = read(run, text, target)
    return capture(run, reading, changes or {}, only, gradients)


def capture(
    run: Run,
    reading: Reading,
    changes: Changes,
    only: Sequence[str],
    gradients: bool,
    known: Mapping[str, Tensor] = EMPTY,
) -> Trace:
    """One pass of ids through the model, watched; blocks whose tensors are known already are not computed."""
    names = choose(names_of(run.model, run.recipe.model), only)
    seen = {name: known[name] for name in names if name in known}
    with ExitStack() as looking:
        looking.enter_context(patch(run, changes))
        looking.enter_context(watched(run.model, names, seen, gradients))  # after the patch: sees what has changed
        looking.enter_context(skipped(run, known))
        looking.enter_context(uncompiled(run.model))
        looking.enter_context(torch.set_grad_enabled(gradients))
        looking.enter_context(suppress(Enough))
        run.model(*reading.inputs(run.device))
    return Trace(run, reading, changes, seen)


class Enough(Exception):  # noqa: N818 - nothing is wrong
    """All that was asked for has been seen: what the model would compute after it is left out."""


@contextmanager
def watched(model: nn.Module, names: Sequence[str], seen: dict[str, Tensor], gradients: bool) -> Iterator[None]:
    """Fill `seen` with what the named modules give."""
    with HOOKS, ExitStack() as undo:
        for name in names:

            def keep(_module: nn.Module, _inputs: Any, output: Tensor, name: str = name) -> Tensor | None:
                if not gradients:
                    seen[name] = output.detach().cpu()
                    if len(seen) == len(names):
                        raise Enough
                    return None
                if kind_of(name) == "embedding":
                    output = output.detach().requires_grad_()
                seen[name] = output.view_as(output)  # a replacement, so that gradients pass through it
                return seen[name]

            undo.callback(model.get_submodule(name).register_forward_hook(keep).remove)
        yield


@contextmanager
def skipped(run: Run, known: Mapping[str, Tensor]) -> Iterator[None]:
    """Blocks whose tensors are known give what they gave, without computing it."""
    with ExitStack() as undo:
        for name in {block_of(name) for name in known}:
            given = known[block_output(name)].to(run.device)
            inside = vars(run.model.get_submodule(name))
            inside["forward"] = lambda *_, given=given: given
            undo.callback(inside.pop, "forward")
        yield


def uncompiled(model: nn.Module) -> Any:
    """Compiled blocks step back meanwhile: hooks that come after compilation would not fire."""
    compiled = any(module._compiled_call_impl is not None for module in model.modules())
    return torch.compiler.set_stance("force_eager") if compiled else nullcontext()


@lru_cache(maxsize=4)
def vocabulary(tokenizer: Tokenizer, size: int) -> tuple[str, ...]:
    """Every token as readable text; a model may have rows that its tokenizer never uses."""
    return tuple(tokenizer.piece(number) if number < tokenizer.vocab else f"unused {number}" for number in range(size))
