"""Runs as ONNX programs, for onnxruntime and other engines; with weights in float32 or in int8."""

from __future__ import annotations

from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from clearhead.config import require
from clearhead.exchange.programs import Program, quiet, write_programs

if TYPE_CHECKING:
    from onnx import GraphProto

PACKAGES = ("onnx", "onnxscript", "onnxruntime")


def export(run: Path, folder: Path) -> list[str]:
    """Write a run as ONNX programs with weights in float32."""
    require_packages()
    write_programs(run, folder, write_float32)
    return []


def export_int8(run: Path, folder: Path) -> list[str]:
    """Write a run as ONNX programs with matrices and embeddings in int8."""
    require_packages()
    write_programs(run, folder, write_int8)
    return ["weights and inputs of matrices are quantised to int8: outputs are close to those of the run"]


def require_packages() -> None:
    """Refuse to export without the packages of the extra."""
    missing = [name for name in PACKAGES if find_spec(name) is None]
    require(not missing, f"--to onnx needs {', '.join(missing)}: pip install 'clearhead[onnx]'")


def write_float32(program: Program, folder: Path) -> None:
    """Write NAME.onnx; weights of more than 2 GB are in a file beside it."""
    exported = program.exported()
    with quiet():
        written = torch.onnx.export(
            exported,
            dynamo=True,
            input_names=list(program.inputs),
            output_names=list(program.outputs),
            dynamic_shapes=program.axes,  # only their names: the program is exported
            verbose=False,
        )
    assert written is not None
    written.save(str(folder / f"{program.name}.onnx"))


def write_int8(program: Program, folder: Path) -> None:
    """Write NAME.onnx with 8-bit weights, a scale for each output channel, and dynamically quantised activations.

    Weights are unsigned: with signed ones, x86 processors without VNNI add products in 16 bits, which can overflow.
    """
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    write_float32(program, folder)
    path = folder / f"{program.name}.onnx"
    model = onnx.load(path)
    del model.graph.value_info[:]  # shapes in float32; those that differ would stop the quantisation
    copy_shared_matrices(model.graph)
    with quiet():
        quantize_dynamic(model, path, per_channel=True, weight_type=QuantType.QUInt8)


def copy_shared_matrices(graph: GraphProto) -> None:
    """Copy the matrix of each Gemm node that another node reads as well: tied embeddings, read by a Gather node.

    The quantiser transposes the matrix of a Gemm node in place, also for the other nodes.
    """
    uses = Counter(name for node in graph.node for name in node.input)
    matrices = {each.name: each for each in graph.initializer}
    for node in graph.node:
        if node.op_type == "Gemm" and uses[node.input[1]] > 1 and node.input[1] in matrices:
            copy = graph.initializer.add()
            copy.CopyFrom(matrices[node.input[1]])
            copy.name = f"{node.input[1]} of {node.name}"
            node.input[1] = copy.name
