"""Measure implementations in turns: each contestant in its own process, one call of each in every round.

Then other load on the machine slows all of them alike. A ratio is the median over the rounds. Contestants do not share
a process because the threads of one library slow down those of another.
"""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import signal
import statistics
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from clearhead.config import UserError

STOP_SECONDS = 5.0  # that a process has to end by itself


@dataclass(frozen=True)
class Work:
    """What one call of a case has done."""

    units: float  # tokens, sentences or whatever the row counts
    texts: tuple[str, ...] = ()  # what was decoded, to compare contestants


Case = Callable[[], Work]
Cases = Mapping[str, Callable[[], Case]]  # by name, each with a function that prepares it
Prepare = Callable[[], Cases]  # runs in the process of a contestant, so it must be picklable


@dataclass(frozen=True)
class Setup:
    """How all contestants of a row are measured."""

    rounds: int = 5
    threads: int = 0  # of torch on a CPU; 0: as many as torch takes
    cpu_time: bool = False  # measure the CPU time of the process, which other processes affect less


@dataclass(frozen=True)
class Sample:
    """One measured call."""

    seconds: float
    units: float
    memory: int  # bytes of GPU memory that were reserved at most
    programs: int  # compiled by torch.compile during the call
    texts: tuple[str, ...]

    @property
    def per_unit(self) -> float:
        """Seconds for each token, sentence, ..."""
        return self.seconds / self.units


@dataclass
class Entry:
    """What was measured of one contestant in one case."""

    who: str
    case: str
    first: float = 0.0  # seconds of the first call, which may compile
    samples: list[Sample] = field(default_factory=list)
    texts: tuple[str, ...] = ()  # of the first call
    reason: str = ""  # why nothing was measured

    @property
    def per_unit(self) -> float:
        """Seconds for each unit: the median over the rounds."""
        return statistics.median(sample.per_unit for sample in self.samples)


def speed_ratio(ours: Entry, peer: Entry) -> float:
    """How many times as fast as the peer ours is: the median of the ratios of single rounds."""
    return median_ratio([one.per_unit for one in peer.samples], [one.per_unit for one in ours.samples])


def median_ratio(numerators: Sequence[float], denominators: Sequence[float]) -> float:
    """The median over the rounds of the ratio of two times."""
    return statistics.median(one / other for one, other in zip(numerators, denominators, strict=True))


# --- in the process of a contestant -----------------------------------------------------------------------------------


