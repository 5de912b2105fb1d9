"""Where a run computes: on which device, in which precision, compiled or not."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass

import torch

from clearhead.config import TrainConfig, UserError, Weights, require

COMPILE_SECONDS = 60.0  # what compiling costs, measured on an H200 (docs/performance.md)
COMPILE_SAVES = 0.3  # part of the time of a step that it saves
SUSTAINED_FLOPS = 2e14  # FLOPs per second of training without compiling, on the same GPU


@dataclass(frozen=True)
class Machine:
    """The device of this process, the precision of its matrix products, and whether the model is compiled."""

    device: torch.device
    precision: torch.dtype
    compiled: bool

    def autocast(self) -> contextlib.AbstractContextManager[None]:
        """Return a context in which matrix products are computed in `precision`; weights stay float32."""
        if self.precision == torch.float32:
            return contextlib.nullcontext()
        return torch.autocast(self.device.type, self.precision)

    def __str__(self) -> str:
        name = torch.cuda.get_device_name(self.device) if self.device.type == "cuda" else self.device.type
        kind = str(self.precision).removeprefix("torch.")
        return f"{name}, {kind}" + (", compiled" if self.compiled else "")


def choose_machine(config: TrainConfig, step_flops: float = 0.0) -> Machine:
    """Return what the settings ask for; for "auto", what is fastest here for steps of this many FLOPs.

    Compiling is decided by an estimate, not by a timing: a resumed run must compute with the same kernels.
    """
    device = choose_device(config.device)
    if config.deterministic:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # required by cuBLAS, read at its first product
    torch.use_deterministic_algorithms(config.deterministic)
    precision = {"float32": torch.float32, "bfloat16": torch.bfloat16}.get(config.precision)
    if precision is None:  # most CPUs compute bfloat16 more slowly than float32
        fast = device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
        precision = torch.bfloat16 if fast else torch.float32
    saved = config.steps * step_flops / SUSTAINED_FLOPS * COMPILE_SAVES  # seconds
    pays = device.type == "cuda" and saved > COMPILE_SECONDS
    return Machine(device, precision, config.compile == "yes" or (config.compile == "auto" and pays))


def choose_device(name: str, setting: str = "train.device =") -> torch.device:
    """Return the device of that name, or for "auto" the fastest one available; `setting` is named in errors."""
    available = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if name == "auto":
        return torch.device(next(kind for kind, usable in available.items() if usable))
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise UserError(f"{setting} {name!r}: expected auto, cpu, cuda or mps") from error
    require(available.get(device.type, False), f"{setting} {name!r}: not available here; try auto")
    return device


def choose_decoding_device(name: str, weights: Weights) -> torch.device:
    """Return the device of `--device`; weights in fewer bits are computed on a CPU only, so "auto" then means that."""
    return choose_device("cpu" if name == "auto" and weights != "float32" else name, "--device")
