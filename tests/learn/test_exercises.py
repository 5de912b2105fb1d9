"""Every exercise: the skeleton is not written yet, the solution is right, each mistake is called by its name."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import pytest

from clearhead.learn.catalogue import NAMES, OWN, load_exercise
from clearhead.learn.checking import NOT_WRITTEN, check
from clearhead.learn.pieces import describe, file_name, make_skeleton, solution_path

SOURCE = Path(__file__).parents[2] / "src" / "clearhead"
each_exercise = pytest.mark.parametrize("name", NAMES)
each_mistake = pytest.mark.parametrize(
    ("name", "number"), [(name, number) for name in NAMES for number in range(len(load_exercise(name).mistakes))]
)


def written(name: str, text: str, folder: Path) -> Path:
    path = folder / file_name(name)
    path.write_text(text, encoding="utf8")
    return path


def test_there_are_as_many_files_as_exercises() -> None:
    for pattern in ("exercises/*.py", "exercises/*.toml", "solutions/*.py"):
        files = {path.stem for path in (SOURCE / "learn").glob(pattern)} - {"__init__"}
        assert files == {Path(file_name(name)).stem for name in NAMES}


@each_exercise
def test_the_solution_is_right(name: str, tmp_path: Path) -> None:
    verdict = check(load_exercise(name), written(name, solution_path(name).read_text(), tmp_path))
    assert verdict.right, verdict


@each_exercise
def test_the_skeleton_is_valid_python_that_is_not_written_yet(name: str, tmp_path: Path) -> None:
    solution = solution_path(name).read_text()
    skeleton = make_skeleton(solution)
    verdict = check(load_exercise(name), written(name, skeleton, tmp_path))
    assert NOT_WRITTEN in verdict.problem
    assert ast.get_docstring(ast.parse(skeleton)) == ast.get_docstring(ast.parse(solution))
    assert "return" not in "".join(line for line in skeleton.splitlines() if line.startswith("    return"))


@each_mistake
def test_each_mistake_is_called_by_its_name(name: str, number: int, tmp_path: Path) -> None:
    exercise = load_exercise(name)
    mistake = exercise.mistakes[number]
    solution = solution_path(name).read_text()
    assert solution.count(mistake.old) == 1
    verdict = check(exercise, written(name, solution.replace(mistake.old, mistake.new), tmp_path))
    assert (verdict.mistake, verdict.hint) == (mistake.name, mistake.hint), verdict


def test_a_mistake_that_would_have_failed_before_is_not_the_one(tmp_path: Path) -> None:
    """-1e9 in the place of -inf passes two cases with masks; scores of 0 give the same in the last case only."""
    exercise = load_exercise("attention")
    others = [mistake for mistake in exercise.mistakes if "-1e9" not in mistake.new]
    text = (
        solution_path("attention")
        .read_text()
        .replace("-math.inf", "-1e9")
        .replace("torch.where(mask, weights, 0.0)", "weights")
    )
    verdict = check(replace(exercise, mistakes=others), written("attention", text, tmp_path))
    assert verdict.failed == "a query that may attend to nothing gives 0"
    assert not verdict.mistake


@each_exercise
def test_formulas_of_an_exercise_fit_into_80_columns(name: str) -> None:
    _, idea = describe(name)
    assert all(len(line) <= 76 for line in idea.splitlines() if line.startswith("    ")), name


@each_exercise
def test_an_exercise_has_all_that_a_student_needs(name: str) -> None:
    exercise = load_exercise(name)
    title, idea = describe(name)
    assert exercise.name == name
    assert len({mistake.name for mistake in exercise.mistakes}) >= 4
    assert len(exercise.hints) >= 2
    assert 0 < len(title) <= 44
    assert len(idea) > 100


@each_exercise
def test_the_projects_own_implementation_is_where_it_is_said_to_be(name: str) -> None:
    for place in OWN[name].split("; "):
        file, _, definitions = place.partition(", ")
        code = (SOURCE / file).read_text()
        for words in definitions.split(" and "):
            for word in words.split("."):
                assert f"def {word}(" in code or f"class {word}" in code, f"{file} has no {word}"
