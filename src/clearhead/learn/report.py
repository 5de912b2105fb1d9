"""What `clearhead learn` prints: the list of exercises, the idea of one, the verdict of a check."""

from __future__ import annotations

import shlex
from pathlib import Path

from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from clearhead.learn.catalogue import NAMES, OWN
from clearhead.learn.pieces import describe, file_name
from clearhead.learn.progress import ExerciseProgress, Progress
from clearhead.learn.quiz import Chapter, count_right
from clearhead.learn.verdict import Verdict
from clearhead.terminal.console import plain_console
from clearhead.terminal.drawing import indented
from clearhead.terminal.program import program_name

FOLDER = Path("learn")  # where the files of a student are, unless --folder says otherwise
MAX_WIDTH = 100  # characters of a line
PRINTED_LINES = 20  # of what a student's code prints that are shown


def learn_console() -> Console:
    """The console of this verb: not wider than what is pleasant to read."""
    return plain_console(width=min(MAX_WIDTH, plain_console().width))


def command(folder: Path, *words: str) -> Text:
    """How to call this verb for a folder, in bold."""
    where = () if folder == FOLDER else ("--folder", shlex.quote(str(folder)))
    return Text(" ".join((program_name(), "learn", *words, *where)), style="bold")


def show_exercises(progress: Progress, folder: Path, chapters: list[Chapter], console: Console) -> None:
    """Print all exercises with what is done, and what to do next."""
    console.print(Text("Rebuild a Transformer, piece by piece", style="italic"))
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(justify="right", style="dim")
    for number, name in enumerate(NAMES, 1):
        mark, state = state_of(progress.of(name), (folder / file_name(name)).exists())
        table.add_row(str(number), mark, Text(name, style="bold cyan"), describe(name)[0], Text(state, style="dim"))
    console.print(table)
    passed = sum(exercise.passed for exercise in progress.exercises.values())
    questions = [question for chapter in chapters for question in chapter.questions]
    right = count_right(questions, progress.quiz)
    console.print(
        f"\n{passed} of {len(NAMES)} done; {right} of {len(questions)} questions of the quiz answered right\n"
    )
    console.print(Text("Next: ").append_text(next_command(progress, folder)))


def state_of(exercise: ExerciseProgress, begun: bool) -> tuple[Text, str]:
    """The mark of an exercise, and in words what was done with it."""
    if exercise.passed:
        return Text("✓", style="green"), count(exercise.checks, "check")
    return (Text("…", style="yellow"), "begun") if begun else (Text(" "), "")


def count(number: int, noun: str) -> str:
    """A number with its noun."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def next_name(progress: Progress) -> str:
    """The first exercise that is not done; empty if all are."""
    return next((name for name in NAMES if not progress.of(name).passed), "")


def next_command(progress: Progress, folder: Path) -> Text:
    """What to call next."""
    name = next_name(progress)
    if not name:
        return command(folder, "quiz")
    return command(folder, "check" if (folder / file_name(name)).exists() else "start", name)


def show_idea(name: str, path: Path, console: Console) -> None:
    """Print what an exercise is about, after its file was written."""
    title, idea = describe(name)
    console.print(Text(title, style="bold"))
    for paragraph in idea.split("\n\n"):
        formula = paragraph.startswith(" ")
        text = Text(paragraph if formula else " ".join(paragraph.split()), no_wrap=formula)
        console.print(indented(text, 1))
    console.print()
    console.print(f"Wrote {path}: write the code where it says so, then", soft_wrap=True)
    console.print(Text("  ").append_text(command(path.parent, "check", name)), soft_wrap=True)
    console.print(
        Text("  ").append_text(command(path.parent, "hint", name)).append("    if you are stuck", style="dim"),
        soft_wrap=True,
    )


def show_verdict(name: str, verdict: Verdict, folder: Path, console: Console) -> None:
    """Print the claims that hold, and the first thing that is wrong."""
    console.print(Text(name, style="bold"))
    for claim in verdict.passed:
        console.print(Text.assemble(("  ✓ ", "green"), claim))
    if not verdict.right:
        console.print(Text.assemble(("  ✗ ", "red"), verdict.failed))
        console.print(indented(Text(sentence(verdict.problem), style="bold"), 1))
        if verdict.hint:
            console.print(indented(Text(verdict.hint)))
        if verdict.detail:
            console.print(indented(Text(sentence(verdict.detail), style="dim")))
        if verdict.lines:
            console.print(indented(Text("\n".join(verdict.lines), style="yellow"), 1))
        if not verdict.hint:
            console.print(Text("\n  A hint: ").append_text(command(folder, "hint", name)), soft_wrap=True)
    if verdict.printed:
        lines = verdict.printed.splitlines()[-PRINTED_LINES:]
        console.print(Text("\n  Your code printed", style="dim"))
        console.print(indented(Text("\n".join(lines))))
    console.print()


def sentence(text: str) -> str:
    """A text with a capital and a full stop."""
    first = text.split(" ")[0]
    capital = text[:1] if "_" in first or not first.isascii() else text[:1].upper()  # not for norm_first, nor for ε
    return f"{capital}{text[1:]}{'' if text.endswith(('.', '?')) else '.'}"


def show_praise(name: str, progress: Progress, folder: Path, console: Console) -> None:
    """Print what to do with a piece that is right."""
    console.print(Text("All right.", style="bold green"), f"The project's own is in src/clearhead/{OWN[name]}.\n")
    console.print(Text("Use it:  ").append_text(command(folder, "use", name)), soft_wrap=True)
    if next_name(progress):
        console.print(Text("Go on:   ").append_text(next_command(progress, folder)), soft_wrap=True)
    else:
        console.print("You have rebuilt all of it.")


def show_code(text: str, console: Console) -> None:
    """Print Python code: with colours on a terminal, else as it is."""
    if console.is_terminal:
        console.print(Syntax(text, "python", theme="ansi_dark", background_color="default", word_wrap=True))
    else:
        console.print(Text(text), soft_wrap=True, end="")
