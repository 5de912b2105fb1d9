"""The folder of tokenized text: where it is, its locks, and what a killed process leaves there."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from clearhead.data import encode
from clearhead.data.store import Chunk, StoreCache, default_cache, locked, size_and_hash


@pytest.mark.parametrize("size", [0, 1, 640, 1_000])
def test_of_a_long_file_some_blocks_are_hashed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr("clearhead.data.store.HASHED_BLOCK_BYTES", 10)
    path = tmp_path / "it"
    path.write_bytes(bytes(size))
    whole = size_and_hash(path)
    noticed = []
    for place in range(size):
        path.write_bytes(bytes(place) + b"x" + bytes(size - place - 1))
        noticed.append(size_and_hash(path) != whole)
    assert sum(noticed) == min(size, 10 * 64)
    assert all(noticed[:1] + noticed[-1:])


KILLED = """
import signal, sys
from pathlib import Path
import numpy as np
from clearhead.data.store import StoreCache, Chunk
with StoreCache(sys.argv[1]).building("it") as writer:
    writer.add("x", Chunk(np.zeros(1000), None))
    print("begun", flush=True)
    signal.pause()
"""


def test_a_killed_process_leaves_nothing_that_matters(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)], stdout=subprocess.PIPE)
    assert process.stdout
    assert process.stdout.readline() == b"begun\n"
    process.kill()
    process.wait()
    process.stdout.close()
    assert len(list(tmp_path.glob(".it.part-*"))) == 1
    assert StoreCache(str(tmp_path)).lookup("it") is None
    with StoreCache(str(tmp_path)).building("it") as writer:  # its lock died with it
        assert writer
        writer.add("x", Chunk(np.arange(3), None))
        writer.finish({"report": {}})
    store = StoreCache(str(tmp_path)).lookup("it")
    assert store
    assert store.single["x"].tolist() == [0, 1, 2]
    assert list(tmp_path.glob(".*")) == []


def test_one_at_a_time_holds_a_lock(tmp_path: Path) -> None:
    inside, most = [0], [0]

    def take_turns() -> None:
        for _ in range(30):
            with locked(tmp_path / ".lock"):
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                time.sleep(0.0005)
                inside[0] -= 1

    threads = [threading.Thread(target=take_turns) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1]
    assert list(tmp_path.iterdir()) == []


def test_the_cache_is_in_the_cache_folder_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_cache() == tmp_path / "clearhead"
    assert StoreCache("").folder == tmp_path / "clearhead"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert default_cache() == Path.home() / ".cache" / "clearhead"


def test_many_ids_take_four_bytes(tmp_path: Path) -> None:
    class Large:
        vocab = (1 << 16) + 1

    assert encode.dtype_of(Large()) is np.uint32
    Large.vocab -= 1
    assert encode.dtype_of(Large()) is np.uint16
