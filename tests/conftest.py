"""One thread and a fixed seed for every test: the same numbers every time, and no fight over the cores."""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
import torch
from hypothesis import HealthCheck, settings

torch.set_num_threads(1)
settings.register_profile("clearhead", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
settings.load_profile("clearhead")


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)
