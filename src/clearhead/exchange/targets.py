"""The targets of `clearhead export`: each is one entry here, and one function."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Literal

Target = Literal["huggingface", "onnx", "onnx-int8", "torch", "aotinductor", "torchscript", "gguf", "compact"]

TARGETS: dict[Target, str] = {  # name -> module:function(run folder, new folder), which writes it and returns notes
    "huggingface": "huggingface:export",  # opened by `transformers`
    "onnx": "onnx:export",  # for onnxruntime
    "onnx-int8": "onnx:export_int8",
    "torch": "torch_programs:export",  # torch.export
    "aotinductor": "torch_programs:export_compiled",
    "torchscript": "torch_programs:export_torchscript",
    "gguf": "gguf:export",  # for llama.cpp
    "compact": "compact:export",  # a run of a quarter of the size
}


def export_run(run: Path, folder: Path, target: Target) -> list[str]:
    """Write a run into a new folder in the format of the target; return notes for the user."""
    module, _, function = TARGETS[target].partition(":")
    notes: list[str] = getattr(import_module(f"clearhead.exchange.{module}"), function)(run, folder)
    return notes
