"""What a student has done so far: a small JSON file beside the exercises."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from clearhead.config import UserError
from clearhead.files import write_file

FILE = "progress.json"


@dataclass
class ExerciseProgress:
    """What was done with one exercise."""

    checks: int = 0
    hints: int = 0  # that were shown
    passed: bool = False


@dataclass
class Progress:
    """All exercises that were checked, and all questions that were answered."""

    exercises: dict[str, ExerciseProgress] = field(default_factory=dict)
    quiz: dict[str, bool] = field(default_factory=dict)  # question -> whether the last answer was right

    def of(self, name: str) -> ExerciseProgress:
        """The progress in an exercise, which can be changed; it begins here if there is none yet."""
        return self.exercises.setdefault(name, ExerciseProgress())


def make_folder(folder: Path) -> None:
    """Make the folder of a student, unless it is there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot make the folder {folder}: {error.strerror}; choose another: --folder") from error


def read_progress(folder: Path) -> Progress:
    """Read the progress file of a folder; without one, nothing has been done yet."""
    path = folder / FILE
    if not path.exists():
        return Progress()
    try:
        data: dict[str, Any] = json.loads(path.read_text(encoding="utf8"))
        exercises = {name: ExerciseProgress(**values) for name, values in data["exercises"].items()}
        return Progress(exercises, {question: bool(right) for question, right in data["quiz"].items()})
    except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
        raise UserError(f"{path} is damaged ({error}); remove it: only what was done so far is forgotten") from error


def write_progress(progress: Progress, folder: Path) -> None:
    """Write the progress file of a folder."""
    make_folder(folder)
    write_file(folder / FILE, json.dumps(asdict(progress), indent=1, ensure_ascii=False) + "\n")
