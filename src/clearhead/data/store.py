"""Tokenized text on disk: columns of numbers, mapped into memory, so that a corpus of any size can be opened.

A store is a folder: `NAME.values` holds the numbers of all rows one after the other, `NAME.offsets` where each row
begins (one more than there are rows; a column of single numbers has none), `manifest.json` what there should be. It is
built in a hidden folder beside and renamed when it is whole: who looks finds all of it or nothing.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from clearhead.config import UserError
from clearhead.data.report import Report
from clearhead.files import hidden_folder, problem_of, publish_folder

FORMAT = 2  # of the files; part of every key
Array = npt.NDArray[Any]
BLOCK, BLOCKS = 1 << 20, 64  # bytes, and how many such blocks of a file are hashed at most


class DamagedError(Exception):
    """A store that is not what its manifest says."""


class Chunk(NamedTuple):
    """Some more numbers of a column, and where in them rows end (None: every number is a row)."""

    values: Array
    ends: Array | None


@dataclass(frozen=True)
class RaggedArray:
    """Rows of numbers of different lengths."""

    values: Array
    offsets: Array

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """How many numbers each row has."""
        return np.diff(self.offsets)


@dataclass(frozen=True)
class Store:
    """An opened store: ragged columns, columns of single numbers, and facts that were saved with them."""

    ragged: dict[str, RaggedArray]
    single: dict[str, Array]
    facts: dict[str, Any]
    report: Report

    def first_of_label(self, name: str) -> int:
        """The first row with a label."""
        return int(np.argmax(self.single["label"] == self.facts["labels"].index(name)))


def default_cache() -> Path:
    """The user's cache folder."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "clearhead"


def checksum(manifest: Mapping[str, Any]) -> str:
    """A hash of all of a manifest but its checksum."""
    rest = {name: value for name, value in manifest.items() if name != "checksum"}
    return hashlib.blake2b(json.dumps(rest, sort_keys=True).encode(), digest_size=16).hexdigest()


