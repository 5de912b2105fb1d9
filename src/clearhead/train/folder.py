"""The run folder that training writes into: who may write there, and whether a resumed run is still the same run.

A folder that contains anything else, even a hidden file, is not written to. A lock prevents two processes from training
into one folder. What a run was started with (settings, tokenizer, labels, data) must be the same when it is resumed.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import FrameType

from clearhead.config import Recipe, UserError, require
from clearhead.files import problem_of, remove_folder, write_file
from clearhead.recipes import differences, load_recipe, write_recipe
from clearhead.runs import TOKENIZER_FILES, Facts, read_facts, require_started
from clearhead.text.words import WORDS_FILE
from clearhead.train.checkpoint import checkpoint_folders
from clearhead.train.parallel import Group
from clearhead.train.stopping import handle_stop_signals

LOCK = ".lock"  # the file stays in a run; the lock on it is released by the system when the process ends in any way
DIGITS = b"0123456789\n"
UNFINISHED = re.compile(r"\.\d+\.")  # how the name begins under which `write_file` writes
START_FILES = (*TOKENIZER_FILES, "facts.json")  # written before run.toml, and again by the next start
BEFORE_FIRST_STEP = {LOCK, *START_FILES, "run.toml", "launch", WORDS_FILE, "metrics.jsonl", "snapshots"}

MAY_CHANGE = (  # settings that may differ when a run is resumed
    *("train.steps", "train.evaluate_every", "train.patience", "train.device", "train.compile", "data.cache"),
    *("train.samples", "train.snapshots", "train.tensorboard", "train.parallel", "train.checkpoint_activations"),
    *("train.wandb", "train.learning_rate"),
)


@contextmanager
def locked_folder(run: Path, resume: bool) -> Iterator[None]:
    """Lock a run folder, which is created if needed; refuse one that may not be written."""
    with ExitStack() as stack:
        if not is_lock(run / LOCK):
            require_usable(run, resume)  # before the lock file is written: the folder may not be a run
        created = not run.exists()
        if created:
            stack.enter_context(removed_by_signals(run))
        try:
            run.mkdir(parents=True, exist_ok=True)
            stack.enter_context(lock(run))
        except OSError as error:
            problem = f"cannot write into the run folder {run}: {problem_of(error)}"
            raise UserError(f"{problem}; make it writable, or choose another with --run") from error
        require_usable(run, resume)
        try:
            yield
        except BaseException:
            if created:
                remove_if_unused(run)
            raise


@contextmanager
def removed_by_signals(run: Path) -> Iterator[None]:
    """Remove a folder if a signal stops the training before its first step.

    A signal may end the process without an exception: SIGTERM does, and so does Ctrl-C during an import. So the folder
    is removed first, and then the signal is handled as it would have been.
    """

    def interrupted(kind: int, _: FrameType | None) -> None:
        remove_if_unused(run)
        signal.signal(kind, before[kind])
        signal.raise_signal(kind)

    with handle_stop_signals(interrupted) as before:
        yield


def remove_if_unused(run: Path) -> None:
    """Remove a folder of this process in which no step was taken: there is no checkpoint and no line of metrics."""
    with suppress(OSError):
        names = {name for name in os.listdir(run) if not UNFINISHED.match(name)}
        begun = not names <= BEFORE_FIRST_STEP or ("metrics.jsonl" in names and (run / "metrics.jsonl").stat().st_size)
        if not begun and not other_process(run):
            remove_folder(run)


@contextmanager
def lock(run: Path) -> Iterator[None]:
    """Lock the run folder, or raise a UserError that names the process that has locked it."""
    handle = os.open(run / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        if not lock_file(handle):
            other = os.read(handle, 32).decode(errors="replace").strip()
            raise UserError(
                f"{run} is in use: process {other or 'unknown'} is training into it; wait for it, stop it with "
                f"`kill {other or 'PROCESS'}` (it saves first), or choose another folder with --run DIR"
            )
        os.ftruncate(handle, 0)
        os.write(handle, f"{os.getpid()}\n".encode())
        yield
    finally:
        os.close(handle)


def require_own_folder(run: Path) -> None:
    """Raise a UserError if the folder is gone, or another process has locked it since: what is saved would be lost."""
    require(run.is_dir(), f"the run folder {run} is gone: it was removed or renamed during the training")
    other = other_process(run)
    require(
        not other,
        f"the run folder {run} was replaced: process {other} is training into it now; nothing more is saved there",
    )


def other_process(run: Path) -> str:
    """The number of the process that has locked a folder, if it is not this one; empty if the folder has no lock."""
    try:
        locked_by = (run / LOCK).read_text(encoding="utf8", errors="replace").strip()
    except OSError:  # some network disks have none
        return ""
    return locked_by if locked_by.isdigit() and int(locked_by) != os.getpid() else ""


def lock_file(handle: int) -> bool:
    """Whether this process could lock an open file; without locks (Windows, some network disks) it always could."""
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def require_usable(run: Path, resume: bool) -> None:
    """Raise a UserError unless the folder is missing, empty, or holds a run that is to be resumed and can be."""
    require(not run.exists() or run.is_dir(), f"{run} is a file, not a folder; choose another with --run DIR")
    names = names_in(run)
    another = "start another run with --run DIR"
    if "run.toml" not in names:
        found = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
        require(not names, f"{run} is not empty: it holds {found}, but no run to resume (no run.toml); {another}")
    elif checkpoint_folders(run):
        require(resume, f"{run} already holds a run; --resume continues it; or {another}")
    elif "model.safetensors" in names:
        raise UserError(
            f"{run} holds a trained model without checkpoints/, so there is nothing to resume, and training again "
            f"would overwrite it; {another}; train.init={run} begins with its weights"
        )
    else:
        require_started(run)
        require(resume, f"{run} already holds a run that has no checkpoint yet; --resume starts it again; or {another}")


def names_in(run: Path) -> list[str]:
    """The names in a folder, without the lock and what an aborted start left with it before it wrote run.toml."""
    names = sorted(path.name for path in run.iterdir()) if run.is_dir() else []
    begun = is_lock(run / LOCK)
    return [name for name in names if not (begun and (name in (LOCK, *START_FILES) or UNFINISHED.match(name)))]


def is_lock(path: Path) -> bool:
    """Whether this is the lock file of a training: it has the number of a process, or nothing yet."""
    return path.is_file() and not path.is_symlink() and path.stat().st_size < 32 and not path.read_bytes().strip(DIGITS)


def restarted_by_torchrun(group: Group, run: Path) -> bool:
    """Whether the same torchrun that began this run has restarted its processes, because one of them died."""
    launch = run / "launch"
    return group.restarted and launch.is_file() and launch.read_text(encoding="utf8") == group.launch


def save_start(recipe: Recipe, facts: Facts, run: Path, launch: str) -> None:
    """Write what a run is started with: all settings, the facts of its data, and the id of its torchrun, if any."""
    facts.write(run / "facts.json")
    write_recipe(recipe, run / "run.toml")
    (run / "launch").unlink(missing_ok=True)
    if launch:
        write_file(run / "launch", launch)


def require_unchanged(recipe: Recipe, facts: Facts, run: Path) -> None:
    """Raise a UserError unless the settings and the data are those that the run was started with."""
    saved = load_recipe(str(run / "run.toml"))
    changed = [line for line in differences(recipe, saved) if not line.startswith(MAY_CHANGE)]
    before = read_facts(run / "facts.json")
    another = "start another run with --run DIR"
    # Sizes that follow from the data: if nothing else has changed, the messages below say more.
    derived = [line for line in changed if line.startswith(("model.vocab", "model.source_vocab", "model.classes"))]
    require(
        not changed or changed == derived,
        f"{run} was started with another recipe: {'; '.join(changed)}; {another}",
    )
    require(
        not (run / "facts.json").exists() or facts.labels == before.labels,
        f"{run} was started with the labels {', '.join(before.labels)}, and the data now has "
        f"{', '.join(facts.labels)}; put the old labels back, or {another}",
    )
    require(
        not before.data or before.data == facts.data,
        f"the training data is not what {run} was started with; put the old data back, or {another}",
    )
    require(not changed, f"{run} was started with other data or another tokenizer: {'; '.join(changed)}; {another}")
