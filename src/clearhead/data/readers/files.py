"""Find files, decompress them, and read their lines as valid UTF-8.

A line ends at a line feed and nowhere else: U+2028, U+0085 and form feeds are ordinary characters, so the lines of two
aligned files cannot get out of step. Carriage returns before line feeds and a byte order mark are removed; everything
else is kept as it is.
"""

from __future__ import annotations

import fnmatch
import gzip
import hashlib
import io
import itertools
import lzma
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, cast

from clearhead.config import UserError, did_you_mean, require
from clearhead.text.encodings import encoding_of

COMPRESSED = (".gz", ".xz", ".zst")
BINARY = {  # how files begin that are not text -> what they are
    b"PK\3\4": "a zip archive, as .xlsx and .docx are; save it as .csv (UTF-8) or .txt, or unpack it",
    b"%PDF": "a PDF; convert it: pdftotext FILE",
    b"PAR1": "Parquet; convert it to .jsonl (with pandas: read_parquet, to_json(orient='records', lines=True))",
    b"\x1f\x8b": "compressed; add .gz to its name",
}
FORMATS = (".txt", ".tsv", ".csv", ".jsonl", ".ndjson", ".json")


def unpacked_name(path: Path) -> str:
    """The name of a file without the suffix of its compression."""
    return path.name.removesuffix(path.suffix) if path.suffix in COMPRESSED else path.name


def format_of(path: Path) -> str:
    """The suffix of the file's format, in lower case; ".txt" for any unknown one."""
    suffix = Path(unpacked_name(path)).suffix.lower()
    return suffix if suffix in FORMATS else ".txt"


def names_of(path: Path) -> tuple[str, ...]:
    """The names that a pattern can match: with all suffixes, without that of the compression, without any."""
    name = unpacked_name(path)
    stem = name.removesuffix(Path(name).suffix) if Path(name).suffix.lower() in FORMATS else name
    return tuple(dict.fromkeys((path.name, name, stem)))


def listed(names: Iterable[str], most: int = 10) -> str:
    """The first few names, for error messages."""
    first = list(itertools.islice(names, most + 1))
    return ", ".join(first[:most]) + (", ..." if len(first) > most else "")


def entries(folder: Path) -> list[Path]:
    """The entries of a folder, sorted; names that begin with a dot are ignored."""
    try:
        return sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError as error:
        raise UserError(f"{folder} cannot be read: {error.strerror or error}") from error


def visible_files(folder: Path) -> list[Path]:
    """All files below a folder, sorted by path; names that begin with a dot are ignored."""
    found = entries(folder)
    folders = [path for path in found if path.is_dir() and not path.is_symlink()]  # links can form cycles
    return sorted(itertools.chain((path for path in found if path.is_file()), *map(visible_files, folders)))


def matching(folder: Path, pattern: str) -> list[Path]:
    """The files below a folder that match a name, a stem or a pattern; the name of a folder matches all files in it."""
    if (folder / pattern).is_dir():
        return visible_files(folder / pattern)
    above, _, last = pattern.rpartition("/")
    files = [path for path in entries(folder / above) if path.is_file()] if (folder / above).is_dir() else []
    found = [path for path in files if any(fnmatch.fnmatchcase(name, last) for name in names_of(path))]
    is_pattern = any(character in last for character in "*?[")
    require(
        len(found) < 2 or is_pattern,
        f"{pattern!r} can mean {' or '.join(path.name for path in found)} in {folder}; write the whole name",
    )
    return found


def find(folder: Path, pattern: str, setting: str, suffix: str = "") -> list[Path]:
    """The files that a setting names, plus a suffix; if there are none, the error lists those that exist."""
    found = matching(folder, pattern + suffix)
    if not found:
        paths = [path.with_name(names_of(path)[-1]) for path in visible_files(folder)]
        names = {path.relative_to(folder).as_posix() for path in paths}
        present = sorted(name.removesuffix(suffix) for name in names if name.endswith(suffix))
        named_split = setting in ("data.valid", "data.test") and pattern != setting.removeprefix("data.")
        without = f"; without such data, {setting}={setting.removeprefix('data.')}" if named_split else ""
        known = f"it has {listed(present)}{without}" if present else "set data.path=PATH to where the corpus is"
        if present and setting == "data.train":
            aligned = "if line n of one translates line n of the other, name them train.en and train.fr; "
            known += f"; {aligned if len(present) == 2 else ''}data.train=. takes all of them"
        remedy = did_you_mean(pattern, present) or known
        missing = f"no file {pattern}{suffix}" if suffix else "no such file"
        raise UserError(f"{setting} = {pattern!r}: {missing} in {folder}; {remedy}")
    return found


def existing(path: Path, setting: str) -> Path:
    """Return the path if it exists; else the error suggests the most similar name beside it."""
    try:
        if path.exists():
            return path
        parent = next(parent for parent in path.absolute().parents if parent.exists())
    except OSError as error:
        raise UserError(f"{setting} = {str(path)!r} cannot be read: {error.strerror or error}") from error
    names = [each.name for each in entries(parent)] if parent.is_dir() else []
    near = did_you_mean(path.absolute().relative_to(parent).parts[0], names)
    remedy = f"in {parent}, {near}" if near else f"set {setting}=PATH to where the corpus is"
    here = "" if path.is_absolute() else f" in {Path.cwd()}"
    raise UserError(f"{setting} = {str(path)!r} does not exist{here}; {remedy}")


