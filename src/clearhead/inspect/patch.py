"""Changes: scale, replace, shuffle or knock out any named tensor or parameter while the model runs."""

from __future__ import annotations

import fnmatch
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from clearhead.config import ModelConfig, UserError, require, suggest
from clearhead.inspect.names import axes_of, choose, names_of
from clearhead.runs import Run

Operation = Literal["scale", "replace", "shuffle"]
HOOKS = threading.RLock()  # held while hooks are registered on a model, which all threads share


@dataclass(frozen=True)
class Change:
    """An operation on a tensor, everywhere or `at` some indices of its axes: {"head": [2], "query": [0, 1]}."""

    kind: Operation
    value: Any  # scale: the factor; replace: numbers that broadcast; shuffle: a permutation, or a seed
    at: Mapping[str, Sequence[int]] = field(default_factory=dict)

    def __call__(self, tensor: Tensor, axes: Sequence[str]) -> Tensor:
        """The changed tensor."""
        if self.kind == "shuffle":
            return shuffled(tensor, axes, self.value)
        value = fitted(self.numbers(tensor), tensor)
        changed = tensor * value if self.kind == "scale" else value
        return torch.where(chosen(tensor, axes, self.at), changed.to(tensor.dtype), tensor)

    def numbers(self, like: Tensor) -> Tensor:
        """The value as a tensor, at least as precise as the tensor that it changes."""
        precision = torch.promote_types(like.dtype, torch.float32)
        try:
            return torch.as_tensor(self.value, dtype=precision, device=like.device)
        except (ValueError, TypeError, RuntimeError) as error:
            raise UserError(
                f"value {self.value!r:.80}: expected a number, or lists of numbers of one length"
            ) from error


def scale(factor: float, **at: int | Sequence[int]) -> Change:
    """Multiply by a factor, everywhere or at some indices, such as head=1."""
    return Change("scale", factor, places(at))


def knock_out(**at: int | Sequence[int]) -> Change:
    """Set to zero, everywhere or at some indices, such as head=2; in a mask, that masks a key."""
    return scale(0.0, **at)


def replace(value: Any, **at: int | Sequence[int]) -> Change:
    """Set to other numbers, everywhere or at some indices, such as row=5; in a mask, 1 unmasks a key."""
    return Change("replace", value, places(at))


def shuffle(order: int | Sequence[int] = 0) -> Change:
    """Permute the tokens of a tensor, such as `encoder.position`: by a given order, or by one drawn from a seed."""
    return Change("shuffle", order)


def places(at: Mapping[str, int | Sequence[int]]) -> dict[str, list[int]]:
    """Indices as lists."""
    return {axis: [where] if isinstance(where, int) else list(where) for axis, where in at.items()}


def chosen(tensor: Tensor, axes: Sequence[str], at: Mapping[str, Sequence[int]]) -> Tensor:
    """Where a change applies, as a boolean mask that broadcasts to the tensor."""
    where = torch.ones((1,) * tensor.dim(), dtype=torch.bool, device=tensor.device)
    for axis, indices in at.items():
        require(axis in axes, f"at {axis} = {list(indices)}: this tensor has no such axis; {suggest(axis, axes)}")
        number = axes.index(axis)
        size = tensor.size(number)
        for index in indices:
            require(-size <= index < size, f"at {axis} = {index}: this tensor has {size}; count from 0")
        along = torch.zeros(size, dtype=torch.bool, device=tensor.device)
        along[list(indices)] = True
        where = where & along.view([-1 if n == number else 1 for n in range(tensor.dim())])
    return where


def fitted(value: Tensor, tensor: Tensor) -> Tensor:
    """A value, broadcast to the shape of the tensor that it changes."""
    try:
        return value.expand_as(tensor)
    except RuntimeError as error:
        raise UserError(
            f"a value of shape {list(value.shape)} does not fit a tensor of shape {list(tensor.shape)}; "
            "give one number, or as many as its last axes have"
        ) from error


def shuffled(tensor: Tensor, axes: Sequence[str], order: int | Sequence[int]) -> Tensor:
    """The tensor with its tokens permuted."""
    require("token" in axes, f"only a tensor with a token axis can be shuffled, not one with {', '.join(axes)}")
    number = axes.index("token")
    count = tensor.size(number)
    if isinstance(order, int):
        order = torch.randperm(count, generator=torch.Generator().manual_seed(order)).tolist()
    require(
        sorted(order) == list(range(count)),
        f"shuffle {list(order)}: an order of {count} tokens contains each of 0 to {count - 1} once",
    )
    return tensor.index_select(number, torch.tensor(order, device=tensor.device))


AnyChange = Change | Tensor | Callable[[Tensor], Tensor]
Changes = Mapping[str, AnyChange | Sequence[AnyChange]]  # by name, or by pattern: "decoder.blocks.*.cross_attention"


def apply(changes: Sequence[AnyChange], tensor: Tensor, axes: Sequence[str]) -> Tensor:
    """The tensor after all changes, in their order."""
    for change in changes:
        if isinstance(change, Change):
            tensor = change(tensor, axes)
        else:
            tensor = fitted(change, tensor).to(tensor) if isinstance(change, Tensor) else change(tensor)
    return tensor


