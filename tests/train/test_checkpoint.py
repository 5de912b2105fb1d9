"""A checkpoint is complete or not there: after kill -9, and on a full disk."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from pathlib import Path

import pytest
import torch

from clearhead.config import UserError
from clearhead.train import checkpoint as checkpoints
from clearhead.train.checkpoint import (
    Checkpoint,
    CheckpointWriter,
    checkpoint_folders,
    load_checkpoint,
    save_checkpoint,
)
from patience import PATIENCE


@pytest.mark.long
def test_killed_while_saving_a_whole_checkpoint_is_left(tmp_path: Path) -> None:
    """kill -9 at 50 random moments: what is there afterwards can be loaded, and nothing goes back.

    Every second process is killed after it has saved at least once, however long that takes.
    """
    tensors = {"model": {f"w{i}": torch.randn(50_000) for i in range(5)}}
    random.seed(0)
    newest = -1
    for number in range(50):
        saved, has_saved = os.pipe()
        child = os.fork()
        if child == 0:
            for step in range(newest + 1, newest + 1000):
                save_checkpoint(tmp_path, Checkpoint(step, tensors, {}))
                os.write(has_saved, b"x")
            os._exit(0)
        os.close(has_saved)
        if number % 2:
            os.read(saved, 1)
        time.sleep(random.uniform(0.005, 0.12))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(saved)
        for folder in checkpoint_folders(tmp_path):
            assert torch.equal(load_checkpoint(folder).tensors["model"]["w4"], tensors["model"]["w4"])
        steps = [load_checkpoint(folder).step for folder in checkpoint_folders(tmp_path)]
        assert max(steps, default=-1) >= newest
        newest = max(steps, default=-1)
    assert newest >= 24


def test_a_full_disk_leaves_the_last_checkpoint(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    small, large = ({"model": {"w": torch.zeros(n)}} for n in (100, 1_000_000))
    save_checkpoint(tmp_path, Checkpoint(1, small, {}))
    before, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        with pytest.raises(UserError, match=r"cannot save the checkpoint of step 2 .*the disk is full"):
            save_checkpoint(tmp_path, Checkpoint(2, large, {}))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert [folder.name for folder in (tmp_path / "checkpoints").iterdir()] == ["step-00000001"]
    assert load_checkpoint(checkpoint_folders(tmp_path)[-1]).step == 1


def test_a_small_checkpoint_is_written_while_training_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has the weights of its step, though they change before it is written; the next one waits for it."""
    may_write = threading.Event()

    def save_later(run: Path, checkpoint: Checkpoint) -> Path:
        assert may_write.wait(PATIENCE)
        return save_checkpoint(run, checkpoint)

    monkeypatch.setattr(checkpoints, "save_checkpoint", save_later)
    weights = torch.zeros(3)
    with CheckpointWriter() as writer:
        writer.write(tmp_path, Checkpoint(1, {"model": {"w": weights}}, {}))
        assert not checkpoint_folders(tmp_path)
        weights += 1
        may_write.set()
        writer.write(tmp_path, Checkpoint(2, {"model": {"w": weights}}, {}))
        assert checkpoint_folders(tmp_path)
        weights += 1
    written = [load_checkpoint(folder).tensors["model"]["w"].tolist() for folder in checkpoint_folders(tmp_path)]
    assert written == [[0, 0, 0], [1, 1, 1]]


def test_a_large_checkpoint_is_written_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy of it might not fit into memory."""
    monkeypatch.setattr(checkpoints, "LARGEST_COPY", 11)
    with CheckpointWriter() as writer:
        writer.write(tmp_path, Checkpoint(1, {"model": {"w": torch.zeros(3)}}, {}))
        assert writer.pending is None
        assert load_checkpoint(checkpoint_folders(tmp_path)[-1]).step == 1


def test_an_error_of_the_thread_ends_the_training(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").write_text("a file, where the folder should be")
    checkpoint = Checkpoint(1, {"model": {"w": torch.zeros(3)}}, {})
    with CheckpointWriter() as writer:
        writer.write(tmp_path, checkpoint)
        with pytest.raises(UserError, match="cannot save the checkpoint of step 1"):
            writer.write(tmp_path, checkpoint)
    with pytest.raises(UserError, match="cannot save the checkpoint of step 1"), CheckpointWriter() as writer:
        writer.write(tmp_path, checkpoint)


def test_an_error_of_the_training_is_not_replaced_by_that_of_a_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").write_text("a file, where the folder should be")
    writer = CheckpointWriter()
    writer.write(tmp_path, Checkpoint(1, {"model": {"w": torch.zeros(3)}}, {}))
    with pytest.raises(ZeroDivisionError), writer:
        1 / 0  # noqa: B018
    assert writer.pending is None
