"""An architecture of `transformers`: how its settings and tensors correspond to ours.

Each is a table in architectures.toml: the name of each setting in config.json, and the name of each tensor in the
weights. Import and export read the same tables. conversions.py has what tables cannot express.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from clearhead.config import ModelConfig, UserError, require
from clearhead.exchange.source import Json
from clearhead.runs import Tensors
from clearhead.tasks import TASKS

NOT_THERE = object()


@dataclass(frozen=True)
class Key:
    """A setting of config.json that corresponds to one of ours."""

    name: str
    default: Any = NOT_THERE  # the value if config.json does not have it
    values: Mapping[Any, Any] | None = None  # their value -> ours; None: the same values

    def read(self, config: Json) -> Any:
        """Our value of the setting in config.json."""
        value = config.get(self.name)
        value = self.default if value is None else value
        require(value is not NOT_THERE, f"config.json has no {self.name}: it is damaged, or not of this architecture")
        if self.values is None:
            return value
        known = isinstance(value, str | bool) and value in self.values
        require(known, f"{self.name} = {value!r} cannot be expressed here; known: {', '.join(map(str, self.values))}")
        return self.values[value]

    def write(self, value: Any) -> Any:
        """Their value of the setting, NOT_THERE if there is none."""
        if self.values is None:
            return value
        return next((their for their, our in self.values.items() if our == value), NOT_THERE)

    def ours(self) -> list[str]:
        """The values of ours that can be written."""
        return [repr(value) for value in (self.values or {}).values()]


@dataclass(frozen=True)
class Stored:
    """How one of our matrices is stored in their file."""

    name: str  # of their module or tensor; {i} is the number of a block
    transposed: bool = False  # GPT-2: one column for each output
    part: int = 0  # GPT-2: queries, keys and values are parts of one matrix
    parts: int = 1
    skipped: int = 0  # RoBERTa: rows before the first one that is used


def no_settings(_config: Json | ModelConfig, _task: str) -> Json:
    """No settings beyond the table."""
    return {}


def as_they_are(tensors: Tensors, _config: ModelConfig) -> Tensors:
    """The tensors, unchanged."""
    return tensors


@dataclass(frozen=True)
class Architecture:
    """One `model_type` of `transformers`."""

    model_type: str
    tasks: Mapping[str, str]  # each class of it that can be exchanged -> the task of the run
    keys: Mapping[str, Key]  # our setting -> theirs
    fixed: Mapping[str, Any]  # our settings that are the same in all models of the architecture
    names: Mapping[str, Stored]  # our module or parameter -> theirs; {i} is the number of a block
    heads: Mapping[str, Mapping[str, Stored]] = field(default_factory=dict)  # tensors of the head, by model.head
    prefix: str = ""  # of all names of theirs but those of the head; a model without a head is stored without it
    unused: Sequence[str] = ()  # patterns of tensors that are not needed: buffers, copies of tied weights
    required: Mapping[str, Any] = field(default_factory=dict)  # settings of theirs that must have this value
    read_more: Callable[[Json, str], dict[str, Any]] = no_settings  # settings that a table cannot express, by task
    write_more: Callable[[ModelConfig, str], dict[str, Any]] = no_settings  # for export
    complete: Callable[[Tensors, ModelConfig], Tensors] = as_they_are  # tensors of theirs that we do not have
    by_head: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # further fixed settings, by model.head
    halves: bool = False  # positions are all sines, then all cosines: channels are reordered

    # --- settings -----------------------------------------------------------------------------------------------------

    def fixed_for(self, task: str) -> dict[str, Any]:
        """The settings that are the same in all models for a task."""
        return {**self.fixed, **self.by_head.get(TASKS[task].head, {})}

    def read_settings(self, config: Json, task: str) -> ModelConfig:
        """Our settings of a model; a setting that cannot be expressed is refused by name."""
        for name, needed in self.required.items():
            value = config.get(name)
            require(
                value is None or value == needed,
                f"{name} = {value!r} cannot be expressed here: {self.model_type} models need {name} = {needed!r}",
            )
        values = {setting: key.read(config) for setting, key in self.keys.items()}
        values |= self.fixed_for(task) | self.read_more(config, task)
        if values.get("kv_heads") == values["heads"]:
            values["kv_heads"] = 0
        return ModelConfig(**values)

    def problems(self, config: ModelConfig, task: str) -> list[str]:
        """The settings of a model that the architecture does not have, each with its value."""
        found = []
        fixed = self.fixed_for(task)
        usual = ModelConfig(family=config.family, head=config.head)
        try:
            more = self.read_more(self.write_settings(config, task), task)
        except UserError as error:
            return [str(error)] * len(vars(config))  # so many that it is not the nearest
        for setting, value in vars(config).items():
            key = self.keys.get(setting)
            if setting in IRRELEVANT and IRRELEVANT[setting](config):
                continue
            if key is not None and key.write(effective(config, setting)) is NOT_THERE:
                found.append(f"model.{setting} = {value!r} (it has {', '.join(dict.fromkeys(key.ours()))})")
            elif setting in fixed and value != fixed[setting]:
                found.append(f"model.{setting} = {value!r} (it has {fixed[setting]!r})")
            elif not (key or setting in fixed or setting in more or value == getattr(usual, setting)):
                found.append(f"model.{setting} = {value!r}")
        return found

    def write_settings(self, config: ModelConfig, task: str) -> Json:
        """The contents of config.json that describe the model."""
        values = {key.name: key.write(effective(config, setting)) for setting, key in self.keys.items()}
        return values | {"model_type": self.model_type, **self.required, **self.write_more(config, task)}

    # --- weights ------------------------------------------------------------------------------------------------------

    def locate(self, parameter: str, task: str) -> Stored:
        """Where one of our parameters is stored."""
        names = {**self.names, **self.heads.get(TASKS[task].head, {})}
        number = re.search(r"(?<=\.blocks\.)\d+", parameter)
        pattern = re.sub(r"(?<=\.blocks\.)\d+", "{i}", parameter)
        module, _, suffix = pattern.rpartition(".")
        stored = names.get(pattern) or names.get(module)
        if stored is None:
            raise UserError(f"{self.model_type} models have no {parameter}")
        name = stored.name if pattern in names else f"{stored.name}.{suffix}"
        name = name.replace("{i}", number[0] if number else "")
        return replace(stored, name=name, transposed=stored.transposed and suffix == "weight")

    def read_weights(self, shapes: Mapping[str, torch.Size], theirs: Mapping[str, Tensor], task: str) -> Tensors:
        """Our parameters of these shapes, in float32; tensors that have no place in the model are refused."""
        bare = self.prefix and not any(name.startswith(self.prefix) for name in theirs)
        used = set[str]()
        found = {}
        for parameter, shape in shapes.items():
            stored = self.locate(parameter, task)
            name = stored.name.removeprefix(self.prefix) if bare else stored.name
            name = name if name in theirs else former_name(name)
            require(name in theirs, f"the weights have no {name}: the file is incomplete, or of another model")
            used.add(name)
            tensor = unpack(theirs[name], stored)
            tensor = tensor if tensor.shape == shape or tensor.numel() != shape.numel() else tensor.reshape(shape)
            require(
                tensor.shape == shape,
                f"weights {name} are {tuple(tensor.shape)}, and config.json says {tuple(shape)}",
            )
            found[parameter] = self.reordered(parameter, tensor.to(torch.float32, copy=True)).contiguous()
        extra = [name for name in theirs if name not in used and not self.is_unused(name)]
        require(not extra, f"the weights {', '.join(sorted(extra)[:3])} have no place in this model")
        return found

    def is_unused(self, name: str) -> bool:
        """Whether the model does not need a tensor of theirs."""
        return any(re.search(pattern, name) for pattern in self.unused)

    def reordered(self, parameter: str, tensor: Tensor, back: bool = False) -> Tensor:
        """The parameter with its channels in our order, or back in theirs.

        Marian's position vectors have all sines first, then all cosines; ours alternate. Reordering the channels of the
        residual stream in every tensor does not change the output.
        """
        axis = stream_axis(parameter) if self.halves else None
        if axis is None:
            return tensor
        size = tensor.size(axis)
        order = torch.arange(size).view(2, -1).T.flatten()  # 0, size / 2, 1, size / 2 + 1, ...
        return tensor.index_select(axis, order.argsort() if back else order)

    def write_weights(self, ours: Mapping[str, Tensor], config: ModelConfig, task: str) -> Tensors:
        """Their tensors."""
        found: dict[str, list[Tensor]] = {}
        for parameter, tensor in ours.items():
            stored = self.locate(parameter, task)
            parts = found.setdefault(stored.name, [torch.empty(0)] * stored.parts)
            parts[stored.part] = pack(self.reordered(parameter, tensor, back=True), stored)
        whole = {name: torch.cat(parts, dim=-1) if len(parts) > 1 else parts[0] for name, parts in found.items()}
        bare = TASKS[task].head not in self.heads and self.prefix and self.fixed["family"] == "encoder-only"
        named = {name.removeprefix(self.prefix) if bare else name: tensor for name, tensor in whole.items()}
        return self.complete(named, config)


def effective(config: ModelConfig, setting: str) -> Any:
    """The value of a setting; where 0 means "as another setting", the value of that setting."""
    value = getattr(config, setting)
    if setting == "tied" and value == "all" and config.family != "encoder-decoder":
        return "output"  # there is no third table
    same_as = {"kv_heads": "heads", "encoder_layers": "layers"}
    return getattr(config, same_as[setting]) if setting in same_as and not value else value


def former_name(name: str) -> str:
    """The name of a norm's tensor in the first BERT models."""
    return name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")


