"""Tokenized data on disk: columns of numbers, mapped into memory, so that a corpus of any size can be opened.

A store is a folder. `NAME.values` has the numbers of all rows of a column, concatenated, `NAME.offsets` the index at
which each row begins, and the end of the last (a column with one number per row has no offsets). `manifest.json` lists
the files with their hashes. A store is built in a hidden folder and renamed when it is complete, so it is never seen
half-written.
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
from clearhead.files import hash_manifest, hidden_folder, problem_of, publish_folder

STORE_FORMAT = 2  # version of the file format; part of the name of every store
CHECKSUM = "checksum"  # the entry of a manifest that has the hash of the others
Array = npt.NDArray[Any]
HASHED_BLOCK_BYTES = 1 << 20  # bytes of one block that is hashed
HASHED_BLOCKS = 64  # number of blocks of a file that are hashed at most


class DamagedError(Exception):
    """A store whose files are not what its manifest says."""


class Chunk(NamedTuple):
    """Numbers to append to a column, and the indices at which rows end (None: one number per row)."""

    values: Array
    ends: Array | None


@dataclass(frozen=True)
class RaggedArray:
    """Rows of different lengths: their numbers, concatenated, and the index at which each row begins."""

    values: Array
    offsets: Array

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """The length of each row."""
        return np.diff(self.offsets)


@dataclass(frozen=True)
class Store:
    """An opened store: ragged columns, columns with one number per row, and the facts saved with them."""

    ragged: dict[str, RaggedArray]
    single: dict[str, Array]
    facts: dict[str, Any]
    report: Report
    content: str  # a hash of all columns and of the names of the labels

    def first_of_label(self, name: str) -> int:
        """The number of the first row that has this label."""
        return int(np.argmax(self.single["label"] == self.facts["labels"].index(name)))


def default_cache() -> Path:
    """The user's cache folder."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "clearhead"


