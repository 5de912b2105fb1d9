"""What the scripts share: options, and timing in turns. Not a benchmark itself.

Things that are compared take turns in one process, so that a busy machine slows all of them alike; their ratio is
`clearhead.bench.contest.median_ratio`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping

import torch


def options(description: str | None, **defaults: int | str) -> argparse.Namespace:
    """Parse the command line: one option `--name` for each default. Sets torch's threads if there is `threads`."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in defaults.items():
        parser.add_argument(f"--{name}", type=type(default), default=default)
    found = parser.parse_args()
    if "threads" in defaults:
        torch.set_num_threads(found.threads)
    return found


def seconds(call: Callable[[], object]) -> float:
    """The wall-clock time of one call."""
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def in_turns(calls: Mapping[str, Callable[[], object]], rounds: int, warm_up: int = 1) -> dict[str, list[float]]:
    """Time all calls in turns, round by round; rounds for warming up are not counted."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(warm_up + rounds):
        for name, call in calls.items():
            taken = seconds(call)
            if turn >= warm_up:
                times[name].append(taken)
    return times


def setting() -> str:
    """What a printed number depends on besides the machine."""
    return f"{torch.get_num_threads()} threads, torch {torch.__version__}"
