"""Hugging Face both ways: a folder of `transformers` becomes a run, a run becomes such a folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from clearhead.config import DataConfig, ModelConfig, Recipe, UserError, require
from clearhead.exchange.architecture import Architecture
from clearhead.exchange.decoders import DECODERS
from clearhead.exchange.source import WeightFiles, find_source, read_json
from clearhead.exchange.tokenizers import read_tokenizers
from clearhead.files import hidden_folder, publish_folder
from clearhead.model import build_model
from clearhead.recipes import write_recipe
from clearhead.runs import Facts, hash_tokenizers, write_weights

Json = dict[str, Any]

ARCHITECTURES = (*DECODERS,)


def import_model(source: str, run: Path) -> list[str]:
    """Make a run of a model; return what a user should know about it."""
    require(not run.exists() or not any(run.iterdir()), f"{run} is not empty: choose another folder for the run")
    folder = find_source(source)
    try:
        config = read_json(folder / "config.json")
        require(bool(config), "there is no config.json")
        architecture, kind = find_architecture(config)
        task = architecture.tasks[kind]
        model = architecture.read_settings(config, task)
        tokenizers = read_tokenizers(folder, config, model)
        weights = architecture.read_weights(shapes_of(model), WeightFiles(folder))
    except UserError as error:
        raise UserError(f"{source} cannot be imported: {error}") from error
    longest = model.max_length
    data = DataConfig(task=task, max_length=longest, batch_tokens=max(longest, DataConfig.batch_tokens))
    recipe = Recipe(name=run.resolve().name, about=f"imported from {source} ({kind})", model=model, data=data)
    run.parent.mkdir(parents=True, exist_ok=True)
    with hidden_folder(run) as hidden:
        write_recipe(recipe, hidden / "run.toml")
        tokenizers.save(hidden)
        Facts(tokenizers=hash_tokenizers(hidden)).write(hidden / "facts.json")
        write_weights(weights, hidden / "model.safetensors")
        publish_folder(hidden, run)
    return []


def find_architecture(config: Json) -> tuple[Architecture, str]:
    """The architecture of a model, and the name of its class."""
    model_type = config.get("model_type")
    known = {architecture.model_type: architecture for architecture in ARCHITECTURES}
    require(model_type in known, f"model_type = {model_type!r} is not known; known: {', '.join(known)}")
    require("auto_map" not in config, "auto_map: the model needs Python code of its own, which is never run")
    require(
        "quantization_config" not in config, "quantization_config: quantised weights cannot be read; take the original"
    )
    architecture = known[str(model_type)]
    classes = config.get("architectures") or list(architecture.tasks)
    found = [name for name in classes if name in architecture.tasks]
    require(
        bool(found), f"architectures = {classes!r} cannot be expressed here; known: {', '.join(architecture.tasks)}"
    )
    return architecture, found[0]


def shapes_of(config: ModelConfig) -> dict[str, torch.Size]:
    """The shapes of a model's parameters, without their memory."""
    with torch.device("meta"):
        model = build_model(replace(config, dropout=0.0))
    return {name: parameter.shape for name, parameter in model.named_parameters()}
