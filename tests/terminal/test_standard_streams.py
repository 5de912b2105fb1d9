"""A full disk, a closed stream, a closed pipe, Ctrl-C: one sentence or none, the documented exit code, no traceback."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from command_line import TRAINED

ROOT = Path(__file__).parents[2]
BARE = {"PYTHONPATH": str(ROOT / "src")}
WALK = f"walk {TRAINED} 'the red car'"
EVALUATE = f"evaluate {TRAINED} data.size=100 --limit 3"
full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")


def shell(line: str) -> tuple[str, int]:
    """Run a command line of bash; return its stderr and the exit code of its first program."""
    command = f"{sys.executable} -m clearhead {line}; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=ROOT, timeout=200)
    return done.stderr, done.returncode


@full
@pytest.mark.parametrize("line", ["--version", "data", "size gpt2", f"plot {TRAINED}", EVALUATE])
def test_a_full_disk_is_an_error_in_a_sentence(line: str) -> None:
    assert shell(f"{line} > /dev/full") == ("clearhead: cannot write the results: No space left on device\n", 1)


def test_closed_streams_are_an_error_only_for_those_who_need_them() -> None:
    assert shell("size gpt2 >&-") == ("clearhead: cannot write the results: Bad file descriptor\n", 1)
    assert shell("size gpt2 <&-") == ("", 0)
    assert shell("size gpt2 2>&-") == ("", 0)
    error, code = shell(f"translate {TRAINED} <&-")
    assert ("clearhead: cannot read stdin: Bad file descriptor" in error, code) == (True, 1)


@full
def test_notes_that_cannot_be_written_are_lost_and_the_exit_code_stays() -> None:
    assert shell("size gpt2 2>/dev/full") == ("", 0)
    assert shell("size nonsense 2>/dev/full") == ("", 1)


@pytest.mark.parametrize("line", ["data", "size gpt2", WALK])
def test_a_reader_that_has_seen_one_line_is_no_error(line: str) -> None:
    assert shell(f"{line} | head -1") == ("", 0)


def test_a_disk_that_fills_in_the_middle_is_an_error_even_if_python_does_not_buffer(
    tmp_path: Path, runs: dict[str, Path]
) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))  # of the size of a file

    command = [sys.executable, "-m", "clearhead", "embed", str(runs["similarity"]), *"abcdef"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    with (tmp_path / "vectors.npy").open("wb") as file:
        done = subprocess.run(
            command, stdout=file, stderr=subprocess.PIPE, env=environment, preexec_fn=limit, timeout=200
        )
    assert (done.stderr, done.returncode) == (b"clearhead: cannot write the results: File too large\n", 1)


INTERRUPTED = """
import os, signal, sys, time
class Finder:
    def find_spec(self, name, *_):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(5)
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Finder())
sys.argv = ["clearhead", "walk", {run!r}, "a"]
from clearhead.__main__ import main
main()
"""


@pytest.mark.parametrize("module", ["cyclopts", "torch", "clearhead.inspect.trace"])
def test_ctrl_c_during_an_import_ends_quietly(module: str) -> None:
    code = INTERRUPTED.format(module=module, run=str(TRAINED))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=200)
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 130)


REPLACED = """
import os, signal, sys
import clearhead.cli
from clearhead.__main__ import main

def replace_interrupt():
    try:
        if {interrupted}:
            os.kill(os.getpid(), signal.SIGINT)
    except KeyboardInterrupt:
        pass
    raise ValueError("no shape")

signal.signal(signal.SIGINT, signal.default_int_handler)
clearhead.cli.main = replace_interrupt
main()
"""


@pytest.mark.parametrize(("interrupted", "code"), [(True, 130), (False, 1)])
def test_ctrl_c_that_c_code_replaces_by_another_error_is_still_ctrl_c(interrupted: bool, code: int) -> None:
    command = [sys.executable, "-c", REPLACED.format(interrupted=interrupted)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert (done.stdout, done.returncode) == ("", code)
    assert (done.stderr == "clearhead: interrupted (no shape)\n") == interrupted


INTERRUPTED_VERB = """
import sys
import clearhead.cli, clearhead.verbs.size

def interrupted(*_):
    raise KeyboardInterrupt

def exit_interrupted():
    print("by exit_interrupted")
    sys.exit(130)

clearhead.verbs.size.size = interrupted
clearhead.cli.exit_interrupted = exit_interrupted
sys.argv = ["clearhead", "size"]
clearhead.cli.main()
"""


def test_ctrl_c_ends_every_verb_by_the_exit_that_knows_of_threads_in_rust() -> None:
    """Python's own exit crashes in such a thread: FATAL: exception not rethrown."""
    done = subprocess.run([sys.executable, "-c", INTERRUPTED_VERB], capture_output=True, text=True, timeout=200)
    assert (done.stdout, done.stderr, done.returncode) == ("by exit_interrupted\n", "", 130)


def test_ctrl_c_is_handled_before_anything_that_takes_time_is_imported() -> None:
    """Of the modules that Python itself does not need; `signal` imports what the script of pip needs anyway."""
    code = "import sys; from clearhead.__main__ import main; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, timeout=200, env=BARE)
    loaded = {name for name in done.stdout.split() if not name.startswith("_")}
    assert {"clearhead.__main__", "signal"} <= loaded
    assert not loaded & {"typing", "re", "contextlib", "warnings", "pathlib", "cyclopts"}
