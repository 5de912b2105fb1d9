"""Files that are changed behind the back of the program."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def edit_json(path: Path, **changes: Any) -> None:
    """Change some values of a JSON object in a file."""
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
