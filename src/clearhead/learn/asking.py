"""Asking the questions of a chapter on the terminal, or through a pipe: one answer a line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from clearhead.learn.quiz import Chapter, Question
from clearhead.learn.report import command
from clearhead.terminal.drawing import indented

LETTERS = "abcdef"
QUIT = ("q", "quit", "exit")


def ask_chapter(chapter: Chapter, folder: Path, console: Console) -> Iterator[tuple[str, bool]]:
    """Ask all questions of a chapter and explain the answers; yield each question's key, and whether it was right."""
    console.print(Text(chapter.title, style="bold").append(f"  ({chapter.name}; q quits)", style="dim"))
    right = asked = 0
    for question in chapter.questions:
        answer = ask(question, console)
        if answer is None:
            break
        asked += 1
        right += answer == question.right
        explain(question, answer, console)
        yield question.key, answer == question.right
    if asked:
        console.print(f"\n{right} of {asked} right. ", Text("Next: ").append_text(command(folder, "quiz")))


def ask(question: Question, console: Console) -> str | None:
    """Ask until there is an answer; None if there is none: at the end of the input, or after q."""
    choices = question.choices()
    console.print(Text(f"\n{question.number}. {question.ask}"))
    table = Table.grid(padding=(0, 1))
    for letter, choice in zip(LETTERS, choices, strict=False):
        table.add_row(Text(f"{letter})", style="cyan"), Text(choice))
    console.print(indented(table))
    letters = LETTERS[: len(choices)]
    while True:
        console.print(f"{'/'.join(letters)}? ", end="")
        line = sys.stdin.readline()
        if not sys.stdin.isatty():
            console.print(line.strip())
        given = line.strip().lower().rstrip(").")
        if not line or given in QUIT:
            return None
        if given in letters and len(given) == 1:
            return choices[letters.index(given)]


def explain(question: Question, answer: str, console: Console) -> None:
    """Say whether an answer is right, and why."""
    if answer == question.right:
        said = Text("Right. ", style="bold green")
    else:
        said = Text("No: ", style="bold red").append(f"{question.right}. ", style="bold")
    console.print(indented(said.append(question.explain, style="not bold default")))
