"""Trace: one forward pass of a text through a run's model, with every named intermediate tensor.

Tracing changes no bit of the output: what a fused kernel does not return is computed in addition to it.
Shapes are those of the table in docs/architecture.md, with a batch of one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor, nn

from clearhead.inspect.inputs import ModelInputs, encode_inputs
from clearhead.inspect.names import axes_of, choose, names_of, side_of, unknown
from clearhead.inspect.patch import HOOKS, Changes, parameters_of, patch
from clearhead.inspect.paths import block_of, block_output, kind_of
from clearhead.renamed import old_names
from clearhead.runs import Run
from clearhead.text.tokenizer import Tokenizer

EVERYTHING = ("*",)
EMPTY: Mapping[str, Tensor] = MappingProxyType({})

__getattr__ = old_names(__name__, Named="NamedTensor")


@dataclass(frozen=True)
class NamedTensor:
    """One intermediate tensor, with the meaning of its axes."""

    name: str
    value: Tensor  # on the CPU, float32 at least
    axes: tuple[str, ...]  # ("batch", "head", "query", "key")
    labels: tuple[tuple[str, ...], ...]  # for each axis, one for each index: tokens, "head 0", channel numbers
    sides: tuple[str, ...]  # which text's tokens an axis counts: "source", "target", or "" for neither


class Trace(Mapping[str, Tensor]):
    """The named intermediate tensors of one pass, in the order of computing. As a context manager, it frees them."""

    def __init__(self, run: Run, inputs: ModelInputs, changes: Changes, tensors: dict[str, Tensor]) -> None:
        self.run = run
        self.inputs = inputs
        self.changes = changes
        self._tensors = tensors

    def __repr__(self) -> str:
        return f"Trace({self.text!r}, {len(self)} tensors; print(.tree()) lists them)"

    def _repr_html_(self) -> str:
        """What a notebook shows of it."""
        from clearhead.inspect.notebook import notebook_html

        return notebook_html(self)

    @property
    def text(self) -> str:
        """The text that was read."""
        return self.inputs.text

    @property
    def target_text(self) -> str:
        """The target: given, or written by the model."""
        return self.inputs.target

    @property
    def tokens(self) -> dict[str, tuple[str, ...]]:
        """The tokens of each side as readable text: "source", "target"."""
        return self.inputs.tokens

    @property
    def ids(self) -> dict[str, tuple[int, ...]]:
        """The token ids of each side."""
        return self.inputs.ids

    def __getitem__(self, name: str) -> Tensor:
        if name not in self._tensors:
            raise unknown("trace", name, self.names())
        value = self._tensors[name]
        return value.to(torch.promote_types(value.dtype, torch.float32))

    def __contains__(self, name: object) -> bool:
        return name in self._tensors

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    def __enter__(self) -> Trace:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Free all tensors."""
        self._tensors.clear()

    def names(self) -> list[str]:
        """The names of all tensors, in the order of computing."""
        return list(self._tensors)

    def bytes(self) -> int:
        """How much memory the tensors take."""
        return sum(tensor.numel() * tensor.element_size() for tensor in self._tensors.values())

    def tensors(self) -> Mapping[str, Tensor]:
        """The tensors as they are kept: with the precision and on the device of the capture."""
        return self._tensors

    def named(self, name: str) -> NamedTensor:
        """A tensor with its axes and labels."""
        value = self[name]
        config = self.run.recipe.model
        axes = self.axes(name)
        sides = tuple(side_of(name, axis, config) for axis in axes)
        counted = zip(axes, sides, value.shape, strict=True)
        labels = tuple(self.tokens[side] if side else self.labels(axis, size) for axis, side, size in counted)
        return NamedTensor(name, value, axes, labels, sides)

    def axes(self, name: str) -> tuple[str, ...]:
        """What each axis of a tensor counts."""
        return axes_of(name, self[name].dim(), self.run.recipe.model)

    def labels(self, axis: str, size: int) -> tuple[str, ...]:
        """Labels for the indices of an axis that does not count tokens."""
        if axis == "word":
            return vocabulary(self.run.tokenizers.target, size)
        if axis == "class" and self.run.labels:
            return self.run.labels
        if axis == "part":
            return ("cosine", "sine")
        if axis == "head":
            shared = self.run.recipe.model.heads // size  # query heads that share one key/value head
            groups = [range(n * shared, (n + 1) * shared) for n in range(size)]
            return tuple(f"heads {group[0]}–{group[-1]}" if shared > 1 else f"head {group[0]}" for group in groups)
        return tuple(map(str, range(size)))

    def tree(self) -> str:
        """All names with their shapes, as an indented list."""
        lines: list[str] = []
        above: list[str] = []
        for name in self._tensors:
            words = name.split(".")
            for depth, word in enumerate(words[:-1]):
                if above[: depth + 1] != words[: depth + 1]:
                    lines.append("  " * depth + word)
                    above = words[: depth + 1]
            above = words[:-1]
            lines.append(f"{'  ' * len(above)}{words[-1]} {list(self._tensors[name].shape)}")
        return "\n".join(lines)

    def again(self, changes: Changes | None = None, only: Sequence[str] = EVERYTHING, gradients: bool = False) -> Trace:
        """Trace the same tokens again: with other changes, other tensors, or a graph for gradients."""
        return capture(self.run, self.inputs, self.changes if changes is None else changes, only, gradients)

    def unchanged_by(self, changes: Changes) -> dict[str, Tensor]:
        """The tensors of all blocks before the first that these changes affect; `capture` can reuse them.

        There are none if this trace has changes itself, or if something outside the blocks is changed.
        """
        names = names_of(self.run.model, self.run.recipe.model)
        known: dict[str, Tensor] = {}
        changed = {block_of(name) for name in choose([*names, *parameters_of(self.run)], changes)}
        if self.changes or not all(".blocks." in name for name in changed):
            return known
        for block, inside in groupby((name for name in names if ".blocks." in name), block_of):
            found = {name: self._tensors[name] for name in inside if name in self._tensors}
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
    """Run a text through the model and keep all intermediate tensors, or `only` those whose names match.

    An encoder-decoder without a target first writes its own, greedily, with the same changes. `gradients` keeps the
    graph, so that torch.autograd.grad can differentiate any tensor with respect to any earlier one; then the formulas
    are computed step by step instead of by fused kernels, which agrees to about 1e-5, and tensors stay on the model's
    device.
    """
    with patch(run, changes or {}):
        inputs = encode_inputs(run, text, target)
    return capture(run, inputs, changes or {}, only, gradients)


