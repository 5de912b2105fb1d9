"""An architecture of `transformers`: which settings and tensors of it are which of ours.

Everything about an architecture is a table: how each setting is called in config.json, and how each tensor is called in
the weights. Both directions read the same tables.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from clearhead.config import ModelConfig, UserError, require
from clearhead.runs import Tensors

Json = dict[str, Any]
NOT_THERE = object()


@dataclass(frozen=True)
class Key:
    """A setting of config.json that is one of ours."""

    name: str
    default: Any = NOT_THERE  # what is meant if config.json does not have it
    values: Mapping[Any, Any] | None = None  # their value -> ours; None: the same values

    def read(self, config: Json) -> Any:
        """Our value of the setting."""
        value = config.get(self.name)
        value = self.default if value is None else value
        require(value is not NOT_THERE, f"config.json has no {self.name}: it is damaged, or not of this architecture")
        if self.values is None:
            return value
        known = isinstance(value, str | bool) and value in self.values
        require(known, f"{self.name} = {value!r} cannot be expressed here; known: {', '.join(map(str, self.values))}")
        return self.values[value]

    def write(self, value: Any, setting: str) -> Any:
        """Their value of the setting."""
        if self.values is None:
            return value
        theirs = [their for their, our in self.values.items() if our == value]
        known = ", ".join(dict.fromkeys(map(repr, self.values.values())))
        require(bool(theirs), f"model.{setting} = {value!r} cannot be expressed: it would have to be {known}")
        return theirs[0]


@dataclass(frozen=True)
class Stored:
    """How one of our matrices is stored in their file."""

    name: str  # of their module; {i} is the number of a block
    transposed: bool = False  # GPT-2: one column for each output
    part: int = 0  # GPT-2: queries, keys and values are parts of one matrix
    parts: int = 1
    skipped: int = 0  # RoBERTa: rows before the first one that is used


def no_settings(_: Any) -> dict[str, Any]:
    """Nothing beyond the table."""
    return {}


@dataclass(frozen=True)
class Architecture:
    """One `model_type` of `transformers`."""

    model_type: str
    tasks: Mapping[str, str]  # each class of it that can be exchanged -> the task of the run
    keys: Mapping[str, Key]  # our setting -> theirs
    fixed: Mapping[str, Any]  # our settings that are the same in all models of the architecture
    names: Mapping[str, str | Stored]  # our module or parameter -> theirs; {i} is the number of a block
    prefix: str = ""  # of all names of theirs but those of the head; a model without a head is stored without it
    unused: tuple[str, ...] = ()  # patterns of tensors that carry nothing: buffers, copies of tied weights
    required: Mapping[str, Any] = field(default_factory=dict)  # settings of theirs that only have one value here
    read_more: Callable[[Json], dict[str, Any]] = no_settings  # what of ours takes more than a table
    write_more: Callable[[ModelConfig], dict[str, Any]] = no_settings  # the same for export
    by_task: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # further fixed settings of a task
    halves: bool = False  # positions are all sines, then all cosines: channels are reordered

    # --- settings -----------------------------------------------------------------------------------------------------

    def fixed_for(self, task: str) -> dict[str, Any]:
        """The settings that are the same in all models for a task."""
        return {**self.fixed, **self.by_task.get(task, {})}

    def read_settings(self, config: Json, task: str) -> ModelConfig:
        """Our settings of a model; what cannot be expressed is refused with its name."""
        for name, needed in self.required.items():
            value = config.get(name)
            require(
                value is None or value == needed,
                f"{name} = {value!r} cannot be expressed here: {self.model_type} models need {name} = {needed!r}",
            )
        values = {setting: key.read(config) for setting, key in self.keys.items()}
        values |= self.fixed_for(task) | self.read_more(config)
        if values.get("kv_heads") == values["heads"]:
            values["kv_heads"] = 0
        return ModelConfig(**values)

    def write_settings(self, config: ModelConfig, task: str) -> Json:
        """The contents of config.json; a setting that the architecture does not have is refused with its name."""
        for setting, needed in self.fixed_for(task).items():
            value = getattr(config, setting)
            require(
                value == needed or (setting in IRRELEVANT and IRRELEVANT[setting](config)),
                f"model.{setting} = {value!r} cannot be expressed in a {self.model_type} model, where it is {needed!r}",
            )
        expressed = self.keys.keys() | self.fixed_for(task).keys()
        written = {key.name: key.write(effective(config, setting), setting) for setting, key in self.keys.items()}
        written |= dict(self.required) | self.write_more(config)
        default = ModelConfig(family=config.family, head=config.head)
        for setting, value in vars(config).items():
            known = setting in expressed or setting in IRRELEVANT or value == getattr(default, setting)
            known = known or setting in self.read_more(written)
            require(known, f"model.{setting} = {value!r} cannot be expressed in a {self.model_type} model")
        return written

    # --- weights ------------------------------------------------------------------------------------------------------

    def locate(self, parameter: str) -> Stored:
        """Where one of our parameters is stored."""
        number = re.search(r"(?<=\.blocks\.)\d+", parameter)
        pattern = re.sub(r"(?<=\.blocks\.)\d+", "{i}", parameter)
        module, _, suffix = pattern.rpartition(".")
        stored = self.names.get(pattern) or self.names.get(module)
        if stored is None:
            raise UserError(f"{self.model_type} models have no {parameter}")
        stored = stored if isinstance(stored, Stored) else Stored(stored)
        name = stored.name if pattern in self.names else f"{stored.name}.{suffix}"
        name = name.replace("{i}", number[0] if number else "")
        return Stored(name, stored.transposed and suffix == "weight", stored.part, stored.parts, stored.skipped)

    def read_weights(self, shapes: Mapping[str, torch.Size], theirs: Mapping[str, Tensor]) -> Tensors:
        """Our parameters of these shapes, in float32; tensors that have no place in the model are refused."""
        bare = self.prefix and not any(name.startswith(self.prefix) for name in theirs)
        used = set[str]()
        found = {}
        for parameter, shape in shapes.items():
            stored = self.locate(parameter)
            name = stored.name.removeprefix(self.prefix) if bare else stored.name
            require(name in theirs, f"the weights have no {name}: the file is incomplete, or of another model")
            used.add(name)
            tensor = unpack(theirs[name], stored)
            tensor = tensor if tensor.shape == shape or tensor.numel() != shape.numel() else tensor.reshape(shape)
            require(
                tensor.shape == shape,
                f"weights {name} are {tuple(tensor.shape)}, and config.json says {tuple(shape)}",
            )
            found[parameter] = tensor.to(torch.float32, copy=True).contiguous()
        extra = [name for name in theirs if name not in used and not self.is_unused(name)]
        require(not extra, f"the weights {', '.join(sorted(extra)[:3])} have no place in this model")
        return found

    def is_unused(self, name: str) -> bool:
        """Whether a tensor of theirs carries nothing that the model needs."""
        return any(re.search(pattern, name) for pattern in self.unused)

    def write_weights(self, ours: Mapping[str, Tensor]) -> Tensors:
        """Their tensors."""
        found: dict[str, list[Tensor]] = {}
        for parameter, tensor in ours.items():
            stored = self.locate(parameter)
            parts = found.setdefault(stored.name, [torch.empty(0)] * stored.parts)
            parts[stored.part] = pack(tensor, stored)
        return {name: torch.cat(parts, dim=-1) if len(parts) > 1 else parts[0] for name, parts in found.items()}


def effective(config: ModelConfig, setting: str) -> Any:
    """The value of a setting, where 0 stands for another setting's."""
    value = getattr(config, setting)
    same_as = {"kv_heads": "heads", "encoder_layers": "layers"}
    return getattr(config, same_as[setting]) if setting in same_as and not value else value


