"""Several requests at once: none waits for a search of another, and none changes the numbers of another."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
import torch

from clearhead.inspect import decoding
from clearhead.inspect.lens import saliency
from clearhead.inspect.patch import HOOKS, edited, patch, scale
from clearhead.inspect.trace import trace
from clearhead.inspect.web.explorer import Explorer
from explored_runs import begin, opened
from patience import PATIENCE
from tiny_runs import TEXT

CHANGE = json.dumps({"decoder.blocks.1.cross_attention": [{"kind": "scale", "value": 0, "at": {}}]})
MATRIX = "encoder.blocks.0.attention.query.weight"


@pytest.fixture
def another_thread() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as pool:
        yield pool


@pytest.mark.parametrize("path", ["effect", "decode", "beam"])
def test_a_new_text_waits_for_one_step_of_a_search_at_most(
    path: str, explorer: Explorer, another_thread: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = {"trace": begin(explorer, changes=CHANGE)["id"]} | ({"width": "2"} if path == "beam" else {})
    expected = explorer.answer(path, query)
    texts: list[Any] = []

    def before_a_step(*arguments: Any) -> Any:
        if len(texts) < 3:
            asked = {"run": "0", "text": f"{TEXT} {len(texts)}"}
            texts.append(another_thread.submit(explorer.answer, "trace", asked).result(PATIENCE))
        return patch(*arguments)

    monkeypatch.setattr(decoding, "patch", before_a_step)
    assert explorer.answer(path, query) == expected
    assert len(texts) == 3
    assert all(found["tokens"] for found in texts)


class WatchedLock:
    """The lock of hooks; notes whether it was free when it was asked for."""

    def __init__(self) -> None:
        self.was_free: list[bool] = []
        self.asked = threading.Event()

    def __enter__(self) -> None:
        self.was_free.append(HOOKS.acquire(blocking=False))
        self.asked.set()
        if not self.was_free[-1]:
            HOOKS.acquire()

    def __exit__(self, *_: object) -> None:
        HOOKS.release()


def test_no_parameter_changes_between_a_forward_pass_and_its_gradients(
    another_thread: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = opened("translator")
    traced = trace(run, TEXT)
    expected = saliency(traced, 3)
    lock = WatchedLock()
    changes: list[Future[None]] = []
    differentiate = torch.autograd.grad

    def change_a_matrix() -> None:
        with edited(run, {MATRIX: scale(2.0)}):
            pass

    def while_others_try(*arguments: Any) -> Any:
        monkeypatch.setattr("clearhead.inspect.patch.HOOKS", lock)
        changes.append(another_thread.submit(change_a_matrix))
        assert lock.asked.wait(PATIENCE)
        return differentiate(*arguments)

    monkeypatch.setattr(torch.autograd, "grad", while_others_try)
    assert torch.equal(saliency(traced, 3)["source"], expected["source"])
    changes[0].result(PATIENCE)
    assert lock.was_free == [False]  # the change has waited until the gradients were computed
