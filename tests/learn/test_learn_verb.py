"""`clearhead learn`: files, checks in a process of their own, progress, quiz, and pieces in the real model."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import pytest

from clearhead.learn.catalogue import NAMES, load_exercise
from clearhead.learn.checking import check
from clearhead.learn.pieces import file_name, load_solution, make_skeleton, solution_path
from clearhead.learn.process import check_in_process
from clearhead.learn.progress import read_progress
from clearhead.learn.quiz import read_quiz
from clearhead.learn.report import learn_console, show_verdict
from clearhead.learn.using import swapped, use_in_decoding, use_in_training
from command_line import Verb

NOAM = "def learning_rate(step, d_model, warmup):\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a student, below the current one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "learn").mkdir()
    return tmp_path / "learn"


def noam(folder: Path, body: str) -> Path:
    path = folder / "noam.py"
    path.write_text(NOAM + "".join(f"    {line}\n" for line in body.splitlines()), encoding="utf8")
    return path


# --- student code that goes wrong -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "problem", "last_line"),
    [
        ("return 1 / 0", "your code raises ZeroDivisionError", "ZeroDivisionError: division by zero"),
        ("import sys; sys.exit(3)", "your code calls exit()", "SystemExit: 3"),
        ("return learning_rate(step, d_model, warmup)", "a function calls itself without end", "RecursionError: "),
        ("pass", "it returns None: is a `return` missing?", ""),
        ("return", "it returns None: is a `return` missing?", ""),
        ("return (step", "Python cannot read it", "SyntaxError: '(' was never closed"),
        ("return 0.25", "it is 0.25, expected", ""),
    ],
)
def test_what_goes_wrong_is_said_with_the_students_own_lines(
    folder: Path, body: str, problem: str, last_line: str
) -> None:
    verdict = check(load_exercise("noam"), noam(folder, body))
    assert problem in f"{verdict.problem}{verdict.detail}"
    assert (verdict.lines[-1] if verdict.lines else "").startswith(last_line)
    assert all("clearhead" not in line and "site-packages" not in line for line in verdict.lines)


def test_a_traceback_shows_the_line_of_the_error(folder: Path) -> None:
    verdict = check(load_exercise("noam"), noam(folder, "half = 2\nreturn missing * half"))
    assert verdict.lines == [
        "noam.py, line 3, in learning_rate",
        "    return missing * half",
        "NameError: name 'missing' is not defined",
    ]


def test_definitions_that_are_missing_or_have_other_arguments(folder: Path) -> None:
    path = folder / "noam.py"
    path.write_text("rate = 1\n")
    assert check(load_exercise("noam"), path).problem == "learning_rate is missing"
    path.write_text("def learning_rate(step):\n    return 1\n")
    problem = "learning_rate takes (step), but it is called with (step, d_model, warmup)"
    assert check(load_exercise("noam"), path).problem == problem


@pytest.mark.parametrize(
    ("name", "edit", "problem"),
    [
        ("layer-norm", ("mean = x.mean", "x *= 2\n    mean = x.mean"), "it changes its input in place"),
        ("layer-norm", ("mean = x.mean", "x = x.detach()\n    mean = x.mean"), "no gradient reaches input 1"),
        ("layer-norm", ("weight + bias", "weight.double() + bias"), "its numbers are torch.float64"),
        ("layer-norm", ("weight + bias", "weight + bias)[0"), "Python cannot read it"),
        ("layer-norm", ("return (x", "return x[:1]\n    return (x"), "its shape is [1, 5, 8], expected [2, "),
        ("feed-forward", ("nn.Linear(d_model, d_ff)", "nn.Linear(d_model, d_ff, bias=False)"), "up.bias"),
    ],
)  # fmt: skip
def test_contracts_that_are_broken(folder: Path, name: str, edit: tuple[str, str], problem: str) -> None:
    path = folder / file_name(name)
    path.write_text(solution_path(name).read_text().replace(*edit))
    verdict = check(load_exercise(name), path)
    assert problem in verdict.problem
    assert not verdict.mistake


def test_a_file_may_import_its_neighbours(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    (folder / "roots.py").write_text("def root(x):\n    return x**0.5\n")
    path = noam(folder, "return min(1 / root(step), step / warmup**1.5) / root(d_model)")
    path.write_text("from roots import root\n" + path.read_text())
    assert check(load_exercise("noam"), path).right


# --- in a process of its own ------------------------------------------------------------------------------------------


def test_a_loop_without_end_is_stopped_and_shown(folder: Path) -> None:
    path = noam(folder, "print('begun')\nwhile True:\n    try:\n        step += 1\n    except:\n        pass")
    verdict = check_in_process("noam", path, limit=1)
    assert verdict.problem == "it is still running after 1 seconds"
    assert verdict.lines[0].startswith("noam.py, line ")
    assert verdict.printed == "begun"
    assert len(verdict.passed) == 2


def test_a_process_that_is_ended_by_the_students_code(folder: Path) -> None:
    verdict = check_in_process("noam", noam(folder, "import os; os._exit(7)"))
    assert verdict.problem == "your code has ended the process (exit code 7)"


# --- the verb ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checks without a new process, which takes seconds."""

    def check_here(name: str, path: Path) -> object:
        return check(load_exercise(name), path)

    monkeypatch.setattr("clearhead.learn.process.check_in_process", check_here)