def stream_axis(parameter: str) -> int | None:
    """The axis of a parameter that counts the channels of the residual stream."""
    module, _, kind = parameter.rpartition(".")
    last = module.rpartition(".")[2]
    if last in ("query", "key", "value", "gate", "up", "embedding", "project"):
        return 1 if kind == "weight" else None
    return 0 if last in ("out", "down", "norm") else None


def unpack(tensor: Tensor, stored: Stored) -> Tensor:
    """Our parameter, from the tensor that it is stored in."""
    tensor = tensor.mT if stored.transposed else tensor
    return tensor.chunk(stored.parts)[stored.part][stored.skipped :]


def pack(tensor: Tensor, stored: Stored) -> Tensor:
    """The tensor (or part of one) that stores our parameter; unused rows are 0."""
    tensor = torch.cat([tensor.new_zeros(stored.skipped, *tensor.shape[1:]), tensor])
    return (tensor.mT if stored.transposed else tensor).contiguous()


# Settings that may have no effect: they belong to other positions, to training, or to a part that the model lacks.
IRRELEVANT: Mapping[str, Callable[[ModelConfig], bool]] = {
    "rotary_base": lambda config: config.position != "rotary",
    "max_length": lambda config: config.position != "learned",
    "dropout": lambda _: True,
    "attention_dropout": lambda _: True,
    "token_dropout": lambda _: True,
    "tied": lambda config: config.head != "vocabulary",
    "pool": lambda config: config.head == "vocabulary",
    "head_bias": lambda config: (
        not config.head_bias and (config.head == "classes" or config.family == "encoder-decoder")
    ),  # written as zeros
    "kv_heads": lambda config: config.kv_heads == config.heads,
    "encoder_layers": lambda config: config.encoder_layers == config.layers,
}


def choose_architecture(architectures: Iterable[Architecture], config: ModelConfig, task: str) -> Architecture:
    """The first architecture that can express a model; if there is none, the error names what the nearest one lacks."""
    possible = [each for each in architectures if task in each.tasks.values() and each.fixed["family"] == config.family]
    require(bool(possible), f"data.task = {task!r}: no architecture of transformers is known for it")
    nearest = min(possible, key=lambda each: len(each.problems(config, task)))
    problems = nearest.problems(config, task)
    require(not problems, f"a {nearest.model_type} model, which is the nearest, has no {'; no '.join(problems)}")
    return nearest
