"""Measure the rows that were asked for, one after the other."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import torch

from clearhead.bench.contest import Setup, contest
from clearhead.bench.report import Measured, number
from clearhead.bench.rows import OURS, ROWS, Benchmark, Workspace
from clearhead.config import UserError, require, suggest
from clearhead.device import available_memory

GROUPS = {"gpu": "cuda", "cpu": "cpu"}  # what --only takes besides the names of rows


def choose_rows(names: Sequence[str]) -> list[Benchmark]:
    """The rows of these names or groups, in the order of `ROWS`; without names, all of them."""
    known = {row.name for row in ROWS}
    for name in names:
        if name not in known | GROUPS.keys():
            raise UserError(f"--only {name!r}: no such row; {suggest(name, [*GROUPS, *(row.name for row in ROWS)])}")
    return [row for row in ROWS if not names or row.name in names or any(GROUPS.get(n) == row.device for n in names)]


def measure(
    rows: Sequence[Benchmark], rounds: int, threads: int, quick: bool, peers: bool, show: Callable[[str], None]
) -> Iterator[Measured]:
    """Measure rows; `show` is told what happens."""
    require(rounds >= 1, f"--rounds {rounds}: must be at least 1")
    require(threads >= 0, f"--threads {threads}: must not be negative; 0 is as many as torch takes")
    with tempfile.TemporaryDirectory() as folder:
        work = Workspace(Path(folder), quick, threads or torch.get_num_threads())
        for row in rows:
            reason = why_skipped(row, quick)
            if reason:
                yield Measured(row, skipped=reason)
                continue
            show(f"{row.name}: preparing")
            contestants = row.contestants(work)
            chosen = contestants if peers else {OURS: contestants[OURS]}
            cpu_time = row.device == "cpu" and work.threads == 1 and not row.processes
            setup = Setup(rounds, work.threads, cpu_time)
            yield Measured(row, contest(chosen, setup, lambda text, name=row.name: show(f"{name}: {text}")))  # type: ignore[misc]


def why_skipped(row: Benchmark, quick: bool) -> str:
    """Why a row cannot be measured here; empty if it can."""
    if row.device == "cuda" and not torch.cuda.is_available():
        return "no GPU here"
    available = available_memory(torch.device(row.device)) / 1e9
    if not quick and available < row.memory:
        return f"needs about {row.memory:g} GB of memory, {available:.0f} GB are available"
    return ""


def summary(measured: Measured) -> str:
    """What was measured of a row, in a line."""
    if measured.skipped:
        return f"skipped: {measured.skipped}"
    found = [
        f"{ours.case} {number(ours, measured.row.unit)} {measured.row.unit}"
        + "".join(f", {peer.who} {number(peer, measured.row.unit)}" for peer in others if peer.samples)
        for ours, *others in measured.cases()
    ]
    return "; ".join([*found, *measured.reasons()])
