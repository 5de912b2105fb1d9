"""`clearhead learn`: exercises that rebuild each part of a Transformer, with checks; and a quiz."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

from clearhead.config import UserError, require
from clearhead.verbs.options import Flag

Action = Literal["list", "start", "check", "hint", "solution", "use", "quiz"]


def learn(
    action: Action = "list",
    name: str = "",
    *,
    folder: Path = Path("learn"),
    steps: int = 60,
    again: Flag = False,
    yes: Flag = False,
) -> None:
    """Learn by rebuilding: exercises with checks that name the mistake, your pieces in a real model, a quiz.

    Parameters
    ----------
    action
        list: what there is and what is done. start: write a skeleton into the folder. check: the first thing that is
        wrong. hint: one more each time. solution: the code. use: your piece in a real model. quiz: questions.
    name
        An exercise, or a chapter of the quiz; without one, the next.
    folder
        Where your files and your progress are.
    steps
        use: steps to train.
    again
        start: overwrite the file with a new skeleton.
    yes
        solution: show it without asking.

    """
    if action == "list":
        list_exercises(folder)
    elif action == "start":
        start(name, folder, again)
    elif action == "check":
        sys.exit(0 if check(name, folder) else 1)
    elif action == "hint":
        hint(name, folder)
    elif action == "solution":
        solution(name, folder, yes)
    elif action == "use":
        use(name, folder, steps)
    else:
        quiz(name, folder)


def list_exercises(folder: Path) -> None:
    """Print all exercises with what is done."""
    from clearhead.learn.progress import read_progress
    from clearhead.learn.quiz import read_quiz
    from clearhead.learn.report import learn_console, show_exercises

    show_exercises(read_progress(folder), folder, read_quiz(), learn_console())


def start(name: str, folder: Path, again: bool) -> None:
    """Write the skeleton of an exercise, by default of the first that is not begun."""
    from clearhead.files import write_file
    from clearhead.learn.catalogue import NAMES, find_name
    from clearhead.learn.pieces import file_name, make_skeleton, solution_path
    from clearhead.learn.progress import make_folder
    from clearhead.learn.report import learn_console, show_idea

    if not name:
        name = next((each for each in NAMES if not (folder / file_name(each)).exists()), "")
        require(bool(name), f"all exercises are begun in {folder}; check one: clearhead learn check {NAMES[0]}")
    name = find_name(name)
    path = folder / file_name(name)
    require(
        again or not path.exists(),
        f"{path} exists already: check it with clearhead learn check {name}, or overwrite it with --again",
    )
    make_folder(folder)
    write_file(path, make_skeleton(solution_path(name).read_text(encoding="utf8")))
    show_idea(name, path, learn_console())


def find_file(name: str, folder: Path) -> tuple[str, Path]:
    """Return an exercise that is begun, and its file; without a name, the one that was changed last."""
    from clearhead.learn.catalogue import NAMES, find_name
    from clearhead.learn.pieces import file_name

    if name:
        name = find_name(name)
        path = folder / file_name(name)
        require(path.is_file(), f"there is no {path} yet; begin it with clearhead learn start {name}")
        return name, path
    begun = [(each, folder / file_name(each)) for each in NAMES if (folder / file_name(each)).is_file()]
    require(bool(begun), f"no exercise is begun in {folder}; begin one with clearhead learn start {NAMES[0]}")
    return max(begun, key=lambda both: both[1].stat().st_mtime)


def check(name: str, folder: Path, quiet: bool = False) -> bool:
    """Check a file in a process of its own, print the verdict, remember it; return whether all is right."""
    from clearhead.learn.process import check_in_process
    from clearhead.learn.progress import read_progress, write_progress
    from clearhead.learn.report import learn_console, show_praise, show_verdict

    name, path = find_file(name, folder)
    progress = read_progress(folder)
    verdict = check_in_process(name, path)
    exercise = progress.of(name)
    if not exercise.passed:
        exercise.checks += 1
    exercise.passed = exercise.passed or verdict.right
    write_progress(progress, folder)
    console = learn_console()
    if not (quiet and verdict.right):
        show_verdict(name, verdict, folder, console)
    if verdict.right and not quiet:
        show_praise(name, progress, folder, console)
    return verdict.right


def hint(name: str, folder: Path) -> None:
    """Print the hints of an exercise so far, and one more."""
    from clearhead.learn.catalogue import load_exercise
    from clearhead.learn.progress import read_progress, write_progress
    from clearhead.learn.report import command, learn_console

    name, _ = find_file(name, folder)
    hints = load_exercise(name).hints
    progress = read_progress(folder)
    exercise = progress.of(name)
    exercise.hints = min(exercise.hints + 1, len(hints))
    write_progress(progress, folder)
    console = learn_console()
    for number, text in enumerate(hints[: exercise.hints], 1):
        console.print(f"{number} of {len(hints)}: {text}")
    if exercise.hints == len(hints):
        console.print("\nThat is all. The code itself:", command(folder, "solution", name), soft_wrap=True)


def solution(name: str, folder: Path, yes: bool) -> None:
    """Print the solution of an exercise; if it is not done yet, ask first."""
    from clearhead.learn.catalogue import find_name
    from clearhead.learn.pieces import solution_path
    from clearhead.learn.progress import read_progress
    from clearhead.learn.report import learn_console, show_code

    name = find_name(name or find_file(name, folder)[0])
    done = read_progress(folder).of(name).passed
    if not (done or yes):
        require(sys.stdin.isatty(), f"{name} is not done yet; --yes shows its solution all the same")
        sys.stderr.write(f"{name} is not done yet. Show the solution all the same? [y/N] ")
        sys.stderr.flush()
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            return
    show_code(solution_path(name).read_text(encoding="utf8"), learn_console())


def use(name: str, folder: Path, steps: int) -> None:
    """Check a piece, then train the demo with it, or translate with it, beside the project's own."""
    require(steps >= 2, f"--steps {steps}: must be at least 2")
    name, path = find_file(name, folder)
    if not check(name, folder, quiet=True):
        raise UserError(f"{path} is not right yet, so it is not used")

    from clearhead.learn.catalogue import load_exercise
    from clearhead.learn.pieces import load_piece, student_lines
    from clearhead.learn.report import learn_console
    from clearhead.learn.using import use_in_decoding, use_in_training

    exercise = load_exercise(name)
    console = learn_console()
    try:
        if exercise.decodes:
            use_in_decoding(exercise, load_piece(path), console)
        else:
            use_in_training(exercise, load_piece(path), steps, console)
    except UserError:
        raise
    except Exception as error:
        lines = student_lines(error, path)
        if len(lines) == 1:  # the error is not in the student's file
            raise
        raise UserError("\n  ".join(("your code has failed in the real model:", *lines))) from error


def quiz(name: str, folder: Path) -> None:
    """Ask the questions of a chapter, by default of the first that is not answered right."""
    from clearhead.learn.asking import ask_chapter
    from clearhead.learn.progress import read_progress, write_progress
    from clearhead.learn.quiz import find_chapter, next_chapter
    from clearhead.learn.report import learn_console

    progress = read_progress(folder)
    chapter = find_chapter(name) if name else next_chapter(progress.quiz)
    console = learn_console()
    if chapter is None:
        console.print("You have answered all questions right. Name a chapter to repeat it: clearhead learn quiz masks")
        return
    for key, right in ask_chapter(chapter, folder, console):
        progress.quiz[key] = right
        write_progress(progress, folder)
