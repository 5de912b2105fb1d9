"""Runs as programs of torch: exported by `torch.export`, compiled by AOTInductor, or traced as TorchScript."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import torch

from clearhead.config import require
from clearhead.exchange.programs import Program, quiet, write_programs


def export(run: Path, folder: Path) -> list[str]:
    """Write a run as `.pt2` files, which `torch.export.load` opens."""
    write_programs(run, folder, write_recorded)
    return []


def export_compiled(run: Path, folder: Path) -> list[str]:
    """Write a run as compiled `.pt2` packages, which `torch._inductor.aoti_load_package` opens."""
    found = any(shutil.which(name) for name in ("g++", "clang++", "c++"))
    require(found, "--to aotinductor needs a C++ compiler: install g++, or use --to torch")
    write_programs(run, folder, write_compiled)
    return ["the packages are for processors like the one of this machine, and for this version of torch"]


def export_torchscript(run: Path, folder: Path) -> list[str]:
    """Write a run as TorchScript files, which `torch.jit.load` opens."""
    write_programs(run, folder, write_traced)
    return ["torch has deprecated TorchScript; --to torch writes what replaces it"]


def write_recorded(program: Program, folder: Path) -> None:
    """Write NAME.pt2."""
    exported = program.exported()
    write_archive(folder / f"{program.name}.pt2", lambda file: torch.export.save(exported, file))


def write_compiled(program: Program, folder: Path) -> None:
    """Write NAME.pt2 with machine code, which needs no Python."""
    exported = program.exported()
    compile_to: Any = torch._inductor.aoti_compile_and_package
    write_archive(folder / f"{program.name}.pt2", lambda file: compile_to(exported, package_path=file))


def write_traced(program: Program, folder: Path) -> None:
    """Write NAME.pt."""
    trace: Any = torch.jit.trace
    with quiet():
        traced = trace(program.module, example_kwarg_inputs=program.inputs, check_trace=False)
    write_archive(folder / f"{program.name}.pt", lambda file: torch.jit.save(traced, file))


def write_archive(path: Path, save: Callable[[BytesIO], object]) -> None:
    """Write what torch saves by way of memory: on a full disk, torch's own writer aborts the process."""
    archive = BytesIO()
    with quiet():
        save(archive)
    path.write_bytes(archive.getbuffer())
