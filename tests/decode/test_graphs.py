"""A computation that comes again is recorded, and replayed from then on; one that comes once is not."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from clearhead.decode import graphs


@pytest.mark.parametrize("recordable", [True, False])
def test_what_comes_again_is_recorded(monkeypatch: pytest.MonkeyPatch, recordable: bool) -> None:
    happened = []

    class Graph:
        def replay(self) -> None:
            happened.append("replayed")

    def record(compute: Callable[[], list[str]]) -> tuple[Graph, list[str]]:
        happened.append("recorded")
        return Graph(), ["fixed memory"]

    def compute() -> list[str]:
        happened.append("computed")
        return ["new memory"]

    monkeypatch.setattr(graphs, "record", record)
    computation = graphs.Recorded(compute, recordable=recordable)
    results = [computation() for _ in range(3)]
    if recordable:
        assert happened == ["computed", "recorded", "replayed", "replayed"]
        assert results == [["new memory"], ["fixed memory"], ["fixed memory"]]
    else:
        assert happened == ["computed"] * 3


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")
def test_graphs_share_their_memory() -> None:
    """A training step has dozens of shapes: the memory that it needs is that of the largest, not of all of them."""
    memory = graphs.GraphMemory()
    weight = torch.randn(1024, 1024, device="cuda")
    totals = torch.zeros(3, device="cuda")

    def compute(index: int, rows: int) -> None:
        x = torch.ones(rows, 1024, device="cuda")
        totals[index] = (x @ weight).relu().sum()

    jobs = [(0, 40_000), (1, 30_000), (2, 20_000)]
    recorded, reserved = [], []
    for job in jobs:
        compute(*job)
        recorded.append(graphs.record(lambda job=job: compute(*job), memory)[0])  # type: ignore[misc]
        reserved.append(torch.cuda.memory_stats()["reserved_bytes.all.current"])
    assert reserved[2] - reserved[0] < 40_000 * 1024 * 4
    wanted = totals.clone()
    totals.zero_()
    for graph in recorded[::-1]:
        graph.replay()
    torch.testing.assert_close(totals, wanted)
