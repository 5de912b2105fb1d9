"""`clearhead learn`: files, checks, hints, solutions and progress."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from clearhead.learn.catalogue import NAMES, load_exercise
from clearhead.learn.checking import check
from clearhead.learn.pieces import make_skeleton, solution_path
from clearhead.learn.progress import read_progress
from clearhead.learn.report import learn_console, show_verdict
from command_line import Verb
from student_files import noam

pytestmark = pytest.mark.usefixtures("folder")


def test_the_verb_checks_in_a_process_of_its_own(folder: Path, verb: Verb) -> None:
    noam(folder, "import os; print('here', os.getpid())\nreturn 1.0")
    lines, error, code = verb("learn", "check", "noam")
    assert (error, code) == ("", 1)
    assert lines[-3].strip() == "Your code printed"
    assert lines[-2].startswith("  here ")
    assert str(os.getpid()) not in lines[-2]


@pytest.mark.usefixtures("in_this_process")
def test_an_exercise_is_started_checked_and_done(folder: Path, verb: Verb) -> None:
    lines, _, code = verb("learn", "start", "noam")
    assert code == 0
    assert lines[0] == "The paper's learning rate"
    assert (folder / "noam.py").read_text() == make_skeleton(solution_path("noam").read_text())
    lines, error, code = verb("learn", "check", "noam")
    assert (error, code) == ("", 1)
    assert "  `learning_rate` is not written yet." in lines
    noam(folder, "return max(step**-0.5, step * warmup**-1.5) * d_model**-0.5")
    lines, _, code = verb("learn", "check")
    assert code == 1
    assert "  The larger of the two is taken." in [line.rstrip() for line in lines]
    (folder / "noam.py").write_text(solution_path("noam").read_text())
    lines, _, code = verb("learn", "check")
    assert code == 0
    assert any(line.startswith("All right. The project's own is in src/clearhead/train/schedule.py") for line in lines)
    lines, _, _ = verb("learn")
    listed = [" ".join(line.split()) for line in lines]
    assert "13 ✓ noam The paper's learning rate 3 checks" in listed
    assert f"1 of {len(NAMES)} done" in "".join(lines)


def test_start_replaces_a_file_only_with_again(folder: Path, verb: Verb) -> None:
    assert verb("learn", "start")[2] == 0
    assert (folder / "bpe.py").is_file()
    _, error, code = verb("learn", "start", "bpe")
    assert code == 1
    assert "learn/bpe.py exists already" in error
    (folder / "bpe.py").write_text("mine")
    assert verb("learn", "start", "bpe", "--again")[2] == 0
    assert "mine" not in (folder / "bpe.py").read_text()
    assert verb("learn", "start", "layer_norm", "--folder", "other")[0][-2].endswith("check layer-norm --folder other")
    _, error, code = verb("learn", "start", "atention")
    assert (error, code) == ("clearhead: there is no exercise 'atention'; did you mean 'attention'?", 1)


@pytest.mark.parametrize("action", ["check", "hint", "use"])
def test_what_is_not_begun_is_refused(verb: Verb, action: str) -> None:
    _, error, code = verb("learn", action, "beam")
    assert code == 1
    assert error == "clearhead: there is no learn/beam.py yet; begin it with clearhead learn start beam"
    assert "no exercise is begun in learn" in verb("learn", action)[1]


def test_hints_come_one_by_one(folder: Path, verb: Verb) -> None:
    verb("learn", "start", "noam")
    first = verb("learn", "hint", "noam")[0]
    second = verb("learn", "hint")[0]
    assert first[0].startswith("1 of 2: ")
    assert second[: len(first)] == first
    assert "That is all" in "".join(second)
    assert verb("learn", "hint")[0] == second
    assert read_progress(folder).of("noam").hints == 2


@pytest.mark.usefixtures("in_this_process")
def test_a_solution_is_shown_when_it_is_done_or_wanted(folder: Path, verb: Verb) -> None:
    _, error, code = verb("learn", "solution", "noam")
    assert (error, code) == ("clearhead: noam is not done yet; --yes shows its solution all the same", 1)
    lines, _, _ = verb("learn", "solution", "noam", "--yes")
    assert "\n".join(lines) + "\n" == solution_path("noam").read_text()
    (folder / "noam.py").write_text("\n".join(lines))
    assert verb("learn", "check", "noam")[2] == 0
    assert verb("learn", "solution", "noam")[0] == lines


def test_a_folder_that_cannot_be_made_is_an_error_with_a_remedy(tmp_path: Path, verb: Verb) -> None:
    (tmp_path / "file").write_text("")
    _, error, code = verb("learn", "start", "noam", "--folder", "file")
    assert (error, code) == ("clearhead: cannot make the folder file: File exists; choose another: --folder", 1)


def test_damaged_progress_is_an_error_with_a_remedy(folder: Path, verb: Verb) -> None:
    (folder / "progress.json").write_text("[1, 2")
    _, error, code = verb("learn")
    assert code == 1
    assert "learn/progress.json is damaged" in error
    assert "remove it" in error


def test_the_page_shows_what_a_check_prints(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "learn.md").read_text(encoding="utf8")
    path = folder / "attention.py"
    path.write_text(solution_path("attention").read_text().replace(" / math.sqrt(queries.size(-1))", ""))
    show_verdict("attention", check(load_exercise("attention"), path), folder, learn_console())
    printed = "\n".join(line.rstrip() for line in capsys.readouterr().out.strip().splitlines())
    assert f"```console\n$ clearhead learn check attention\n{printed}\n```" in page
    assert all(f"`{name}`" in page for name in NAMES)
