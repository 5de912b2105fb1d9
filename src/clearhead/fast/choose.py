"""Device dispatch: which fast path for which model and device. Other rooms import only this file of `fast`.

Each path computes the same as the plain code that it replaces. A model whose modules are observed or changed by hooks
decodes by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import torch
from torch import nn

from clearhead.config import TrainConfig, Weights
from clearhead.fast.cpu.decoder import DirectModel, direct_decoder
from clearhead.fast.cpu.matrices import MIN_REORDERED_WEIGHTS, has_bfloat16, pack
from clearhead.fast.int8 import quantise, quantise_rows
from clearhead.fast.kernels import usable
from clearhead.fast.torch_private import scale_and_add
from clearhead.model import DecoderOnly, EncoderDecoder, EncoderOnly, Model
from clearhead.model.attention import Attention

if TYPE_CHECKING:
    from clearhead.device import Machine
    from clearhead.fast.gpu.recorded import RecordingModel, UnrecordedModel
    from clearhead.train.loss import Objective
    from clearhead.train.state import TrainState
    from clearhead.train.step import Step

__all__ = [
    "MIN_REORDERED_WEIGHTS",
    "decoder_for",
    "has_bfloat16",
    "quantise_rows",
    "scale_and_add",
    "speed_up_training",
    "step_for",
    "store_matrices",
    "unrecorded_decoder_for",
]

M = TypeVar("M", EncoderDecoder, DecoderOnly)


# --- decoding ---------------------------------------------------------------------------------------------------------


def store_matrices(model: Model, weights: Weights) -> None:
    """`--weights`: store the float32 matrices of a model in this precision."""
    on_gpu = next(model.parameters()).device.type == "cuda"
    if not on_gpu or weights == "float16":
        pack(model, "float32" if weights == "auto" else weights)
        return
    if weights == "int8":
        quantise(model)
    if weights != "auto" and not isinstance(model, EncoderOnly):
        from clearhead.fast.gpu.recorded import fast_dtype, set_precision

        set_precision(model, {"float32": None, "bfloat16": torch.bfloat16, "int8": fast_dtype()}[weights])


def decoder_for(model: M, fused: bool = True) -> M | DirectModel | RecordingModel:
    """Return what to decode with: a faster form of the model, or the model itself where hooks observe it.

    On a GPU, the first call for a model decides whether it is `fused` into few kernels. Compiling them takes about 12
    seconds the first time on a machine: too long for a few samples.
    """
    device = next(model.parameters()).device.type
    if model.training or device not in ("cpu", "cuda"):
        return model
    if device == "cpu":
        return direct_decoder(model)
    if any(module._forward_hooks or module._forward_pre_hooks for module in model.modules()):  # patches, FSDP
        return model
    from clearhead.fast.gpu.recorded import recording_model

    return recording_model(model, fused)


def unrecorded_decoder_for(model: M) -> M | DirectModel | UnrecordedModel:
    """Return what to decode with if rows join and leave between two steps."""
    decoder = decoder_for(model)
    return decoder if isinstance(decoder, nn.Module | DirectModel) else decoder.unrecorded()


# --- training ---------------------------------------------------------------------------------------------------------


def step_for(state: TrainState, config: TrainConfig) -> Step | None:
    """Return a faster optimiser step for this device and number of processes, or None for the plain one."""
    if state.group.world > 1 or state.machine.device.type != "cuda":
        return None
    from clearhead.fast.train.step import GraphStep

    return GraphStep(state, config)


def speed_up_training(objective: Objective, machine: Machine) -> None:
    """Let a model on a GPU train without waiting for it, and with our kernels: attention, rotation and loss."""
    model = objective.model
    parameter = next(model.parameters())
    if parameter.is_cuda:
        from clearhead.fast.train.batches import fixed_positions

        objective.positions = fixed_positions
    if not usable(parameter):
        return
    from clearhead.fast.kernels.attention import fast_attention, fits_tile
    from clearhead.fast.kernels.cross_entropy import fast_cross_entropy
    from clearhead.fast.kernels.rotary import fast_rotate

    objective.cross_entropy = fast_cross_entropy
    for module in model.modules():
        if isinstance(module, Attention):
            module.kernel = fast_attention
            if fits_tile(module.head_size) and not machine.compiled:  # a compiled rotation is one kernel already
                module.rotate = fast_rotate
