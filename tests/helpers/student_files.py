"""Files as a student writes them."""

from __future__ import annotations

from pathlib import Path


def noam(folder: Path, body: str) -> Path:
    """Write the exercise noam with this body of its function."""
    path = folder / "noam.py"
    lines = ["def learning_rate(step, d_model, warmup):", *(f"    {line}" for line in body.splitlines())]
    path.write_text("\n".join(lines) + "\n", encoding="utf8")
    return path
