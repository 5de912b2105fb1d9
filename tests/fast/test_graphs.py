"""A computation that comes again is recorded, and replayed from then on; one that comes once is not."""

from __future__ import annotations

import gc
from collections.abc import Callable

import pytest

from clearhead.fast.gpu import graphs


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


@pytest.mark.parametrize("enabled", [True, False])
def test_no_garbage_is_collected_during_a_recording(enabled: bool) -> None:
    before = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        with graphs.no_garbage_collection():
            assert not gc.isenabled()
        assert gc.isenabled() == enabled
    finally:
        (gc.enable if before else gc.disable)()
