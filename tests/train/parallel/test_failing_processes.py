"""A process fails or dies: what is said, and how the others go on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from clearhead.config import Recipe, UserError
from clearhead.recipes import write_recipe
from clearhead.train import loop
from clearhead.train.checkpoint import checkpoint_folders, load_checkpoint
from clearhead.train.folder import restarted_by_torchrun
from clearhead.train.parallel import Group, rendezvous_store
from clearhead.train.run import train
from several_processes import Job, assert_close, assert_equal, changed, meeting_place, together

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="gloo and forkserver as they are on Linux and macOS")


def test_what_is_wrong_is_said_once(recipe: Recipe, tmp_path: Path) -> None:
    run = tmp_path / "run"
    wrong = replace(recipe, model=replace(recipe.model, family="decoder-only"))
    assert together(2, Job(wrong, run)) == [1, 1]
    [said] = [path for path in tmp_path.iterdir() if path != run]
    assert "is for model.family = 'encoder-decoder', not 'decoder-only'" in said.read_text()


def test_only_the_torchrun_that_began_a_run_goes_on_unasked(tmp_path: Path) -> None:
    (tmp_path / "launch").write_text("mine")
    assert restarted_by_torchrun(Group(launch="mine", restarted=True), tmp_path)
    assert not restarted_by_torchrun(Group(launch="mine"), tmp_path)
    assert not restarted_by_torchrun(Group(launch="another", restarted=True), tmp_path)
    assert not restarted_by_torchrun(Group(launch="mine", restarted=True), tmp_path / "elsewhere")


def test_restarts_on_several_nodes_need_a_store_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    names = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1", "TORCHELASTIC_USE_AGENT_STORE": "True"}
    for name, value in (names | {"GROUP_WORLD_SIZE": "2", "TORCHELASTIC_MAX_RESTARTS": "3"}).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(UserError, match="TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 and --rdzv-backend=c10d"):
        rendezvous_store(0, 2)


def test_out_of_memory_says_what_to_halve(recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(loop, "train_step", full)
    with pytest.raises(UserError, match=r"data.batch_tokens=256 train.step_tokens=2048"):
        train(recipe, tmp_path / "one", quiet=True)
    with pytest.raises(UserError, match=r"data.batch_tokens=256 train.step_tokens=512"):
        train(changed(recipe, step_tokens=0), tmp_path / "two", quiet=True)


KILLER = """
import os, signal
from clearhead.cli import main
from clearhead.train import loop

train_step = loop.train_step

def dying(state, *arguments):
    if os.environ["RANK"] == "1" and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0" and state.step == 6:
        open("died", "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    train_step(state, *arguments)

loop.train_step = dying
main()
"""


@pytest.mark.long
def test_started_again_they_do_not_wait_for_the_dead(recipe: Recipe, alone: Path, tmp_path: Path) -> None:
    """Their addresses are still there when the first of those who follow looks for the others."""
    store, recipe = meeting_place(), changed(recipe, parallel="fsdp")
    assert together(2, Job(recipe, tmp_path, stop_after=6, by=signal.SIGKILL), store) == [1, -signal.SIGKILL]
    assert load_checkpoint(checkpoint_folders(tmp_path)[-1]).step == 4
    assert together(2, Job(recipe, tmp_path, restart=1), store) == [0, 0]
    assert_close(tmp_path, alone)


@pytest.mark.long
@pytest.mark.slow
def test_a_process_dies_and_the_run_ends_the_same(recipe: Recipe, tmp_path: Path) -> None:
    """torchrun starts all of them again; they go on from the last checkpoint, with dropout as it would have been."""
    recipe = changed(recipe, dropout=0.2)
    assert together(2, Job(recipe, tmp_path / "undisturbed")) == [0, 0]
    write_recipe(recipe, tmp_path / "tiny.toml")
    (tmp_path / "killer.py").write_text(KILLER)
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "--max-restarts=1"]
    command, environment = [*torchrun, "killer.py", "train", "tiny.toml"], os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "died").exists()
    assert_equal(tmp_path / "runs" / "tiny", tmp_path / "undisturbed")