def capture(
    run: Run,
    inputs: ModelInputs,
    changes: Changes,
    only: Sequence[str],
    gradients: bool,
    known: Mapping[str, Tensor] = EMPTY,
) -> Trace:
    """Trace one forward pass of ids; a block is skipped if all tensors wanted from it are `known`."""
    names = choose(names_of(run.model, run.recipe.model), only)
    tensors = {name: known[name] for name in names if name in known}
    wanted = {block_of(name) for name in names if name not in known}
    if len(tensors) == len(names):
        return Trace(run, inputs, changes, tensors)
    with ExitStack() as stack:
        stack.enter_context(patch(run, changes))
        stack.enter_context(captured(run.model, names, tensors, gradients))  # after the patch: captures what it changed
        stack.enter_context(skipped(run, known, wanted))
        stack.enter_context(uncompiled(run.model))
        stack.enter_context(torch.set_grad_enabled(gradients))
        stack.enter_context(suppress(CaptureComplete))
        run.model(*inputs.tensors(run.device))
    return Trace(run, inputs, changes, tensors)


class CaptureComplete(Exception):  # noqa: N818 - not an error: it ends a forward pass whose rest is not needed
    """Raised to end a forward pass once all requested tensors are captured."""


@contextmanager
def captured(model: nn.Module, names: Sequence[str], tensors: dict[str, Tensor], gradients: bool) -> Iterator[None]:
    """Inside the `with`, forward hooks fill `tensors` with the outputs of the named modules."""
    with HOOKS, ExitStack() as undo:
        for name in names:

            def keep(_module: nn.Module, _inputs: Any, output: Tensor, name: str = name) -> Tensor | None:
                if not gradients:
                    tensors[name] = output.detach().cpu()
                    if len(tensors) == len(names):
                        raise CaptureComplete
                    return None
                if kind_of(name) == "embedding":
                    output = output.detach().requires_grad_()
                tensors[name] = output.view_as(output)  # returned in place of the output, so gradients pass through it
                return tensors[name]

            undo.callback(model.get_submodule(name).register_forward_hook(keep).remove)
        yield


@contextmanager
def skipped(run: Run, known: Mapping[str, Tensor], wanted: Collection[str]) -> Iterator[None]:
    """Inside the `with`, blocks with a known output return it without computing it, except the wanted ones."""
    with ExitStack() as undo:
        for block in {block_of(name) for name in known if ".blocks." in name} - set(wanted):
            if block_output(block) not in known:
                continue
            output = known[block_output(block)].to(run.device)
            attributes = vars(run.model.get_submodule(block))
            attributes["forward"] = lambda *_, output=output: output
            undo.callback(attributes.pop, "forward")
        yield


def uncompiled(model: nn.Module) -> Any:
    """Inside the `with`, compiled blocks run in eager mode: hooks added after compilation would not fire."""
    compiled = any(module._compiled_call_impl is not None for module in model.modules())
    return torch.compiler.set_stance("force_eager") if compiled else nullcontext()


@lru_cache(maxsize=4)
def vocabulary(tokenizer: Tokenizer, size: int) -> tuple[str, ...]:
    """Every token as readable text; a model may have more rows than its tokenizer has tokens."""
    return tuple(tokenizer.piece(number) if number < tokenizer.vocab else f"unused {number}" for number in range(size))