def unpack(tensor: Tensor, stored: Stored) -> Tensor:
    """Our parameter, from the tensor that it is stored in."""
    tensor = tensor.mT if stored.transposed else tensor
    return tensor.chunk(stored.parts)[stored.part][stored.skipped :]


def pack(tensor: Tensor, stored: Stored) -> Tensor:
    """The tensor, or the part of one, that stores our parameter; rows that are not used are 0."""
    tensor = torch.cat([tensor.new_zeros(stored.skipped, *tensor.shape[1:]), tensor])
    return (tensor.mT if stored.transposed else tensor).contiguous()


def block(stack: str, theirs: str, modules: Mapping[str, str | Stored]) -> dict[str, str | Stored]:
    """The names of the modules of a block, with those of the block before them."""
    named: dict[str, str | Stored] = {}
    for our, their in modules.items():
        stored = their if isinstance(their, Stored) else Stored(their)
        whole = Stored(f"{theirs}.{stored.name}", stored.transposed, stored.part, stored.parts, stored.skipped)
        named[f"{stack}.blocks.{{i}}.{our}"] = whole
    return named


# Settings that change nothing in some models: with other positions, without dropout at inference, ...
IRRELEVANT: Mapping[str, Callable[[ModelConfig], bool]] = {
    "rotary_base": lambda config: config.position != "rotary",
    "max_length": lambda config: config.position != "learned",
    "dropout": lambda _: True,
    "attention_dropout": lambda _: True,
    "tied": lambda config: config.head != "vocabulary",
    "classes": lambda _: True,
}


def closest(architectures: Iterable[Architecture], config: ModelConfig, task: str) -> tuple[Architecture, Json]:
    """The first architecture that can express a model, and its config.json; the error is that of the nearest one."""
    problems: list[str] = []
    for architecture in architectures:
        if task in architecture.tasks.values() and architecture.fixed["family"] == config.family:
            try:
                return architecture, architecture.write_settings(config, task)
            except UserError as error:
                problems.append(str(error))
    raise UserError(
        problems[0] if problems else f"data.task = {task!r}: no architecture of transformers is known for it"
    )