def test_the_verb_checks_in_a_process_of_its_own(folder: Path, verb: Verb) -> None:
    noam(folder, "import os; print('here', os.getpid())\nreturn 1.0")
    lines, error, code = verb("learn", "check", "noam")
    assert (error, code) == ("", 1)
    assert lines[-3].strip() == "Your code printed"
    assert lines[-2].startswith("  here ")
    assert str(os.getpid()) not in lines[-2]


@pytest.mark.usefixtures("in_this_process")
def test_from_start_to_done(folder: Path, verb: Verb) -> None:
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


def test_starting(folder: Path, verb: Verb) -> None:
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
    assert read_progress(folder).record("noam").hints == 2


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


# --- quiz -------------------------------------------------------------------------------------------------------------


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


# --- pieces in the real model -----------------------------------------------------------------------------------------

TRAINING = [name for name in NAMES if not load_exercise(name).decodes]


@pytest.mark.parametrize("name", NAMES)
def test_a_piece_is_swapped_in_and_out(name: str) -> None:
    exercise = load_exercise(name)
    patches = exercise.swap(load_solution(name))
    before = [vars(patch.owner)[patch.name] for patch in patches]
    with swapped(patches):
        assert all(vars(patch.owner)[patch.name] is patch.replacement for patch in patches)
    assert [vars(patch.owner)[patch.name] for patch in patches] == before


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """A demo of one layer and few sentences."""
    small = "data.size=120 data.batch_tokens=512 tokenizer.vocab=300 model.layers=1 model.d_model=32 model.d_ff=64"
    monkeypatch.setattr("clearhead.learn.using.SHORT", f"{small} train.samples=0 train.snapshots=0 train.device=cpu")


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("name", TRAINING)
def test_the_demo_trains_with_the_piece_as_with_the_projects_own(
    name: str, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    exercise = load_exercise(name)
    piece = load_solution(name)
    used = count_calls(piece, monkeypatch)
    use_in_training(exercise, piece, 3, learn_console())
    shown = capsys.readouterr().out
    assert re.search(r"The largest difference in 3 steps is \S+: (the same model|your code computes exactly)", shown)
    assert used, "the piece was never called"


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two short sentences to translate."""
    monkeypatch.setattr("clearhead.learn.using.SENTENCES", ("I am hungry.", "Thank you!"))
    monkeypatch.setattr("clearhead.learn.using.EXTRA_TOKENS", 2)


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("name", [name for name in NAMES if name not in TRAINING])
def test_the_translator_translates_with_the_piece_as_with_the_projects_own(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    exercise = load_exercise(name)
    piece = load_solution(name)
    used = count_calls(piece, monkeypatch)
    use_in_decoding(exercise, piece, learn_console())
    shown = capsys.readouterr().out
    assert "2 of 2 translations are the same as with the project's own." in shown
    assert used, "the piece was never called"


@pytest.mark.usefixtures("short")
def test_translations_that_differ_are_shown_beside_the_projects_own(capsys: pytest.CaptureFixture[str]) -> None:
    piece = load_solution("greedy", "argmax(dim=-1)", "argmin(dim=-1)")
    use_in_decoding(load_exercise("greedy"), piece, learn_console())
    shown = capsys.readouterr().out
    assert "✗" in shown
    assert "with the project's own, where" in shown
    assert "0 of 2 translations are the same" in shown


def count_calls(piece: object, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A list that grows with every call of a function or method of a piece."""
    calls: list[str] = []

    def counted(owner: object, name: str) -> None:
        function = vars(owner)[name]

        def call(*arguments: object) -> object:
            calls.append(name)
            return function(*arguments)

        monkeypatch.setattr(owner, name, call)

    for name, value in list(vars(piece).items()):
        if getattr(value, "__module__", "") == getattr(piece, "__name__", ""):
            for owner, attribute in (
                [(value, each) for each in vars(value)] if isinstance(value, type) else [(piece, name)]
            ):
                if callable(vars(owner)[attribute]) and attribute != "__init__":
                    counted(owner, attribute)
    return calls


@pytest.mark.usefixtures("tiny", "in_this_process")
def test_only_what_is_right_is_used_and_errors_in_the_real_model_are_shown(folder: Path, verb: Verb) -> None:
    noam(folder, "return 1.0")
    _, error, code = verb("learn", "use", "noam")
    assert (error, code) == ("clearhead: learn/noam.py is not right yet, so it is not used", 1)
    noam(folder, "assert warmup != 20, 'no'\nreturn min(step**-0.5, step * warmup**-1.5) * d_model**-0.5")
    _, error, code = verb("learn", "use", "noam", "--steps", "2")
    assert code == 1
    assert "your code has failed in the real model" in error
    assert "noam.py, line 2, in learning_rate" in error


# --- the page ---------------------------------------------------------------------------------------------------------


def test_the_page_shows_what_a_check_prints(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "learn.md").read_text(encoding="utf8")
    path = folder / "attention.py"
    path.write_text(solution_path("attention").read_text().replace(" / math.sqrt(queries.size(-1))", ""))
    show_verdict("attention", check(load_exercise("attention"), path), learn_console())
    printed = "\n".join(line.rstrip() for line in capsys.readouterr().out.strip().splitlines())
    assert f"```console\n$ clearhead learn check attention\n{printed}\n```" in page
    assert all(f"`{name}`" in page for name in NAMES)
