"""CUDA graphs: a computation whose kernels are recorded once and then launched together."""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

import torch

T = TypeVar("T")

FREE_BYTES = 2**31  # of GPU memory that is reserved and not used: more is returned before a recording
ONE_AT_A_TIME = threading.Lock()  # recordings: each of them stops the garbage collector


class GraphMemory:
    """Memory for the temporary tensors of several graphs, which must not be replayed at the same time.

    All of them are recorded on one stream, since PyTorch reuses memory only on the stream on which it was freed.
    """

    def __init__(self) -> None:
        self.pool = torch.cuda.graph_pool_handle()
        self.stream: Any = torch.cuda.Stream()  # type: ignore[no-untyped-call]


class Recorded(Generic[T]):
    """A computation over fixed memory: kernel by kernel at the first call, recorded at the second, then replayed.

    The first call lets kernels be compiled and choose their workspaces, which must not happen during a recording. What
    is used only once is not recorded. Results of a replay overwrite those of the last one.
    """

    def __init__(self, compute: Callable[[], T], recordable: bool = True) -> None:
        self.compute = compute
        self.recordable = recordable
        self.called = False
        self.graph: torch.cuda.CUDAGraph | None = None
        self.result: T | None = None

    def __call__(self) -> T:
        """Compute."""
        if not self.called or not self.recordable:
            self.called = True
            return self.compute()
        if self.graph is None:
            self.graph, self.result = record(self.compute)
        self.graph.replay()
        assert self.result is not None
        return self.result


def record(compute: Callable[[], T], memory: GraphMemory | None = None) -> tuple[torch.cuda.CUDAGraph, T]:
    """Record the kernels of a function without running them; return the graph and where its results will be.

    Without `memory`, the graph has memory of its own. Graphs that share memory overwrite each other's results.
    Other threads may use the GPU meanwhile. `torch.cuda.graph` would do the same, but returns all free memory to the
    driver before every recording: the next computation without a graph would have to ask for it again.
    """
    memory = memory or GraphMemory()
    torch.cuda.synchronize()
    if torch.cuda.memory_reserved() - torch.cuda.memory_allocated() > FREE_BYTES:
        torch.cuda.empty_cache()  # a graph has memory of its own, and cannot use what is free
    graph = torch.cuda.CUDAGraph()
    with ONE_AT_A_TIME, no_garbage_collection(), torch.cuda.stream(memory.stream):
        graph.capture_begin(memory.pool, capture_error_mode="thread_local")
        try:
            result = compute()
        finally:
            graph.capture_end()
    return graph, result


@contextlib.contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Stop Python's garbage collector: a graph of another model that it destroys would make the recording fail."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
