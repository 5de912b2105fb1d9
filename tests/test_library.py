"""`clearhead.load`: a method that does not fit the task of a run names the verb that does."""

from __future__ import annotations

import copy
import io
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

import clearhead
from clearhead.config import UserError, Weights
from clearhead.decode.translate import SearchSettings
from clearhead.fast.cpu.matrices import ReorderedLinear, has_bfloat16
from clearhead.library import Loaded
from clearhead.runs import write_weights
from clearhead.tasks import TASKS
from tiny_runs import tiny_run

CALLS = {
    "translate": lambda loaded: loaded.translate("a"),
    "nbest": lambda loaded: loaded.nbest("a", SearchSettings()),
    "generate": lambda loaded: loaded.generate("a"),
    "stream": lambda loaded: loaded.stream("a"),
    "chat": lambda loaded: loaded.chat("a"),
    "classify": lambda loaded: loaded.classify("a"),
    "embed": lambda loaded: loaded.embed("a"),
}


@pytest.mark.parametrize("method", CALLS)
def test_the_wrong_method_names_the_right_verb(runs: dict[str, Path], method: str) -> None:
    task, verb = ("language", "generate") if method in ("translate", "nbest") else ("translation", "translate")
    with pytest.raises(UserError, match=rf"was trained for {task} .*; use it with `clearhead {verb}`"):
        CALLS[method](clearhead.load(runs[task]))


def test_conversations_need_a_run_that_was_trained_on_them(runs: dict[str, Path]) -> None:
    with pytest.raises(UserError, match="use it with `clearhead generate`"):
        clearhead.load(runs["language"]).chat("a")
    assert isinstance(clearhead.load(runs["chat"]).generate("a", tokens=3), str)


USES: dict[str, Callable[[Loaded], object]] = {
    "translate": lambda loaded: loaded.translate("a"),
    "generate": lambda loaded: loaded.stream("a", tokens=5),
    "chat": lambda loaded: loaded.chat("a"),
    "classify": lambda loaded: loaded.classify("a"),
    "embed": lambda loaded: loaded.embed("a"),
}


@pytest.mark.parametrize("verb", USES)
def test_a_run_of_another_family_is_refused_with_the_right_verb(verb: str) -> None:
    for run in (
        tiny_run(),
        tiny_run("decoder-only", position="rotary"),
        tiny_run("decoder-only", position="learned", task="chat"),
        tiny_run("encoder-only", head="classes"),
        tiny_run("encoder-only"),
        tiny_run("encoder-only", head="embedding"),
    ):
        verbs = TASKS[run.recipe.data.task].verbs
        if verb in verbs:
            USES[verb](Loaded(run))
            continue
        with pytest.raises(UserError, match=f"use it with `clearhead {verbs[0]}`"):
            USES[verb](Loaded(run))


def test_a_device_that_is_not_here_is_refused(runs: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(UserError, match="device = 'cuda': not available here; try auto"):
        clearhead.load(runs["translation"], device="cuda")
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    with pytest.raises(UserError, match="device = 'cuda:2': not available here; try auto"):
        clearhead.load(runs["translation"], device="cuda:2")


MOVES: dict[str, Callable[[nn.Module], nn.Module]] = {
    "half": lambda model: model.half(),
    "bfloat16": lambda model: model.bfloat16(),
    "double": lambda model: model.double(),
    "to a dtype": lambda model: model.to(torch.bfloat16),
    "deepcopy": copy.deepcopy,
    "torch.save": lambda model: saved_and_loaded(model),
}


def saved_and_loaded(model: nn.Module) -> nn.Module:
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    loaded: nn.Module = torch.load(file, weights_only=False)
    return loaded


@pytest.mark.parametrize("move", MOVES)
@torch.no_grad()
def test_the_model_of_a_run_follows_a_new_precision_and_is_copied_and_saved(move: str) -> None:
    model, ids = clearhead.load().model, torch.arange(1, 9)[None]
    assert any(isinstance(module, ReorderedLinear) for module in model.modules())
    expected = model(ids, ids)
    moved = MOVES[move](model)
    torch.testing.assert_close(moved(ids, ids).float(), expected, rtol=0.2, atol=0.5)
    assert moved(ids, ids).dtype == next(moved.parameters()).dtype


def test_the_model_of_a_run_follows_a_new_device() -> None:
    model = clearhead.load().model.to("meta")
    ids = torch.ones(1, 8, dtype=torch.long, device="meta")
    assert model(ids, ids).is_meta


@pytest.mark.parametrize("stored", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("move", MOVES)
@torch.no_grad()
def test_a_run_whose_file_has_16_bits_follows_too(move: str, stored: torch.dtype, tmp_path: Path) -> None:
    folder = shutil.copytree(clearhead.load().run.folder, tmp_path / "run")
    weights = dict(clearhead.load().model.named_parameters())
    write_weights(weights, folder / "model.safetensors", stored)
    model, ids = clearhead.load(folder).model, torch.arange(1, 9)[None]
    expected = model(ids, ids)
    assert expected.dtype == torch.float32
    torch.testing.assert_close(MOVES[move](model)(ids, ids).float(), expected, rtol=0.2, atol=0.5)


PACKED: tuple[Weights, ...] = ("int8", "float16", "bfloat16") if has_bfloat16() else ("int8", "float16")


@pytest.mark.parametrize("weights", PACKED)
@pytest.mark.parametrize("move", [*MOVES, "state_dict", "to meta"])
def test_packed_weights_are_not_moved_or_copied_and_the_model_stays_as_it_is(move: str, weights: Weights) -> None:
    loaded = clearhead.load(weights=weights)
    before = loaded.translate("a cat")
    moves = MOVES | {"state_dict": lambda model: model.state_dict(), "to meta": lambda model: model.to("meta")}
    with pytest.raises(UserError, match=rf"weights = '{weights}'.*load the run again.*weights='float32'"):
        moves[move](loaded.model)
    assert {parameter.dtype for parameter in loaded.model.parameters()} == {torch.float32}
    assert loaded.translate("a cat") == before
