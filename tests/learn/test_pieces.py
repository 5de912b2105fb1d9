"""`clearhead learn use`: pieces of a student in the real model."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from clearhead.config import Recipe
from clearhead.learn.catalogue import NAMES, load_exercise
from clearhead.learn.pieces import load_solution
from clearhead.learn.report import learn_console
from clearhead.learn.using import swapped, use_in_decoding, use_in_training
from clearhead.train.run import train
from command_line import Verb
from student_files import noam

pytestmark = pytest.mark.usefixtures("folder")

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
    monkeypatch.setattr(
        "clearhead.learn.using.SHORT_DEMO", f"{small} train.samples=0 train.snapshots=0 train.device=cpu"
    )


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


@pytest.mark.usefixtures("tiny")
def test_lora_adapts_weights_that_were_trained_before(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def record(recipe: Recipe, run: Path, **settings: bool) -> None:
        seen.append((recipe.train.lora, Path(recipe.train.init).name))
        train(recipe, run, **settings)

    monkeypatch.setattr("clearhead.learn.using.train", record)
    use_in_training(load_exercise("lora"), load_solution("lora"), 2, learn_console())
    assert seen == [(0, ""), (8, "trained"), (8, "trained")]


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two short sentences to translate."""
    monkeypatch.setattr("clearhead.learn.using.SENTENCES", ("I am hungry.", "Thank you!"))
    monkeypatch.setattr("clearhead.learn.using.FEW_SENTENCES", ("I am hungry.", "Thank you!"))
    monkeypatch.setattr("clearhead.learn.using.EXTRA_DEMO_TOKENS", 2)


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
