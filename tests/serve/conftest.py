"""Tiny runs with random weights, one for each use, with names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch

from clearhead.runs import Run
from tiny_runs import tiny_run

if TYPE_CHECKING:
    from served_runs import TestClient


@pytest.fixture(scope="session")
def named_runs() -> dict[str, Run]:
    torch.manual_seed(3)
    runs = {
        "translator": replace(tiny_run(), longest=20),
        "writer": tiny_run("decoder-only", position="rotary"),
        "talker": tiny_run("decoder-only", position="learned", task="chat"),
        "classifier": tiny_run("encoder-only", head="classes"),
        "embedder": tiny_run("encoder-only", head="embedding"),
    }
    return {name: replace(run, folder=Path("runs") / name) for name, run in runs.items()}


@pytest.fixture(scope="module")
def client(named_runs: dict[str, Run]) -> Iterator[TestClient]:
    from served_runs import client_of

    with client_of(list(named_runs.values())) as client:
        yield client


@pytest.fixture
def writer() -> Run:
    """A run that no other test has."""
    torch.manual_seed(1)
    return tiny_run("decoder-only", position="rotary")


@pytest.fixture(scope="session")
def endless_run() -> Run:
    """A run whose greedy text never ends: <end> is never the most likely token."""
    torch.manual_seed(3)
    run = tiny_run("decoder-only", position="rotary")
    run.model.get_parameter("head.project.weight").data[run.tokenizers.target.end] = 0
    return replace(run, folder=Path("runs/endless"))