def size_and_hash(path: Path) -> dict[str, Any]:
    """The size of a file and a hash of its content; a large file is hashed in HASHED_BLOCKS evenly spaced blocks."""
    size = path.stat().st_size
    last = max(0, size - HASHED_BLOCK_BYTES)
    starts = (
        range(0, size, HASHED_BLOCK_BYTES)
        if size <= HASHED_BLOCK_BYTES * HASHED_BLOCKS
        else [last * n // (HASHED_BLOCKS - 1) for n in range(HASHED_BLOCKS)]
    )
    found = hashlib.blake2b(digest_size=16)
    with path.open("rb") as handle:
        for start in starts:
            handle.seek(start)
            found.update(handle.read(HASHED_BLOCK_BYTES))
    return {"bytes": size, "hash": found.hexdigest()}


class StoreWriter:
    """Writes a store into an empty folder, chunk by chunk."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files: dict[str, IO[bytes]] = {}
        self.dtypes: dict[str, str] = {}  # of each file
        self.sizes: dict[str, int] = {}  # of each column: how many numbers it has so far

    def add(self, name: str, chunk: Chunk) -> None:
        """Append a chunk to a column."""
        start = self.sizes.get(name, 0)
        self._write(f"{name}.values", chunk.values)
        if chunk.ends is not None:
            first = [0] if name not in self.sizes else []
            self._write(f"{name}.offsets", np.concatenate([first, chunk.ends + start]).astype(np.int64))
        self.sizes[name] = start + len(chunk.values)

    def _write(self, file: str, values: Array) -> None:
        with explained_errors(self.folder.parent):
            if file not in self.files:
                self.files[file] = (self.folder / file).open("wb")
                self.dtypes[file] = values.dtype.str
            assert values.dtype.str == self.dtypes[file]
            self.files[file].write(values.tobytes())

    def finish(self, facts: Mapping[str, Any]) -> None:
        """Write the manifest and close all files."""
        with explained_errors(self.folder.parent):
            for handle in self.files.values():
                handle.flush()
            columns = {
                file: {"dtype": dtype} | size_and_hash(self.folder / file) for file, dtype in self.dtypes.items()
            }
            manifest = {"format": STORE_FORMAT, "columns": columns, "facts": dict(facts)}
            whole = json.dumps(manifest | {CHECKSUM: hash_manifest(manifest, CHECKSUM)}, indent=1)
            (self.folder / "manifest.json").write_text(whole, encoding="utf8")
        self.close()

    def close(self) -> None:
        """Close the files."""
        for handle in self.files.values():
            with contextlib.suppress(OSError):  # an error of writing has already been raised
                handle.close()


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a store; raises DamagedError if it is missing or was changed."""
    try:
        manifest = json.loads((folder / "manifest.json").read_bytes())
        if manifest[CHECKSUM] != hash_manifest(manifest, CHECKSUM) or manifest["format"] != STORE_FORMAT:
            raise DamagedError("the manifest was changed")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DamagedError(f"the manifest cannot be read: {error}") from error
    return dict(manifest)


def open_store(folder: Path) -> Store:
    """Map a store into memory; raises DamagedError if the size or hash of a file is not that of the manifest."""
    manifest = read_manifest(folder)
    arrays: dict[str, Array] = {}
    for file, expected in manifest["columns"].items():
        dtype = np.dtype(expected["dtype"])
        try:
            found = size_and_hash(folder / file)
        except OSError as error:
            raise DamagedError(f"{file} cannot be read: {error}") from error
        if found != {name: expected[name] for name in found}:
            raise DamagedError(f"{file} was changed: it is {found}, not {expected}")
        # An empty file cannot be mapped; and a plain array is faster to index than a memmap.
        arrays[file] = np.asarray(np.memmap(folder / file, dtype, "r")) if found["bytes"] else np.empty(0, dtype)
    names = {file.rpartition(".")[0] for file in arrays}
    ragged = {
        name: RaggedArray(arrays[f"{name}.values"], arrays[f"{name}.offsets"])
        for name in sorted(names)
        if f"{name}.offsets" in arrays
    }
    single = {name: arrays[f"{name}.values"] for name in sorted(names - set(ragged))}
    content = hash_manifest({"columns": manifest["columns"], "labels": manifest["facts"].get("labels")}, CHECKSUM)
    return Store(ragged, single, manifest["facts"], Report(**manifest["facts"]["report"]), content)


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock that other processes wait for; it is released at the end of the block, or when the process ends."""
    if sys.platform == "win32":  # no lock: two processes may both build, and the later one discards its copy
        yield
        return
    import fcntl

    with contextlib.ExitStack() as stack:
        while True:
            handle = stack.enter_context(path.open("w"))
            fcntl.flock(handle, fcntl.LOCK_EX)
            with contextlib.suppress(FileNotFoundError):
                if path.stat().st_ino == os.fstat(handle.fileno()).st_ino:
                    break
            stack.close()  # the previous holder has removed this file: other processes may lock a new one
        stack.callback(path.unlink, missing_ok=True)
        yield


@contextlib.contextmanager
def explained_errors(folder: Path) -> Iterator[None]:
    """Turn the errors of writing a cache into messages that say what the user can do."""
    try:
        yield
    except OSError as error:
        problem = f"cannot write tokenized data to {folder}: {problem_of(error)}"
        raise UserError(f"{problem}; set data.cache to a folder that can be written and has space") from error


class StoreCache:
    """A folder of stores. The name of each contains a hash of everything that it depends on."""

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder).expanduser() if folder else default_cache()

    def lookup(self, name: str) -> Store | None:
        """The store of this name, or None if there is none or it is damaged."""
        try:
            return open_store(self.folder / name)
        except DamagedError:
            return None

    @contextlib.contextmanager
    def building(self, name: str) -> Iterator[StoreWriter | None]:
        """A writer for a new store; None if another process has built it in the meantime."""
        with contextlib.ExitStack() as stack:
            with explained_errors(self.folder):  # not around `yield`: the errors of the caller are not the cache's
                self.folder.mkdir(parents=True, exist_ok=True)
                stack.enter_context(locked(self.folder / f".{name}.lock"))
            if self.lookup(name):
                yield None
                return
            with explained_errors(self.folder):
                for leftover in [*self.folder.glob(f".{name}.part-*"), self.folder / name]:  # left by a killed process
                    shutil.rmtree(leftover, ignore_errors=True)
                part = stack.enter_context(hidden_folder(self.folder / name))
            writer = StoreWriter(part)
            stack.callback(writer.close)
            yield writer
            with explained_errors(self.folder):
                self._publish(part, name)

    def _publish(self, part: Path, name: str) -> None:
        """Give a complete store its final name, unless another process was faster."""
        try:
            publish_folder(part, self.folder / name)
        except OSError:
            if not self.lookup(name):
                raise
