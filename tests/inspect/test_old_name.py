"""`clearhead.glass` is the old name of `clearhead.inspect`."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

from patience import PATIENCE

MODULES = ("trace", "patch", "lens", "story", "explain", "answer", "roles", "kinds", "kinds.norm", "web.explorer")


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.filterwarnings("ignore:clearhead.glass:DeprecationWarning")
def test_the_old_name_leads_to_the_same_module(name: str) -> None:
    glass = importlib.import_module("clearhead.glass")
    module = importlib.import_module(f"clearhead.inspect.{name}")
    assert importlib.import_module(f"clearhead.glass.{name}") is module
    if "." not in name:
        assert getattr(glass, name) is module


def test_old_imports_work_and_warn() -> None:
    code = """from clearhead.glass.trace import trace
import clearhead.glass.kinds.norm as norm
from clearhead.inspect import kinds, trace as module
assert trace is module.trace and norm is kinds.norm
"""
    run = [sys.executable, "-W", "always", "-c", code]
    result = subprocess.run(run, capture_output=True, text=True, timeout=PATIENCE)
    assert result.returncode == 0, result.stderr
    assert "<string>:1: DeprecationWarning: clearhead.glass is now clearhead.inspect" in result.stderr
