"""The real corpora in ../shared/data, for tests that are skipped on machines without them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

SHARED = Path(os.environ.get("CLEARHEAD_DATA", Path(__file__).parents[3] / "shared" / "data"))
needs_shared = pytest.mark.skipif(
    not SHARED.is_dir(), reason="the real corpora in ../shared/data are not on this machine"
)
