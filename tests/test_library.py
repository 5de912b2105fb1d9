"""`clearhead.load`: a method that does not fit the task of a run names the verb that does."""

from __future__ import annotations

import copy
import io
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

import clearhead
from clearhead.config import UserError
from clearhead.decode.translate import SearchSettings
from clearhead.fast.cpu.matrices import ReorderedLinear
from clearhead.library import Loaded
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


@pytest.mark.parametrize("move", [name for name in MOVES if name != "double"])
def test_packed_weights_cannot_be_moved_or_copied_and_the_error_says_what_to_do(move: str) -> None:
    model = clearhead.load(weights="int8").model
    with pytest.raises(UserError, match=r"weights = 'int8'.*load the run again.*weights='float32'"):
        MOVES[move](model)
