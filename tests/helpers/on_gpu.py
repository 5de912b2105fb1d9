"""What the tests in tests/gpu share: they are skipped without a GPU, and they compare hypotheses.

They need pytest and clearhead, but none of the packages of the dev extra, so that they run on a bare machine:

    PYTHONPATH=src:tests/helpers python -m pytest -c /dev/null --rootdir . --noconftest tests/gpu
"""

from __future__ import annotations

from dataclasses import astuple
from typing import Any

import pytest
import torch

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")


def assert_written(actual: Any, wanted: Any, rel: float = 1e-6) -> None:
    """The same hypotheses of a row, one or several, but for the last digits of their scores."""
    pairs = zip(actual, wanted, strict=True) if isinstance(wanted, list) else [(actual, wanted)]
    for one, other in pairs:
        assert astuple(one) == (
            other.ids,
            pytest.approx(other.score, rel),
            pytest.approx(other.log_probability, rel),
            other.ended,
        )
