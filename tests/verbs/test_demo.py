"""`clearhead demo`: trained once, shown every time."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from clearhead import cli
from clearhead.train import loop
from clearhead.train.state import TrainState
from clearhead.verbs.demo import show_commands

SMALL = "data.size=300 tokenizer.vocab=500 model.d_model=32 model.d_ff=64 train.steps=30 train.samples=0"


def demo(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    overrides = [*SMALL.split(), f"data.cache={tmp_path / 'cache'}", "train.evaluate_every=0"]
    cli.app(["demo", "--run", str(tmp_path / "run"), *overrides], result_action="return_value")
    return " ".join("".join(capsys.readouterr()).split())  # lines end where the terminal does


def test_the_demo_trains_shows_and_is_reused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words in ("from scratch", "is already trained"):
        shown = demo(tmp_path, capsys)
        assert words in shown
        assert "exactly right" in shown
        assert "words never seen together" in shown
        assert "Greedy against a beam of 4" in shown
        assert "10 of them" in shown
        assert "Attention of each French word" in shown
        assert all(f"clearhead {verb} " in shown for verb in ("translate", "walk", "explore"))


def test_an_interrupted_demo_shows_nothing_half_trained_and_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    train_step = loop.train_step

    def interrupted(state: TrainState, *others: Any) -> None:
        if state.step == 9:
            os.kill(os.getpid(), signal.SIGINT)
        train_step(state, *others)

    monkeypatch.setattr(loop, "train_step", interrupted)
    with pytest.raises(SystemExit, match="130"):
        demo(tmp_path, capsys)
    shown = " ".join("".join(capsys.readouterr()).split())
    assert "stopped after step 10; continue with: " in shown
    assert "Greedy" not in shown
    monkeypatch.undo()
    shown = demo(tmp_path, capsys)
    assert "is already trained" not in shown
    assert "from scratch" not in shown
    assert "Continuing to train an English-French Transformer" in shown
    assert "step 30 of 30" in shown
    assert "Greedy against a beam of 4" in shown


@pytest.mark.parametrize(
    ("on_path", "called", "shown"),
    [
        (True, "/usr/bin/clearhead", "clearhead"),
        (False, ".venv/bin/clearhead", ".venv/bin/clearhead"),
        (False, "/src/clearhead/__main__.py", f"{sys.executable} -m clearhead"),
    ],
)
def test_what_to_try_next_is_called_as_the_demo_was(
    on_path: bool, called: str, shown: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}" if on_path else None)
    monkeypatch.setattr("sys.argv", [called, "demo"])
    show_commands(Path("runs/demo"), Console(width=200))
    assert f"  {shown} walk runs/demo " in capsys.readouterr().out
