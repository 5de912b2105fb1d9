"""The old name of `clearhead.inspect`, deprecated: both names lead to the same modules."""

from __future__ import annotations

import importlib
import pkgutil
import sys
import warnings

import clearhead.inspect

NEW_NAME = "clearhead.inspect"

warnings.warn(f"{__name__} is now {NEW_NAME}", DeprecationWarning, stacklevel=2)
for found in pkgutil.walk_packages(clearhead.inspect.__path__, f"{NEW_NAME}."):
    old_name = f"{__name__}{found.name.removeprefix(NEW_NAME)}"
    sys.modules[old_name] = importlib.import_module(found.name)
    if found.name.count(".") == NEW_NAME.count(".") + 1:
        globals()[found.name.rpartition(".")[2]] = sys.modules[old_name]
