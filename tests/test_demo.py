"""`clearhead demo`: trained once, shown every time."""

from __future__ import annotations

from pathlib import Path

import pytest

from clearhead import cli

SMALL = "data.size=300 tokenizer.vocab=500 model.d_model=32 model.d_ff=64 train.steps=30 train.samples=0"


def test_the_demo_trains_shows_and_is_reused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    overrides = [*SMALL.split(), f"data.cache={tmp_path / 'cache'}", "train.evaluate_every=0"]
    for words in ("knows nothing yet", "is trained already"):
        cli.app(["demo", "--run", str(tmp_path / "run"), *overrides], result_action="return_value")
        shown = " ".join(capsys.readouterr().out.split())  # lines end where the terminal does
        assert words in shown
        assert "exactly right" in shown
        assert "compositional" in shown
        assert "Greedy against a beam of 4" in shown
        assert "10 of them" in shown
        assert "Where it looks" in shown
        assert all(f"clearhead {verb} " in shown for verb in ("translate", "walk", "explore"))
