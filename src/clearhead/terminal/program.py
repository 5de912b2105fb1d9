"""The name by which a user can call clearhead."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path


def program_name() -> str:
    """How to call clearhead from this folder: by name if it is on the PATH, else as this process was started."""
    if shutil.which("clearhead"):
        return "clearhead"
    called = Path(sys.argv[0])
    return str(called) if called.name == "clearhead" else f"{sys.executable} -m clearhead"