class ZstdReader(io.RawIOBase):
    """The decompressed bytes of a .zst file; unlike the library's own reader, it detects a truncated file."""

    def __init__(self, handle: IO[bytes], new_frame: Callable[[], Any]) -> None:
        self.handle = handle
        self.new_frame = new_frame
        self.frame = new_frame()
        self.ready = b""  # decompressed bytes that have not been read yet
        self.inside = False  # between the first and the last byte of a frame

    def readable(self) -> bool:
        """Required by `io`."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer with the next decompressed bytes and return their number; 0 at the end."""
        while not self.ready:
            compressed = self.frame.unused_data if self.frame.eof else b""
            if self.frame.eof:
                self.frame = self.new_frame()
                self.inside = False
            compressed = compressed or self.handle.read(1 << 17)
            if not compressed:
                if self.inside:
                    raise EOFError("the file ends in the middle of a frame")
                return 0
            self.inside = True
            self.ready = self.frame.decompress(compressed)
        count = min(len(buffer), len(self.ready))
        buffer[:count] = self.ready[:count]
        self.ready = self.ready[count:]
        return count

    def close(self) -> None:
        """Close the compressed file too."""
        self.handle.close()
        super().close()


def open_zstd(path: Path) -> IO[bytes]:
    """Open a .zst file for reading."""
    try:
        import zstandard
    except ImportError as error:
        raise UserError(f"{path}: reading .zst needs the package zstandard; pip install 'clearhead[data]'") from error
    reader = ZstdReader(path.open("rb"), lambda: zstandard.ZstdDecompressor().decompressobj())
    return cast(IO[bytes], reader)


def open_bytes(path: Path) -> IO[bytes]:
    """Open a file for reading; its suffix says how it is compressed."""
    if path.suffix not in COMPRESSED:
        return path.open("rb")
    openers: dict[str, Callable[[Path], Any]] = {".gz": gzip.open, ".xz": lzma.open, ".zst": open_zstd}
    # The buffer finds line ends in C; gzip and lzma do not.
    return cast(IO[bytes], io.BufferedReader(openers[path.suffix](path), 1 << 17))


def is_damage(error: Exception) -> bool:
    """Whether an error means that a compressed file is damaged."""
    damaged = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)
    return isinstance(error, damaged) or type(error).__name__ == "ZstdError"  # by name: perhaps not installed


def raw_lines(path: Path) -> Iterator[bytes]:
    """The lines of a file as bytes, with their line ends; the error about a damaged file names the last good line."""
    number = 0
    try:
        with open_bytes(path) as handle:
            for raw in handle:
                number += 1
                yield raw
    except UserError:
        raise
    except Exception as error:
        if is_damage(error):
            raise UserError(damage(path, number, error)) from error
        if isinstance(error, OSError):
            raise UserError(f"{path} cannot be read: {error.strerror or error}") from error
        raise
    require(number > 0, f"{path} is empty; it must have at least one line")


def damage(path: Path, number: int, error: Exception) -> str:
    """The error message for a damaged compressed file."""
    return f"{path} is damaged after line {number:,} ({error}); download or compress it again"


def read_lines(path: Path) -> Iterator[str]:
    """The lines of a file as text, each with its line feed, which the last one may lack."""
    start = 0
    for number, raw in enumerate(raw_lines(path), 1):
        try:
            line = raw.decode()
        except UnicodeDecodeError as error:
            raise UserError(not_utf8(path, number, start, raw, error.start)) from error
        if "\0" in line:
            raise UserError(not_utf8(path, number, start, raw, raw.index(0)))
        start += len(raw)
        if number == 1:
            line = line.removeprefix("\ufeff")
        yield line[:-2] + "\n" if line.endswith("\r\n") else line


def not_utf8(path: Path, number: int, start: int, raw: bytes, wrong: int) -> str:
    """The error message for a line with a byte that is not UTF-8 text."""
    first = next(raw_lines(path))
    for beginning, kind in BINARY.items():
        if first.startswith(beginning):
            return f"{path} is not plain text, but {kind}"
    encoding = encoding_of(raw, start)
    if encoding.startswith("UTF-16"):
        return f"{path} is {encoding}, not UTF-8; convert it: iconv -f {encoding} -t UTF-8"
    where = f"{path}:{number}: byte {start + wrong:,} of the file"
    if raw[wrong] == 0:
        return f"{where} is NUL: this is not plain text, or is UTF-16 (convert it: iconv -f UTF-16LE -t UTF-8)"
    return (
        f"{where} (0x{raw[wrong]:02x}, {wrong:,} bytes into the line) is not UTF-8; fix that line or convert the file, "
        f"for example: iconv -f {encoding} -t UTF-8"
    )


def digest_of(paths: Sequence[Path]) -> str:
    """A hash of the names and the bytes of files."""
    whole = hashlib.blake2b(digest_size=16)
    for path in paths:
        try:
            state = path.stat()
            content = digest_of_content(path, state.st_ino, state.st_size, state.st_mtime_ns)
        except OSError as error:
            raise UserError(f"{path} cannot be read: {error.strerror or error}") from error
        whole.update(f"{path.name}\0{content}\0".encode())
    return whole.hexdigest()


@lru_cache(maxsize=4096)  # one process needs the hashes of the same files repeatedly
def digest_of_content(path: Path, *_: int) -> str:
    """A hash of a file's bytes; inode, size and time are in the cache key, so that a changed file is read again."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "blake2b").hexdigest()
