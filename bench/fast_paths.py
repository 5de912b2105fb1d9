"""What each file of `fast/` gains: rows of `clearhead bench` with it and without it, measured in turns.

    python bench/fast_paths.py              # all that this machine can measure
    python bench/fast_paths.py cpu/decoder.py train/step.py --rounds 3

The table in src/clearhead/fast/README.md is made of its output.
"""

from __future__ import annotations

import argparse
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


def without_direct_decoder() -> None:
    import clearhead.fast.choose as choose

    choose.direct_decoder = lambda model: model  # type: ignore[assignment]


def without_reordered_matrices() -> None:
    import clearhead.fast.cpu.matrices as matrices

    matrices.MIN_REORDERED_WEIGHTS = 1 << 60


def without_recorded_steps() -> None:
    from clearhead.fast.gpu.recorded import RecordedSteps

    RecordedSteps.__call__ = RecordedSteps.compute  # type: ignore[method-assign]


def without_fused_model() -> None:
    import clearhead.fast.gpu.recorded as recorded

    recorded.fuse = lambda *_: None  # type: ignore[assignment]


def without_few_rows() -> None:
    import clearhead.fast.gpu.fused as fused

    fused.MOST_ROWS = 0


def without_recorded_prefill() -> None:
    from clearhead.fast.gpu.graphs import Recorded

    Recorded.__call__ = lambda self: self.compute()  # type: ignore[method-assign]


def without_search_kernels() -> None:
    import clearhead.fast.gpu.recorded as recorded

    recorded.read = lambda search, logits: search.read(logits)


def without_graph_steps() -> None:
    import clearhead.train.loop as loop

    loop.step_for = lambda *_: None


def without_half_layers() -> None:
    import clearhead.fast.train.step as step

    step.cast_together = lambda _: step.no_cast


def without_half_norms() -> None:
    import clearhead.fast.train.half_norm as half_norm

    half_norm.use_half_norms = nothing


def without_short_attention() -> None:
    import clearhead.fast.kernels.short_attention as short_attention

    short_attention.MAX_SHORT_TOKENS = 0


def without_rotary() -> None:
    import clearhead.fast.kernels.rotary as rotary
    from clearhead.model.attention import rotate

    rotary.fast_rotate = rotate


def without_cross_entropy() -> None:
    import clearhead.fast.kernels.cross_entropy as cross_entropy
    from clearhead.train.loss import cross_entropy_of

    cross_entropy.fast_cross_entropy = cross_entropy_of


def without_half_stream() -> None:
    import clearhead.fast.choose as choose

    choose.halve_residual_stream = nothing


PATHS = [
    FastPath("cpu/decoder.py", "cpu-translate-demo", without_direct_decoder),
    FastPath("cpu/matrices.py", "cpu-generate", without_reordered_matrices),
    FastPath("cpu/matrices.py", "cpu-translate", without_reordered_matrices),
    FastPath("gpu/recorded.py", "generate", without_recorded_steps),
    FastPath("gpu/fused.py", "generate", without_fused_model),
    FastPath("kernels/few_rows.py", "generate", without_few_rows),
    FastPath("gpu/prefill.py", "translate", without_recorded_prefill),
    FastPath("gpu/search.py", "translate", without_search_kernels),
    FastPath("train/step.py", "train-small", without_graph_steps),
    FastPath("train/half_linear.py", "train-small", without_half_layers),
    FastPath("train/half_norm.py", "train-small", without_half_norms),
    FastPath("kernels/short_attention.py", "train-base", without_short_attention),
    FastPath("kernels/rotary.py", "train-small", without_rotary),
    FastPath("kernels/cross_entropy.py", "train-gpt2", without_cross_entropy),
    FastPath("choose.py: halve_residual_stream", "train-gpt2", without_half_stream),
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
            both = {"with": ours, "without": partial(prepare_without, path.turn_off, ours)}
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
