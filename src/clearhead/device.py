"""Where a run computes: on which device, in which precision, compiled or not."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from clearhead.config import TrainConfig, UserError, Weights, require

COMPILE_SECONDS = 60.0  # what compiling costs, roughly: 20 to 118 s were measured on an H200 (docs/performance.md)
COMPILE_SAVES = 0.3  # part of the time of a step that it saves
SUSTAINED_FLOPS = 2e14  # FLOPs per second of training without compiling, an assumption for such a GPU


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

    def fastest_attention(self) -> contextlib.AbstractContextManager[None]:
        """Return a context in which torch prefers cuDNN's attention: on a Hopper GPU the fastest for long sequences."""
        if self.device.type != "cuda" or torch.are_deterministic_algorithms_enabled():
            return contextlib.nullcontext()
        order = ["CUDNN_ATTENTION", "FLASH_ATTENTION", "EFFICIENT_ATTENTION", "MATH"]
        return sdpa_kernel([getattr(SDPBackend, name) for name in order], set_priority=True)

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
    if config.deterministic != torch.are_deterministic_algorithms_enabled():  # setting it imports the compiler
        torch.use_deterministic_algorithms(config.deterministic)
    precision = {"float32": torch.float32, "bfloat16": torch.bfloat16}.get(config.precision)
    if precision is None:  # most CPUs compute bfloat16 more slowly than float32
        fast = device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
        precision = torch.bfloat16 if fast else torch.float32
    worthwhile = device.type == "cuda" and saved_by_compiling(config, step_flops) > COMPILE_SECONDS
    return Machine(device, precision, config.compile == "yes" or (config.compile == "auto" and worthwhile))


def saved_by_compiling(config: TrainConfig, step_flops: float) -> float:
    """Return an estimate of the seconds that compiling saves in a whole run on a GPU."""
    return config.steps * step_flops / SUSTAINED_FLOPS * COMPILE_SAVES


def explain_compiling(machine: Machine, config: TrainConfig, step_flops: float) -> str:
    """Return why blocks are compiled or not; an empty string unless train.compile is auto on a GPU."""
    if machine.device.type != "cuda" or config.compile != "auto":
        return ""
    chosen = "compiled" if machine.compiled else "not compiled"
    saved = saved_by_compiling(config, step_flops)
    return (
        f"blocks are {chosen} (train.compile = auto): it would save about {saved:,.0f} s of this run, and takes about "
        f"{COMPILE_SECONDS:.0f} s"
    )


def choose_device(name: str, setting: str = "train.device =") -> torch.device:
    """Return the device of that name, or for "auto" the fastest one available; `setting` is named in errors."""
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    counts = {"cuda": gpus, "mps": int(torch.backends.mps.is_available()), "cpu": 1}
    if name == "auto":
        return torch.device(next(kind for kind, count in counts.items() if count))
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise UserError(f"{setting} {name!r}: expected auto, cpu, cuda or mps") from error
    require((device.index or 0) < counts.get(device.type, 0), f"{setting} {name!r}: not available here; try auto")
    return device


def choose_decoding_device(name: str, weights: Weights) -> torch.device:
    """Return the device that `--device` names; "auto" is the CPU for float16, which needs one, and for int8."""
    return choose_device("cpu" if name == "auto" and weights in ("float16", "int8") else name, "--device")


def busy_cores_warning() -> str:
    """Return a warning if other programs use the cores that this process has threads for; empty if they do not.

    The number of threads is not changed: results depend on it, and a resumed run must compute the same.
    """
    threads = torch.get_num_threads()
    if threads == 1:
        return ""
    cores = os.cpu_count() or 1
    free = cores - busy_cores(0.2)
    if free > threads - 0.5:
        return ""
    return (
        f"other programs use the cores: {free:.1f} of {cores} are free, and the {threads} threads of this process wait "
        f"for each other; OMP_NUM_THREADS={max(1, int(free))} in front of the command is faster"
    )


def busy_cores(seconds: float) -> float:
    """Return how many cores other processes use, measured over some seconds; 0 where the system does not say."""
    try:
        before = idle_seconds()
        time.sleep(seconds)
        idle = (idle_seconds() - before) / seconds
    except (OSError, ValueError, IndexError):
        return 0.0
    cores = os.cpu_count() or 1
    return min(cores, max(0.0, cores - idle))


def idle_seconds() -> float:
    """Return the seconds that all cores together have been idle since the system started."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()
    return (int(fields[4]) + int(fields[5])) / os.sysconf("SC_CLK_TCK")


def available_memory(device: torch.device) -> int:
    """Return the bytes that can still be allocated on a device, as far as the system says."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    with contextlib.suppress(OSError, ValueError, KeyError):
        lines = Path("/proc/meminfo").read_text().splitlines()
        kilobytes = {name: int(rest.split()[0]) for name, _, rest in (line.partition(":") for line in lines)}
        return min(1024 * (kilobytes["MemAvailable"] + kilobytes["SwapFree"]), memory_of_container())
    return sys.maxsize


def memory_of_container(folder: Path = Path("/sys/fs/cgroup")) -> int:
    """Return the bytes that the control group of this process, such as a container, can still allocate."""
    with contextlib.suppress(OSError, ValueError):  # no such group, or its limit is "max"
        limit = int((folder / "memory.max").read_text())
        lines = (folder / "memory.stat").read_text().splitlines()
        reclaimable = sum(int(line.split()[1]) for line in lines if line.startswith(("inactive_file ", "active_file ")))
        return limit - int((folder / "memory.current").read_text()) + reclaimable
    return sys.maxsize


def require_memory(size: int, device: str, what: str, remedy: str) -> None:
    """Refuse what needs more bytes than a device has, before the system ends the process."""
    available = available_memory(torch.device(device))
    require(
        size <= available,
        f"{what} needs at least {size / 1e9:,.1f} GB of memory, and {available / 1e9:,.1f} GB are available on "
        f"{device}; {remedy}",
    )
