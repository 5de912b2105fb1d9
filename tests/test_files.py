"""Files are written completely or not at all, and metrics are read in one way."""

from __future__ import annotations

import os
import random
import signal
import stat
import time
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
import torch

from clearhead.config import UserError
from clearhead.files import (
    hidden_folder,
    is_there,
    new_folder,
    publish_folder,
    read_metrics,
    remove_folder,
    require_output,
    write_file,
)
from clearhead.runs import write_weights
from ordinary_user import as_ordinary_user, folder_for_all


def full(_: object) -> None:
    raise OSError(28, "No space left on device")


def test_a_file_is_written_from_bytes_text_or_a_function(tmp_path: Path) -> None:
    path = tmp_path / "it.txt"
    write_file(path, b"\xff\x00")
    assert path.read_bytes() == b"\xff\x00"
    write_file(path, "é\n")
    assert path.read_bytes() == "é\n".encode()
    suffixes = []

    def write(temporary: Path) -> None:
        suffixes.append(temporary.suffix)
        temporary.write_text("mine")

    write_file(path, write)
    assert (path.read_text(), suffixes) == ("mine", [".txt"])
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "it.txt"
    write_file(path, "old")
    with pytest.raises(UserError, match=r"^cannot write .*it\.txt: the disk is full$"):
        write_file(path, full)
    with pytest.raises(ZeroDivisionError):
        write_file(path, lambda temporary: temporary.write_text("new") / 0)
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UserError, match="the disk is full"):
        write_file(path, "new")
    assert [file.read_text() for file in tmp_path.iterdir()] == ["old"]
    with pytest.raises(UserError, match=r"below\.txt: Not a directory"):
        write_file(path / "below.txt", "new")


def test_links_are_followed_and_devices_stay_devices(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "file")
    write_file(tmp_path / "link", "through it")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == "through it"
    write_file(Path("/dev/null"), "nothing")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


def test_killed_while_writing_the_old_or_the_new_file_is_there(tmp_path: Path) -> None:
    path = tmp_path / "it"
    write_file(path, b"\0" * 300_000)
    random.seed(0)
    for _ in range(20):
        child = os.fork()
        if child == 0:
            for number in range(10_000):
                write_file(path, bytes([number % 256]) * 300_000)
            os._exit(0)
        time.sleep(random.uniform(0.001, 0.03))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        content = path.read_bytes()
        assert content == content[:1] * 300_000


def test_a_folder_appears_and_disappears_completely(tmp_path: Path) -> None:
    final = tmp_path / "final"
    for text in ("first", "second"):  # the second replaces the first
        with hidden_folder(final) as hidden:
            (hidden / "a").write_text(text)
            assert hidden.parent == tmp_path
            publish_folder(hidden, final)
        assert [path.read_text() for path in final.iterdir()] == [text]
    with pytest.raises(ZeroDivisionError), hidden_folder(final) as hidden:
        raise ZeroDivisionError
    assert [path.read_text() for path in final.iterdir()] == ["second"]
    remove_folder(final)
    remove_folder(final)  # there is none: nothing to do
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="File name too long"):
        write_file(tmp_path / ("x" * 300), "text")
    with folder_for_all() as folder:
        folder.chmod(0)
        with as_ordinary_user():
            with pytest.raises(UserError, match=r"cannot write .*file: Permission denied"):
                write_file(folder / "file", "text")
            with pytest.raises(UserError, match=r"cannot write the folder .*new: Permission denied"):
                new_folder(folder / "new").__enter__()


def test_a_folder_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(UserError, match="file is a file, not a folder: choose another name"), new_folder(file):
        pass
    with pytest.raises(UserError, match=r"cannot write the folder .*inside"), new_folder(file / "inside"):
        pass
    with pytest.raises(UserError, match="new: the disk is full"), new_folder(tmp_path / "new") as hidden:
        full(hidden)
    assert list(tmp_path.iterdir()) == [file]


def test_folders_and_weights_have_the_permissions_that_the_umask_allows(tmp_path: Path) -> None:
    for umask, folder_mode, file_mode in ((0o022, 0o755, 0o644), (0o002, 0o775, 0o664), (0o077, 0o700, 0o600)):
        before = os.umask(umask)
        try:
            with hidden_folder(tmp_path / "final") as hidden:
                write_weights({"a": torch.zeros(3)}, hidden / "model.safetensors")
                publish_folder(hidden, tmp_path / "final")
        finally:
            os.umask(before)
        assert (tmp_path / "final").stat().st_mode & 0o777 == folder_mode
        assert (tmp_path / "final" / "model.safetensors").stat().st_mode & 0o777 == file_mode


GOOD = b'{"kind": "train", "step": 1, "loss": 2.5}\n'


@pytest.mark.parametrize(
    "bad",
    [b'{"kind": "train", "st', b"[]\n", b"\0\0\0\0\n", b'{"kind": "train"}\n', b'{"kind": "a", "step": 2, "x": "\xc3'],
)
def test_damaged_lines_of_metrics_are_left_out(tmp_path: Path, bad: bytes) -> None:
    assert read_metrics(tmp_path) == []
    (tmp_path / "metrics.jsonl").write_bytes(GOOD + bad)
    assert read_metrics(tmp_path) == [{"kind": "train", "step": 1, "loss": 2.5}]
    if bad.endswith(b"\n"):
        (tmp_path / "metrics.jsonl").write_bytes(bad)
        with pytest.raises(UserError, match=r"metrics\.jsonl is damaged"):
            read_metrics(tmp_path)


def test_an_option_replaces_a_file_of_its_kind_only(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("mine")
    (tmp_path / "old.html").write_text("<p>")
    require_output(tmp_path / "old.html", "--html", (".html",))
    require_output(Path("/dev/null"), "--html", (".html",))
    with pytest.raises(UserError, match=r"--html .*notes\.md: the name must end with \.html$"):
        require_output(tmp_path / "notes.md", "--html", (".html",))
    with pytest.raises(UserError, match=r"--plot .*notes\.md: the name must end with \.png or \.svg$"):
        require_output(tmp_path / "notes.md", "--plot", (".png", ".svg"))
    with pytest.raises(UserError, match="this is a folder; name a file in it"):
        require_output(tmp_path, "--html", (".html",))


def finish_first(other: AbstractContextManager[Path], hidden: Path) -> None:
    """Another process writes the same folder, and has finished it before this one."""
    (hidden / "a").write_text("ours")
    with other as theirs:
        (theirs / "a").write_text("theirs")


def test_a_new_folder_replaces_neither_a_link_nor_files_that_came_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "large disk").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "large disk")
    with new_folder(tmp_path / "link") as hidden:
        (hidden / "a").write_text("ours")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "large disk" / "a").read_text() == "ours"
    first, second = new_folder(tmp_path / "both"), new_folder(tmp_path / "both")
    with pytest.raises(UserError, match="Directory not empty"), second as hidden:
        finish_first(first, hidden)
    assert (tmp_path / "both" / "a").read_text() == "theirs"
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    for fixed in (Path(), Path("..", "here")):
        with pytest.raises(UserError, match="the folder that you are in: name a new folder in it"):
            new_folder(fixed).__enter__()


def test_a_folder_that_may_not_be_entered_is_not_taken_for_a_missing_one() -> None:
    assert (is_there("/"), is_there("/nowhere"), is_there("x" * 300), is_there("a\0b")) == (True, False, False, False)
    with folder_for_all() as folder:
        (folder / "closed").mkdir(0o700)
        with as_ordinary_user(), pytest.raises(PermissionError):
            is_there(folder / "closed" / "run")
        (folder / "closed").chmod(0o755)
