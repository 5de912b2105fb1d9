"""Tiny runs with random weights, one for each use."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from clearhead.runs import Run
from tiny_runs import tiny_run


@pytest.fixture(scope="module")
def translator() -> Run:
    torch.manual_seed(0)
    return replace(tiny_run(dtype=torch.float64), longest=20)


@pytest.fixture(scope="module")
def writer() -> Run:
    torch.manual_seed(1)
    return tiny_run("decoder-only", dtype=torch.float64, position="rotary")


@pytest.fixture(scope="module")
def talker() -> Run:
    torch.manual_seed(2)
    return tiny_run("decoder-only", dtype=torch.float64, position="learned", task="chat")


@pytest.fixture(scope="module")
def classifier() -> Run:
    torch.manual_seed(3)
    run = tiny_run("encoder-only", dtype=torch.float64, head="classes")
    return replace(run, recipe=replace(run.recipe, data=replace(run.recipe.data, max_length=12)))
