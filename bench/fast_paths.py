"""What each file of `fast/` gains: rows of `clearhead bench` with it and without it, measured in turns.

    python bench/fast_paths.py              # all that this machine can measure
    python bench/fast_paths.py cpu/decoder.py train/step.py --rounds 3

The table in src/clearhead/fast/README.md is made of its output.
"""

from __future__ import annotations

import argparse
import importlib
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from clearhead.bench.contest import Cases, Entry, Prepare, Setup, contest, speed_ratio
from clearhead.bench.rows import OURS, ROWS, Workspace


@dataclass(frozen=True)
class FastPath:
    """A fast path, and how to do without it."""

    file: str
    row: str  # of `clearhead bench`
    turn_off: Callable[[], None]


def nothing(*_: Any, **__: Any) -> None:
    """In place of a function that changes a model."""


def set_attribute(module: str, name: str, value: Any) -> None:
    """Replace a name of a module, or of a class in it (`module:Class`)."""
    path, _, inner = module.partition(":")
    holder: Any = importlib.import_module(path)
    setattr(getattr(holder, inner) if inner else holder, name, value)


def plain(module: str, name: str) -> Any:
    return getattr(importlib.import_module(module), name)


def without_direct_decoder() -> None:
    set_attribute("clearhead.fast.choose", "direct_decoder", lambda model: model)


def without_reordered_matrices() -> None:
    set_attribute("clearhead.fast.cpu.matrices", "MIN_REORDERED_WEIGHTS", 1 << 60)


def without_recorded_steps() -> None:
    steps = plain("clearhead.fast.gpu.recorded", "RecordedSteps")
    set_attribute("clearhead.fast.gpu.recorded:RecordedSteps", "__call__", steps.compute)


def without_fused_model() -> None:
    set_attribute("clearhead.fast.gpu.recorded", "fuse", nothing)


def without_recorded_prefill() -> None:
    set_attribute("clearhead.fast.gpu.graphs:Recorded", "__call__", lambda self: self.compute())


def without_search_kernels() -> None:
    set_attribute("clearhead.fast.gpu.recorded", "read", lambda search, logits: search.read(logits))


def without_graph_steps() -> None:
    set_attribute("clearhead.train.loop", "step_for", nothing)


def without_half_layers() -> None:
    no_cast = plain("clearhead.fast.train.step", "no_cast")
    set_attribute("clearhead.fast.train.step", "cast_together", lambda _: no_cast)


def without_half_norms() -> None:
    set_attribute("clearhead.fast.train.half_norm", "use_half_norms", nothing)


def without_short_attention() -> None:
    set_attribute("clearhead.fast.kernels.short_attention", "MAX_SHORT_TOKENS", 0)


def without_rotary() -> None:
    set_attribute("clearhead.fast.kernels.rotary", "fast_rotate", plain("clearhead.model.attention", "rotate"))


def without_cross_entropy() -> None:
    plain_loss = plain("clearhead.train.loss", "cross_entropy_of")
    set_attribute("clearhead.fast.kernels.cross_entropy", "fast_cross_entropy", plain_loss)


PATHS = [
    FastPath("cpu/decoder.py", "cpu-translate-demo", without_direct_decoder),
    FastPath("cpu/matrices.py", "cpu-generate", without_reordered_matrices),
    FastPath("cpu/matrices.py", "cpu-translate", without_reordered_matrices),
    FastPath("gpu/recorded.py", "generate", without_recorded_steps),
    FastPath("gpu/fused.py", "generate", without_fused_model),
    FastPath("gpu/prefill.py", "translate", without_recorded_prefill),
    FastPath("gpu/search.py", "translate", without_search_kernels),
    FastPath("train/step.py", "train-small", without_graph_steps),
    FastPath("train/half_linear.py", "train-small", without_half_layers),
    FastPath("train/half_norm.py", "train-small", without_half_norms),
    FastPath("kernels/short_attention.py", "train-base", without_short_attention),
    FastPath("kernels/rotary.py", "train-small", without_rotary),
    FastPath("kernels/cross_entropy.py", "train-gpt2", without_cross_entropy),
]


def prepare_without(turn_off: Callable[[], None], prepare: Prepare) -> Cases:
    """Prepare a contestant that does without a fast path, in its own process."""
    turn_off()
    return prepare()


def main() -> None:
    """Measure the chosen paths, and print a line for each case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", help="as the table of this script has them; without: all")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=0)
    options = parser.parse_args()
    devices = {row.name: row.device for row in ROWS}
    with tempfile.TemporaryDirectory() as folder:
        work = Workspace(Path(folder), False, options.threads or torch.get_num_threads())
        for path in PATHS:
            if options.files and path.file not in options.files:
                continue
            if devices[path.row] == "cuda" and not torch.cuda.is_available():
                continue
            [row] = [row for row in ROWS if row.name == path.row]
            ours = row.contestants(work)[OURS]
            setup = Setup(options.rounds, work.threads, cpu_time=row.device == "cpu" and work.threads == 1)
            both: dict[str, Prepare] = {"with": ours, "without": partial(prepare_without, path.turn_off, ours)}
            for case, ratios in compared(contest(both, setup, nothing)).items():
                print(f"{path.file:36} {path.row:20} {case:24} {ratios}", flush=True)


def compared(entries: list[Entry]) -> dict[str, str]:
    """For each case, how many times as fast it is with the path, and how much memory it takes."""
    found = {}
    for fast in entries:
        plain = next((each for each in entries if each.who == "without" and each.case == fast.case), None)
        if fast.who == "with" and plain and fast.samples and plain.samples:
            memory = fast.samples[-1].memory / max(1, plain.samples[-1].memory)
            found[fast.case] = f"{speed_ratio(fast, plain):.2f} times as fast, {memory:.2f} times the memory"
        elif fast.reason:
            found[f"{fast.case} {fast.who}"] = fast.reason
    return found


if __name__ == "__main__":
    main()
