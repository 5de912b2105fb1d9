"""A check in a process of its own: whatever the student's code does, it ends, and the answer is one verdict."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import traceback
from dataclasses import asdict, replace
from pathlib import Path

from clearhead.learn.pieces import stack_lines
from clearhead.learn.verdict import Verdict

CODE_SECONDS = 10.0  # that the student's code may take in all; a check takes a fraction of one
IMPORT_SECONDS = 120.0  # in which torch must be imported, on the slowest machine
PRINTED_BYTES = 4000  # of what the student's code prints that are kept, the last ones


def check_in_process(name: str, path: Path, limit: float = CODE_SECONDS) -> Verdict:
    """Check a student's file in a new process; what it prints is part of the verdict."""
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "verdict.json"
        command = [sys.executable, "-P", "-m", "clearhead.learn.process", name, str(path), str(answer), str(limit)]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        killer = threading.Timer(
            limit + IMPORT_SECONDS, process.kill
        )  # the process has an earlier time limit of its own
        killer.start()
        try:
            printed = read_end(process)
        finally:
            killer.cancel()
            process.kill()
            process.wait()
        if not answer.exists():
            ended = f"your code has ended the process (exit code {process.returncode})"
            return Verdict([], "the check can finish", ended, printed=printed)
        return replace(Verdict(**json.loads(answer.read_text(encoding="utf8"))), printed=printed)


def read_end(process: subprocess.Popen[bytes]) -> str:
    """Read what a process writes until it ends; return the end of it."""
    assert process.stdout is not None
    end = b""
    while part := os.read(process.stdout.fileno(), 1 << 16):
        end = (end + part)[-PRINTED_BYTES:]
    process.stdout.close()
    return end.decode("utf8", "replace").strip()


# --- in the new process -----------------------------------------------------------------------------------------------


def main(name: str, path: Path, answer: Path, limit: float) -> None:
    """Check a file, and write the verdict as JSON; if that takes too long, write where the code is at that moment."""
    from clearhead.learn.catalogue import load_exercise
    from clearhead.learn.checking import check

    exercise = load_exercise(name)  # imports torch, which does not count
    passed: list[str] = []
    main_thread = threading.get_ident()

    def give_up() -> None:
        lines = stack_lines(traceback.extract_stack(sys._current_frames()[main_thread]), path)
        problem = f"it is still running after {limit:g} seconds"
        hint = "Does a loop never end? This is where it is."
        finish(Verdict(passed, "it comes to an end", problem, hint=hint, lines=lines), answer)

    watchdog = threading.Timer(limit, give_up)
    watchdog.daemon = True
    watchdog.start()
    finish(check(exercise, path, passed), answer)


def finish(verdict: Verdict, answer: Path) -> None:
    """Write the verdict and end the process at once, whatever threads the student's code has started."""
    temporary = answer.with_suffix(f".{threading.get_ident()}")
    temporary.write_text(json.dumps(asdict(verdict)), encoding="utf8")
    temporary.replace(answer)
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), float(sys.argv[4]))
