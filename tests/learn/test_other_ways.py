"""Mistakes are recognised by what is computed, not by how it is written: other code, with the same mistakes in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from clearhead.learn.catalogue import NAMES, load_exercise
from clearhead.learn.checking import check
from clearhead.learn.pieces import file_name
from other_solutions import OTHER_SOLUTIONS


def test_every_exercise_has_a_second_solution_with_four_mistakes() -> None:
    assert set(OTHER_SOLUTIONS) == set(NAMES)
    assert all(len(solution.mistakes) >= 4 for solution in OTHER_SOLUTIONS.values())


@pytest.mark.parametrize("name", NAMES)
def test_another_way_to_write_it_is_right_and_its_mistakes_are_recognised(name: str, tmp_path: Path) -> None:
    exercise = load_exercise(name)
    path = tmp_path / file_name(name)
    code, mistakes = OTHER_SOLUTIONS[name]
    path.write_text(code)
    verdict = check(exercise, path)
    assert verdict.right, verdict
    found = {}
    for mistake, (old, new) in mistakes.items():
        assert code.count(old) == 1, old
        path.write_text(code.replace(old, new))
        verdict = check(exercise, path)
        found[mistake] = verdict.mistake or f"{verdict.problem} {verdict.lines}"
    assert found == {mistake: mistake for mistake in mistakes}
