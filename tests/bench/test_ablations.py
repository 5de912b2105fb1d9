"""The table of ablations: one row for each change, with its spread; a second call trains nothing again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SMALL = (
    "model.d_model=16 model.d_ff=16 model.layers=1 model.heads=2 train.steps=3 train.evaluate_every=3 train.device=cpu"
)
TEXT = "a man rides a red bike .\ntwo dogs run in the snow .\na girl reads a book .\n"


@pytest.mark.long
@pytest.mark.slow
def test_rows_are_trained_once_and_become_a_table(tmp_path: Path) -> None:
    for name in ("train", "val", "test_2016_flickr"):
        for side in ("en", "de"):
            (tmp_path / f"{name}.{side}").write_text(TEXT)
    settings = [*SMALL.split(), "train.device=cpu", f"data.cache={tmp_path / 'cache'}"]
    options = ["--out", tmp_path / "out", "--seeds", "2", "--only", "base", "--only", "residual"]
    command = [sys.executable, ROOT / "bench" / "ablations.py", tmp_path, *settings, *options]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}

    def called() -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, capture_output=True, text=True, timeout=250, env=environment)

    first = called()
    assert first.returncode == 0, first.stderr
    lines = first.stdout.splitlines()
    assert lines[0] == "| row | parameters | perplexity | BLEU | seeds |"
    assert [line.split(" | ")[0] for line in lines[2:]] == ["| base", "| (F) no residual connections"]
    assert all("±" in line and line.endswith("| 2 |") for line in lines[2:])
    assert lines[2].split(" | ")[2] != lines[3].split(" | ")[2]
    second = called()
    assert (second.stdout, second.stderr) == (first.stdout, "")


def test_what_the_user_can_put_right_is_a_sentence_and_leaves_nothing(tmp_path: Path) -> None:
    out = tmp_path / "out"
    for wrong, problem in (
        (["--only", "base"], "ablations: data.path = "),
        (["--only", "bsae"], "ablations: --only bsae: no row contains this; rows: base, (A) 1 head"),
    ):
        command = [sys.executable, ROOT / "bench" / "ablations.py", tmp_path / "missing", "--out", out, *wrong]
        result = subprocess.run(command, capture_output=True, text=True, timeout=250)
        assert result.returncode == 1
        assert result.stderr.startswith(problem)
        assert "Traceback" not in result.stderr
        assert not out.exists()
