"""One thread and a fixed seed for every test; and the Python blocks of the documentation are tests too."""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
import torch
from hypothesis import HealthCheck, settings
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser

torch.set_num_threads(1)  # the same numbers every time, and no fight over the cores
settings.register_profile("clearhead", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
settings.load_profile("clearhead")

# what a page shows is what works: its blocks run in order and share their names
pytest_collect_file = Sybil(parsers=[PythonCodeBlockParser()], patterns=["*.md"]).pytest()


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)
