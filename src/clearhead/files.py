"""Files that survive a crash: written completely or not at all; and metrics.jsonl, whose last line may be cut off.

To write atomically is to write under a hidden name in the same folder, to flush to the disk (fsync) and to rename: at
every moment the file has all of its old content or all of the new one.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from clearhead.config import UserError, require

LARGEST_METRIC = 1e300
DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

Content = bytes | str | Callable[[Path], object]
Metrics = dict[str, Any]  # one line of metrics.jsonl: kind, step, and the values that this kind has


def write_file(path: Path, content: Content) -> None:
    """Write a file atomically: bytes, text as UTF-8, or whatever a function writes to the path that it is given.

    Symbolic links are followed. Devices such as /dev/stdout are written directly: they must not be replaced.
    """
    try:
        target = path.resolve()
        if target.exists() and not target.is_file():
            _write(target, content)
        else:
            _replace(target, content)
    except OSError as error:
        raise UserError(f"cannot write {path}: {problem_of(error)}") from error


def _replace(path: Path, content: Content) -> None:
    """Write a file under a hidden name, flush it to the disk, and rename it."""
    temporary = path.with_name(f".{os.getpid()}.{path.name}")  # the suffix stays
    try:
        _write(temporary, content)
        _sync(temporary)
        os.replace(temporary, path)
        _sync(path.parent)
    finally:
        with suppress(OSError):
            temporary.unlink()


def _write(path: Path, content: Content) -> None:
    if callable(content):
        content(path)
    elif isinstance(content, str):
        path.write_text(content, encoding="utf8")
    else:
        path.write_bytes(content)


def require_output(path: Path, option: str, suffixes: Sequence[str]) -> None:
    """Refuse a file that an option cannot write, before the work for it is done.

    An option replaces a file, as `>` does, but only one of the kind that it writes. Where there is one kind, a device
    needs no suffix.
    """
    require(not path.is_dir(), f"{option} {path}: this is a folder; name a file in it")
    device = len(suffixes) == 1 and path.exists() and not path.is_file()
    require(device or path.suffix in suffixes, f"{option} {path}: the name must end with {' or '.join(suffixes)}")
    require(path.parent.is_dir(), f"{option} {path}: there is no folder {path.parent}; create it first")


def is_there(path: str | Path) -> bool:
    """Whether a file or folder exists; if its folder may not be entered, that is not known: PermissionError."""
    try:
        os.stat(path)
    except PermissionError:
        raise
    except (OSError, ValueError):  # also what cannot be a name: too long, or with a NUL character
        return False
    return True


def problem_of(error: Exception) -> str:
    """The reason of a write error in words; also for errors that have the system's message but no errno."""
    full = isinstance(error, OSError) and error.errno in DISK_FULL
    if full or any(os.strerror(number) in str(error) for number in DISK_FULL):
        return "the disk is full"
    return (isinstance(error, OSError) and error.strerror) or str(error)


def hash_manifest(manifest: Mapping[str, Any], own: str) -> str:
    """A hash of JSON data, without the entry `own` that stores this hash."""
    rest = {name: value for name, value in manifest.items() if name != own}
    return hashlib.blake2b(json.dumps(rest, sort_keys=True).encode(), digest_size=16).hexdigest()


# --- folders ----------------------------------------------------------------------------------------------------------


@contextmanager
def hidden_folder(final: Path) -> Iterator[Path]:
    """An empty folder beside `final`, to be filled and then published; deleted at the end if it was not."""
    hidden = final.with_name(f".{final.name}.part-{os.getpid()}-{secrets.token_hex(4)}")
    hidden.mkdir()  # tempfile would ignore the umask and make it readable by its owner only
    try:
        yield hidden
    finally:
        shutil.rmtree(hidden, ignore_errors=True)


def require_empty(folder: Path) -> None:
    """Refuse a folder that has files in it, a file, and a folder that cannot be replaced by a finished one."""
    require(not folder.is_file(), f"{folder} is a file, not a folder: choose another name")
    require(not folder.exists() or not any(folder.iterdir()), f"{folder} is not empty: choose another folder")
    fixed = folder.is_mount() or folder.resolve() == Path.cwd()
    require(not fixed, f"{folder} is a mounted disk or the folder that you are in: name a new folder in it")


@contextmanager
def new_folder(final: Path) -> Iterator[Path]:
    """A hidden folder to be filled, which gets its final name if nothing fails; there must be no files under it."""
    try:
        require_empty(final)
        target = final.resolve()  # a symbolic link stays
        target.parent.mkdir(parents=True, exist_ok=True)
        with hidden_folder(target) as hidden:
            yield hidden
            with suppress(FileNotFoundError):
                target.rmdir()  # fails if another process has written files into it meanwhile
            publish_folder(hidden, target)
    except OSError as error:
        raise UserError(f"cannot write the folder {final}: {problem_of(error)}") from error


def publish_folder(hidden: Path, final: Path) -> None:
    """Give a hidden folder its final name, once its files are on the disk; a folder of that name is replaced."""
    for path in hidden.iterdir():
        _sync(path)
    _sync(hidden)
    remove_folder(final)
    hidden.rename(final)
    _sync(final.parent)


def remove_folder(folder: Path) -> None:
    """Delete a folder atomically: under its name there is all of it or nothing."""
    if folder.exists():
        with hidden_folder(folder) as hidden:
            folder.rename(hidden / folder.name)


def _sync(path: Path) -> None:
    """Flush a file, or the names in a folder, to the disk."""
    if os.name == "nt" and path.is_dir():  # Windows cannot open folders
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# --- metrics.jsonl ----------------------------------------------------------------------------------------------------


def read_metrics(run: Path) -> list[Metrics]:
    """All lines of a run's metrics.jsonl, in their order; none if there is no such file.

    Lines that a crash has cut off or damaged are left out. A file without a single good line is refused.
    """
    path = run / "metrics.jsonl"
    if not path.exists():
        return []
    with path.open(encoding="utf8", errors="replace") as file:
        lines = [line for line in file if line.endswith("\n")]  # without its end, a line is not written yet
    rows = [row for line in lines if (row := parse_metrics(line)) is not None]
    require(bool(rows) or not lines, f"{path} is damaged: none of its lines is a line of metrics; remove it")
    return rows


def parse_metrics(line: str) -> Metrics | None:
    """One line of metrics, or None if it is damaged; NaN and infinity of other programs become null, as ours are."""
    try:
        row = json.loads(line, parse_constant=lambda _: None)
    except ValueError:
        return None
    known = isinstance(row, dict) and "kind" in row and type(row.get("step")) is int
    return row if known else None


def is_number(value: object) -> bool:
    """Whether a value of metrics.jsonl is a number, and not so large that sums overflow."""
    return isinstance(value, int | float) and abs(value) < LARGEST_METRIC
