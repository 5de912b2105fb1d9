"""How long a test waits for what must happen."""

from __future__ import annotations

PATIENCE = 120  # seconds that anything may take on a busy machine
