"""Student code that goes wrong: what is said of it, in this process and in one of its own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

from clearhead.learn.catalogue import load_exercise
from clearhead.learn.checking import check
from clearhead.learn.comparing import difference
from clearhead.learn.pieces import file_name, solution_path
from clearhead.learn.process import check_in_process
from clearhead.learn.report import learn_console, sentence, show_verdict
from student_files import noam


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


def test_what_a_check_says_reads_well() -> None:
    assert difference(torch.tensor(1.5), torch.tensor(2.0)) == "it is 1.5, expected 2"
    assert sentence("it is 1.5, expected 2") == "It is 1.5, expected 2."
    assert sentence("norm_first is ignored") == "norm_first is ignored."
    assert sentence("ε is spread over the wrong tokens only").startswith("ε is")


def test_what_is_not_recognised_comes_with_something_to_do(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = noam(folder, "return 7.0")
    show_verdict("noam", check(load_exercise("noam"), path), folder, learn_console())
    assert "clearhead learn hint noam" in " ".join(capsys.readouterr().out.split())
    path = folder / "attention.py"
    path.write_text(solution_path("attention").read_text().replace("keys.mT", "keys"))
    verdict = check(load_exercise("attention"), path)
    assert verdict.problem == "your code raises RuntimeError"
    assert "Print the shapes" in verdict.hint


def test_a_file_may_import_its_neighbours(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    (folder / "roots.py").write_text("def root(x):\n    return x**0.5\n")
    path = noam(folder, "return min(1 / root(step), step / warmup**1.5) / root(d_model)")
    path.write_text("from roots import root\n" + path.read_text())
    assert check(load_exercise("noam"), path).right


# --- in a process of its own ------------------------------------------------------------------------------------------


def test_a_loop_without_end_is_stopped_and_shown(folder: Path) -> None:
    path = noam(folder, "print('begun')\nwhile True:\n    try:\n        step += 1\n    except:\n        pass")
    verdict = check_in_process("noam", path, limit=3)
    assert verdict.problem == "it is still running after 3 seconds"
    assert verdict.lines[0].startswith("noam.py, line ")
    assert verdict.printed == "begun"
    assert len(verdict.passed) == 2


def test_a_process_that_is_ended_by_the_students_code(folder: Path) -> None:
    verdict = check_in_process("noam", noam(folder, "import os; os._exit(7)"))
    assert verdict.problem == "your code has ended the process (exit code 7)"