def serve(pipe: Any, prepare: Prepare, setup: Setup) -> None:
    """Prepare the cases, send their names, then run each requested case; a string is the reason of a failure."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the main process, which ends this one
    if setup.threads:
        torch.set_num_threads(setup.threads)
    with contextlib.suppress(EOFError, BrokenPipeError):  # the main process has ended
        try:
            torch.manual_seed(0)
            prepared = PreparedCase(prepare())
        except Exception as error:
            pipe.send(reason_of(error))
            return
        pipe.send(list(prepared.cases))
        while True:
            name = pipe.recv()
            try:
                answer: Sample | str = timed(prepared.get(name), setup.cpu_time)
            except Exception as error:
                answer = reason_of(error)
            pipe.send(answer)


class PreparedCase:
    """One case at a time: preparing the next one frees the memory of the last."""

    def __init__(self, cases: Cases) -> None:
        self.cases = cases
        self.name = ""
        self.case: Case | None = None

    def get(self, name: str) -> Case:
        """The case of that name."""
        if self.case is None or name != self.name:
            self.case = None
            release_memory()
            self.case = self.cases[name]()
            self.name = name
        return self.case


def reason_of(error: Exception) -> str:
    """Say why a contestant cannot be measured; unexpected errors also print their traceback to stderr."""
    if isinstance(error, ModuleNotFoundError):
        return f"{error.name} is not installed"
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return "does not fit into memory"
    if isinstance(error, UserError):
        return str(error)
    traceback.print_exc()
    return f"failed: {str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__}"


def release_memory() -> None:
    """Free what the last case has used."""
    if "torch._dynamo" in sys.modules:
        torch._dynamo.reset()
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def timed(case: Case, cpu_time: bool) -> Sample:
    """Call a case once, and wait for the GPU."""
    gpu = torch.cuda.is_available()
    clock = time.process_time if cpu_time else time.perf_counter
    if gpu:
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
    programs = compiled_programs()
    began = clock()
    work = case()
    if gpu:
        torch.cuda.synchronize()
    seconds = clock() - began
    memory = torch.cuda.max_memory_reserved() if gpu else 0
    return Sample(seconds, work.units, memory, compiled_programs() - programs, work.texts)


def compiled_programs() -> int:
    """How many programs torch.compile has made in this process."""
    if "torch._dynamo" not in sys.modules:
        return 0
    from torch._dynamo.utils import counters

    return int(counters["stats"]["unique_graphs"])


# --- in the main process ----------------------------------------------------------------------------------------------


class UnmeasurableError(Exception):
    """A contestant cannot go on; the message says why."""


class Contestant:
    """An implementation in its own process."""

    def __init__(self, prepare: Prepare, setup: Setup) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, far = context.Pipe()
        self.process = context.Process(target=serve, args=(far, prepare, setup), daemon=True)
        self.process.start()
        far.close()
        self.cases: list[str] = []

    def wait(self) -> None:
        """Wait until it is prepared."""
        self.cases = self.receive()

    def call(self, case: str) -> Sample:
        """Run a case once."""
        with contextlib.suppress(OSError):  # if the process has ended, receiving says so
            self.pipe.send(case)
        sample: Sample = self.receive()
        return sample

    def receive(self) -> Any:
        """What the process has sent; raises UnmeasurableError if it could not do what it was asked for."""
        try:
            answer = self.pipe.recv()
        except (EOFError, OSError):
            self.process.join()
            raise UnmeasurableError(f"its process ended with exit code {self.process.exitcode}") from None
        if isinstance(answer, str):
            raise UnmeasurableError(answer)
        return answer

    def stop(self) -> None:
        """End the process; terminate it if it is still busy, as after Ctrl-C."""
        self.pipe.close()
        self.process.join(STOP_SECONDS)
        if self.process.is_alive():
            self.process.terminate()
            self.process.join()


def contest(contestants: Mapping[str, Prepare], setup: Setup, show: Callable[[str], None]) -> list[Entry]:
    """Measure each case of the first contestant, together with every contestant that has this case."""
    entries: list[Entry] = []
    running: dict[str, Contestant] = {}
    try:
        for name, prepare in contestants.items():
            show(f"{name}: preparing")
            running[name] = Contestant(prepare, setup)
            try:
                running[name].wait()
            except UnmeasurableError as error:
                entries.append(Entry(name, "", reason=str(error)))
                running.pop(name).stop()
                if not running:  # nothing to compare the others with
                    return entries
        for case in next(iter(running.values())).cases:
            entries += take_turns(case, running, setup.rounds, show)
    finally:
        for contestant in running.values():
            contestant.stop()
    return entries


def take_turns(case: str, running: dict[str, Contestant], rounds: int, show: Callable[[str], None]) -> list[Entry]:
    """Measure one case: a first call of each contestant, then the rounds without those that fail."""
    entries = {name: Entry(name, case) for name, contestant in running.items() if case in contestant.cases}
    for turn in range(rounds + 1):
        for name, entry in entries.items():
            if entry.reason:
                continue
            show(f"{name}, {case}: " + (f"round {turn} of {rounds}" if turn else "first call"))
            try:
                sample = running[name].call(case)
            except UnmeasurableError as error:
                entry.reason = str(error)
                entry.samples = []
                continue
            if turn == 0:
                entry.first = sample.seconds
                entry.texts = sample.texts
            else:
                entry.samples.append(sample)
    return list(entries.values())
