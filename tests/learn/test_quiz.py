"""The quiz: its questions, `clearhead learn quiz`, and what it remembers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clearhead.learn.progress import read_progress
from clearhead.learn.quiz import read_quiz
from command_line import Verb

pytestmark = pytest.mark.usefixtures("folder")


def test_the_quiz_has_three_questions_for_each_chapter() -> None:
    chapters = read_quiz()
    assert len(chapters) == 23
    for chapter in chapters:
        assert len(chapter.questions) == 3
        for question in chapter.questions:
            choices = question.choices()
            assert len(set(choices)) == len(choices) >= 3
            assert question.choices() == choices
            assert len(question.explain) > 20
    first = [question.choices()[0] == question.right for chapter in chapters for question in chapter.questions]
    assert 10 < sum(first) < 40  # the right answer is not always at the same place


def test_the_length_of_an_answer_gives_nothing_away() -> None:
    questions = [question for chapter in read_quiz() for question in chapter.questions]
    longest = sum(len(question.right) > max(map(len, question.wrong)) for question in questions)
    shortest = sum(len(question.right) < min(map(len, question.wrong)) for question in questions)
    assert longest <= 0.4 * len(questions)
    assert shortest <= 0.4 * len(questions)


def letters(chapter: int, right: bool) -> str:
    lines = []
    for question in read_quiz()[chapter].questions:
        wanted = question.right if right else question.wrong[0]
        lines.append("abc"[question.choices().index(wanted)])
    return "\n".join(lines) + "\n"


def test_the_quiz_asks_explains_and_remembers(folder: Path, verb: Verb) -> None:
    masks = [chapter.name for chapter in read_quiz()].index("masks")
    lines, _, code = verb("learn", "quiz", "masks", stdin="what?\n" + letters(masks, right=False))
    assert code == 0
    assert "No: -inf." in " ".join(lines)
    assert any(line.startswith("0 of 3 right.") for line in lines)
    lines, _, _ = verb("learn", "quiz", "masks", stdin=letters(masks, right=True))
    assert any(line.startswith("3 of 3 right.") for line in lines)
    assert "Right. exp(-inf) = 0" in " ".join(lines)
    assert read_progress(folder).quiz == {"masks/1": True, "masks/2": True, "masks/3": True}
    assert "3 of 69 questions" in "".join(verb("learn")[0])


def test_the_quiz_goes_on_where_it_was_left(folder: Path, verb: Verb) -> None:
    first, second = read_quiz()[:2]
    assert first.title in verb("learn", "quiz", stdin=letters(0, right=True)[:2] + "q\n")[0][0]
    assert list(json.loads((folder / "progress.json").read_text())["quiz"]) == ["why-attention/1"]
    verb("learn", "quiz", stdin=letters(0, right=True))
    assert second.title in verb("learn", "quiz")[0][0]
    _, error, code = verb("learn", "quiz", "maks")
    assert (error, code) == ("clearhead: the course has no chapter 'maks'; did you mean 'masks'?", 1)


def test_the_arithmetic_of_the_quiz() -> None:
    """Numbers in answers are computed here."""
    right = {question.key: question.right for chapter in read_quiz() for question in chapter.questions}
    assert int(right["fine-tuning/1"].replace(",", "")) == 8 * 1024 + 1024 * 8
    assert right["encoder-block/1"] == str([2, 8, 4, 4])
    assert right["sizes/1"].startswith(str(4 + 2 * 4))
