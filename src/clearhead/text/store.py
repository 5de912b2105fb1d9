"""Tokenized text on disk: columns of numbers, mapped into memory, so that a corpus of any size opens at once.

A store is a folder: `NAME.values` holds the numbers of all rows one after the other, `NAME.offsets` where each row
begins (one more than there are rows; a column of single numbers has none), `manifest.json` what there should be. It is
built in a hidden folder beside and renamed when it is whole: who looks finds all of it or nothing.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from clearhead.config import UserError
from clearhead.text.report import Report

FORMAT = 1  # of the files; part of every key
Array = npt.NDArray[Any]
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class DamagedError(Exception):
    """A store that is not what its manifest says."""


class Chunk(NamedTuple):
    """Some more numbers of a column, and where in them rows end (None: every number is a row)."""

    values: Array
    ends: Array | None


@dataclass(frozen=True)
class Column:
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

    ragged: dict[str, Column]
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


class Writer:
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
        if file not in self.files:
            self.files[file] = (self.folder / file).open("wb")
            self.kinds[file] = values.dtype.str
        assert values.dtype.str == self.kinds[file]
        self.files[file].write(values.tobytes())

    def finish(self, facts: Mapping[str, Any]) -> None:
        """Write the manifest and see all of it to the disk."""
        sizes = {file: handle.tell() for file, handle in self.files.items()}
        columns = {file: {"dtype": kind, "bytes": sizes[file]} for file, kind in self.kinds.items()}
        manifest = {"format": FORMAT, "columns": columns, "facts": dict(facts)}
        self.files["manifest.json"] = (self.folder / "manifest.json").open("wb")
        self.files["manifest.json"].write(json.dumps(manifest | {"checksum": checksum(manifest)}, indent=1).encode())
        for handle in self.files.values():
            handle.flush()
            os.fsync(handle.fileno())
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
    """Map a store into memory; raises DamagedError unless every file has the size it should have."""
    manifest = read_manifest(folder)
    arrays: dict[str, Array] = {}
    for file, expected in manifest["columns"].items():
        size = (folder / file).stat().st_size if (folder / file).exists() else -1
        if size != expected["bytes"]:
            raise DamagedError(f"{file} has {size} bytes, not {expected['bytes']}")
        kind = np.dtype(expected["dtype"])
        # Nothing cannot be mapped; and a plain view is faster to index than a memmap.
        arrays[file] = np.asarray(np.memmap(folder / file, kind, "r")) if size else np.empty(0, kind)
    names = {file.rpartition(".")[0] for file in arrays}
    ragged = {
        name: Column(arrays[f"{name}.values"], arrays[f"{name}.offsets"])
        for name in sorted(names)
        if f"{name}.offsets" in arrays
    }
    single = {name: arrays[f"{name}.values"] for name in sorted(names - set(ragged))}
    return Store(ragged, single, manifest["facts"], Report(**manifest["facts"]["report"]))


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock that other processes wait for; it ends with the process, however that ends."""
    with path.open("w") as handle:
        if sys.platform != "win32":  # elsewhere two processes may both build; the later one throws its copy away
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


class Cache:
    """A folder of stores, each under a name that contains a hash of all that it depends on."""

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder).expanduser() if folder else default_cache()

    @contextlib.contextmanager
    def _complaints(self) -> Iterator[None]:
        """Turn what the disk says into what the user can do."""
        try:
            yield
        except OSError as error:
            if error.errno in FULL:
                problem = "the disk is full; free some space, or set data.cache to a folder with more"
            else:
                problem = f"{error.strerror or error}; set data.cache to a folder that can be written"
            raise UserError(f"cannot write tokenized text to {self.folder}: {problem}") from error

    def lookup(self, name: str) -> Store | None:
        """The store of this name, if there is one and it is whole."""
        try:
            return open_store(self.folder / name)
        except DamagedError:
            return None

    @contextlib.contextmanager
    def building(self, name: str) -> Iterator[Writer | None]:
        """A writer for a store that is not there yet; None if another process has built it meanwhile."""
        final = self.folder / name
        with self._complaints():
            self.folder.mkdir(parents=True, exist_ok=True)
            with locked(self.folder / f".{name}.lock"):
                if self.lookup(name):
                    yield None
                    return
                for leftover in [*self.folder.glob(f".{name}.part-*"), final]:  # of a process that was killed
                    shutil.rmtree(leftover, ignore_errors=True)
                part = Path(tempfile.mkdtemp(prefix=f".{name}.part-", dir=self.folder))
                writer = Writer(part)
                try:
                    yield writer
                    part.rename(final)
                except FileExistsError:
                    if not self.lookup(name):
                        raise
                finally:
                    writer.close()
                    shutil.rmtree(part, ignore_errors=True)