def state_of(path: Path) -> dict[str, Any]:
    """How long a file is, and a hash of it: of the whole, or of BLOCKS evenly spaced blocks, the last one included."""
    size = path.stat().st_size
    last = max(0, size - BLOCK)
    starts = range(0, size, BLOCK) if size <= BLOCK * BLOCKS else [last * n // (BLOCKS - 1) for n in range(BLOCKS)]
    found = hashlib.blake2b(digest_size=16)
    with path.open("rb") as handle:
        for start in starts:
            handle.seek(start)
            found.update(handle.read(BLOCK))
    return {"bytes": size, "hash": found.hexdigest()}


class StoreWriter:
    """Writes a store into an empty folder, chunk by chunk."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files: dict[str, IO[bytes]] = {}
        self.kinds: dict[str, str] = {}  # file -> dtype
        self.sizes: dict[str, int] = {}  # column -> numbers so far

    def add(self, name: str, chunk: Chunk) -> None:
        """Append to a column."""
        start = self.sizes.get(name, 0)
        self._write(f"{name}.values", chunk.values)
        if chunk.ends is not None:
            first = [0] if name not in self.sizes else []
            self._write(f"{name}.offsets", np.concatenate([first, chunk.ends + start]).astype(np.int64))
        self.sizes[name] = start + len(chunk.values)

    def _write(self, file: str, values: Array) -> None:
        with complaints(self.folder.parent):
            if file not in self.files:
                self.files[file] = (self.folder / file).open("wb")
                self.kinds[file] = values.dtype.str
            assert values.dtype.str == self.kinds[file]
            self.files[file].write(values.tobytes())

    def finish(self, facts: Mapping[str, Any]) -> None:
        """Write the manifest and see all of it to the disk."""
        with complaints(self.folder.parent):
            for handle in self.files.values():
                handle.flush()
            columns = {file: {"dtype": kind} | state_of(self.folder / file) for file, kind in self.kinds.items()}
            manifest = {"format": FORMAT, "columns": columns, "facts": dict(facts)}
            whole = json.dumps(manifest | {"checksum": checksum(manifest)}, indent=1)
            self.files["manifest.json"] = (self.folder / "manifest.json").open("wb")
            self.files["manifest.json"].write(whole.encode())
            for handle in self.files.values():
                handle.flush()
        self.close()

    def close(self) -> None:
        """Let go of the files."""
        for handle in self.files.values():
            with contextlib.suppress(OSError):  # a full disk has been complained about already
                handle.close()


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a store, if it is whole."""
    try:
        manifest = json.loads((folder / "manifest.json").read_bytes())
        if manifest["checksum"] != checksum(manifest) or manifest["format"] != FORMAT:
            raise DamagedError("the manifest was changed")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DamagedError(f"the manifest cannot be read: {error}") from error
    return dict(manifest)


def open_store(folder: Path) -> Store:
    """Map a store into memory; raises DamagedError unless every file has the size and hash it should have."""
    manifest = read_manifest(folder)
    arrays: dict[str, Array] = {}
    for file, expected in manifest["columns"].items():
        kind = np.dtype(expected["dtype"])
        try:
            found = state_of(folder / file)
        except OSError as error:
            raise DamagedError(f"{file} cannot be read: {error}") from error
        if found != {name: expected[name] for name in found}:
            raise DamagedError(f"{file} was changed: it is {found}, not {expected}")
        # Nothing cannot be mapped; and a plain view is faster to index than a memmap.
        arrays[file] = np.asarray(np.memmap(folder / file, kind, "r")) if found["bytes"] else np.empty(0, kind)
    names = {file.rpartition(".")[0] for file in arrays}
    ragged = {
        name: RaggedArray(arrays[f"{name}.values"], arrays[f"{name}.offsets"])
        for name in sorted(names)
        if f"{name}.offsets" in arrays
    }
    single = {name: arrays[f"{name}.values"] for name in sorted(names - set(ragged))}
    return Store(ragged, single, manifest["facts"], Report(**manifest["facts"]["report"]))


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock that other processes wait for; it ends with the process, and its file goes when it is let go."""
    if sys.platform == "win32":  # there two processes may both build; the later one throws its copy away
        yield
        return
    import fcntl

    with contextlib.ExitStack() as held:
        while True:
            handle = held.enter_context(path.open("w"))
            fcntl.flock(handle, fcntl.LOCK_EX)
            with contextlib.suppress(FileNotFoundError):
                if path.stat().st_ino == os.fstat(handle.fileno()).st_ino:
                    break
            held.close()  # who had the lock removed this file meanwhile: others may wait at a new one
        held.callback(path.unlink, missing_ok=True)
        yield


@contextlib.contextmanager
def complaints(folder: Path) -> Iterator[None]:
    """Turn what the disk says while a cache is written into what the user can do."""
    try:
        yield
    except OSError as error:
        problem = f"cannot write tokenized text to {folder}: {problem_of(error)}"
        raise UserError(f"{problem}; set data.cache to a folder that can be written and has space") from error


class StoreCache:
    """A folder of stores, each under a name that contains a hash of all that it depends on."""

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder).expanduser() if folder else default_cache()

    def lookup(self, name: str) -> Store | None:
        """The store of this name, if there is one and it is whole."""
        try:
            return open_store(self.folder / name)
        except DamagedError:
            return None

    @contextlib.contextmanager
    def building(self, name: str) -> Iterator[StoreWriter | None]:
        """A writer for a store that is not there yet; None if another process has built it meanwhile."""
        with contextlib.ExitStack() as held:
            with complaints(self.folder):  # not around what the caller does: its own errors are not the cache's
                self.folder.mkdir(parents=True, exist_ok=True)
                held.enter_context(locked(self.folder / f".{name}.lock"))
            if self.lookup(name):
                yield None
                return
            with complaints(self.folder):
                for leftover in [*self.folder.glob(f".{name}.part-*"), self.folder / name]:  # of a killed process
                    shutil.rmtree(leftover, ignore_errors=True)
                part = held.enter_context(hidden_folder(self.folder / name))
            writer = StoreWriter(part)
            held.callback(writer.close)
            yield writer
            with complaints(self.folder):
                self._publish(part, name)

    def _publish(self, part: Path, name: str) -> None:
        """Give a finished store its name, unless another process was faster."""
        try:
            publish_folder(part, self.folder / name)
        except OSError:
            if not self.lookup(name):
                raise