@contextmanager
def patch(run: Run, changes: Changes) -> Iterator[None]:
    """Inside the `with`, the run's model computes with these changes; afterwards it is as before."""
    tensors = names_of(run.model, run.recipe.model)
    choose([*tensors, *parameters_of(run)], changes)
    with edited(run, changes), ExitStack() as undo:
        for pattern, some in changes.items():
            for name in fnmatch.filter(tensors, pattern):
                undo.callback(hook(run.model, name, as_list(some), run.recipe.model).remove)
        yield


def parameters_of(run: Run) -> list[str]:
    """The names of all parameters; a tied one has several."""
    return [name for name, _ in run.model.named_parameters(remove_duplicate=False)]


def as_list(some: AnyChange | Sequence[AnyChange]) -> Sequence[AnyChange]:
    """One change as a list."""
    return some if isinstance(some, Sequence) else [some]


def hook(model: nn.Module, name: str, changes: Sequence[AnyChange], config: ModelConfig) -> RemovableHandle:
    """Change the output of a module, until the hook is removed."""

    def change(_module: nn.Module, _inputs: Any, output: Tensor) -> Tensor:
        try:
            return apply(changes, output, axes_of(name, output.dim(), config))
        except UserError as error:
            raise UserError(f"{name}: {error}") from error

    return model.get_submodule(name).register_forward_hook(change)


@contextmanager
def edited(run: Run, changes: Changes) -> Iterator[None]:
    """Inside the `with`, the changes of parameters apply; a tied parameter is changed under all its names."""
    with HOOKS, ExitStack() as undo:
        for pattern, some in changes.items():
            names = fnmatch.filter(parameters_of(run), pattern)
            for parameter in dict.fromkeys(map(run.model.get_parameter, names)):  # a tied one has several names
                before = parameter.detach().clone()
                undo.callback(set_values, parameter, before)
                set_values(parameter, apply(as_list(some), before, ("row", "column")[: before.dim()]))
        yield


@torch.no_grad()
def set_values(parameter: nn.Parameter, values: Tensor) -> None:
    """Overwrite a parameter in place."""
    parameter.copy_(values)


def compare(before: Mapping[str, Tensor], after: Mapping[str, Tensor]) -> dict[str, float]:
    """The relative change of each tensor between two traces of the same tokens, in the order of computing.

    That is the norm of the difference over the norm of the tensor before: 0 is no change.
    """
    changed = {}
    for name, tensor in before.items():
        if name in after:
            shapes = [list(tensor.shape), list(after[name].shape)]
            require(shapes[0] == shapes[1], f"{name} is {shapes[0]} and {shapes[1]}: compare the same tokens")
            changed[name] = float((after[name] - tensor).norm() / tensor.norm().clamp(min=1e-12))
    return changed


def to_json(changes: Changes) -> dict[str, list[dict[str, Any]]]:
    """Changes as JSON data; functions and tensors cannot be written as such."""
    plain: dict[str, list[dict[str, Any]]] = {}
    for name, value in changes.items():
        for change in value if isinstance(value, Sequence) else [value]:
            require(isinstance(change, Change), f"{name}: a function or a tensor cannot be written as JSON; use Change")
            assert isinstance(change, Change)
            row = {"kind": change.kind, "value": change.value, "at": {a: list(i) for a, i in change.at.items()}}
            plain.setdefault(name, []).append(row)
    return plain


def from_json(plain: Any) -> dict[str, list[Change]]:
    """Changes from JSON data, refused unless it has the form that `to_json` gives."""
    form = 'changes look like {"NAME": [{"kind": "scale", "value": 0, "at": {"head": [2]}}]}'
    require(isinstance(plain, dict) and all(isinstance(rows, list) for rows in plain.values()), form)
    return {name: [change_from(row, form) for row in rows] for name, rows in plain.items()}


def change_from(row: Any, form: str) -> Change:
    """One change from JSON data."""
    require(isinstance(row, dict) and {"kind", "value"} <= row.keys() <= {"kind", "value", "at"}, form)
    kind = row["kind"]
    value = row["value"]
    at = row.get("at", {})
    require(kind in get_args(Operation), f"kind {kind!r}: {suggest(str(kind), get_args(Operation))}")
    require(are_numbers(value), f"value {value!r}: expected a number, or a list of numbers")
    require(isinstance(at, dict) and all(map(are_indices, at.values())), f"at {at!r}: expected lists of whole numbers")
    order = kind != "shuffle" or type(value) is int or are_indices(value)
    require(order, f"value {value!r}: shuffle needs an order as a list of whole numbers, or a whole number as seed")
    return Change(kind, value, at)


def are_numbers(value: Any) -> bool:
    """Whether a value is a number, or a list of values that are."""
    return all(map(are_numbers, value)) if isinstance(value, list) else isinstance(value, int | float)


def are_indices(value: Any) -> bool:
    """Whether a value is a list of whole numbers."""
    return isinstance(value, list) and all(type(index) is int for index in value)
