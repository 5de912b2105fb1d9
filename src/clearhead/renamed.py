"""Old public names: they lead to the new ones, with a DeprecationWarning that names them."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any


def old_names(module: str, **renamed: str) -> Callable[[str], Any]:
    """Return the `__getattr__` of a module whose public names have changed: `old_names(__name__, Old="New")`."""

    def get(name: str) -> Any:
        if name not in renamed:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        warnings.warn(f"{module}.{name} is now {module}.{renamed[name]}", DeprecationWarning, stacklevel=2)
        return getattr(sys.modules[module], renamed[name])

    return get
