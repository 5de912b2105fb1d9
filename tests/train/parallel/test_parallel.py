"""More processes, the same run: losses and weights are those of one process, however many stop and resume."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from clearhead.config import DataConfig, Recipe, TrainConfig
from clearhead.data.batches import IGNORE, Batch
from clearhead.train.checkpoint import checkpoint_folders, load_checkpoint
from clearhead.train.loss import Objective
from clearhead.train.parallel import Group, checkpoint_activations
from clearhead.train.prepare import open_train_batches, prepare_tokenizers
from clearhead.train.run import train
from several_processes import Job, assert_close, assert_equal, changed, losses_of, together
from tiny_models import encoder_decoder, encoder_only, random_ids

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="gloo and forkserver as they are on Linux and macOS")


@pytest.mark.parametrize("world", [2, 4])
@pytest.mark.parametrize("parallel", ["ddp", "fsdp"])
def test_processes_learn_what_one_learns(
    parallel: str, world: int, recipe: Recipe, alone: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    assert together(world, Job(changed(recipe, parallel=parallel), run)) == [0] * world
    assert_close(run, alone)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run"]


@pytest.mark.long
def test_a_run_moves_between_processes_and_ways_to_share(recipe: Recipe, alone: Path, tmp_path: Path) -> None:
    """Two with whole models, stopped by a signal to one of them; then four with parts; then one."""
    assert together(2, Job(recipe, tmp_path, stop_after=3)) == [0, 0]
    assert load_checkpoint(checkpoint_folders(tmp_path)[-1]).step == 3
    assert together(4, Job(changed(recipe, parallel="fsdp"), tmp_path, resume=True, stop_after=6)) == [0] * 4
    assert load_checkpoint(checkpoint_folders(tmp_path)[-1]).step == 6
    train(recipe, tmp_path, resume=True, quiet=True)
    assert_close(tmp_path, alone)


@pytest.mark.parametrize("parallel", ["ddp", "fsdp"])
def test_resumed_by_as_many_is_never_stopped(parallel: str, recipe: Recipe, tmp_path: Path) -> None:
    """With dropout, whose random numbers each process has for itself."""
    recipe, whole, stopped = changed(recipe, dropout=0.2, parallel=parallel), tmp_path / "whole", tmp_path / "stopped"
    assert together(2, Job(recipe, whole)) == [0, 0]
    assert together(2, Job(recipe, stopped, stop_after=3)) == [0, 0]
    states = load_checkpoint(checkpoint_folders(stopped)[-1]).tensors["random"]
    assert not torch.equal(states["cpu.0"], states["cpu.1"])
    assert together(2, Job(recipe, stopped, resume=True)) == [0, 0]
    assert_equal(stopped, whole)


def test_sharded_matrices_learn_by_muon_and_frozen_ones_do_not(recipe: Recipe, tmp_path: Path) -> None:
    """Muon computes in bfloat16, so the order of a sum shows earlier."""
    recipe = changed(recipe, optimiser="muon", freeze="encoder.* *.embedding.*", samples=1)
    train(recipe, tmp_path / "one", quiet=True)
    assert together(2, Job(changed(recipe, parallel="fsdp"), tmp_path / "two")) == [0, 0]
    assert_close(tmp_path / "two", tmp_path / "one", loss=1e-5, weight=2e-4)


def test_activations_computed_again_are_the_same(recipe: Recipe, tmp_path: Path) -> None:
    recipe = changed(recipe, dropout=0.2, steps=3)
    train(recipe, tmp_path / "kept", quiet=True)
    train(changed(recipe, dropout=0.2, checkpoint_activations=True), tmp_path / "again", quiet=True)
    assert_equal(tmp_path / "again", tmp_path / "kept")


def test_activations_are_computed_again(recipe: Recipe) -> None:
    model, calls = encoder_decoder(dtype=torch.float32), []
    model.decoder.blocks[0].feed_forward.register_forward_hook(lambda *_: calls.append(1))
    checkpoint_activations(model)
    model(random_ids(2, 5), random_ids(2, 4)).sum().backward()
    assert len(calls) == 2


def test_sharded_half_precision_is_close(recipe: Recipe, tmp_path: Path) -> None:
    recipe = replace(
        recipe, data=replace(recipe.data, size=30, batch_tokens=128)
    )  # slow on CPUs that are not made for it
    half = changed(recipe, precision="bfloat16", steps=2, evaluate_every=0, step_tokens=256)
    train(half, tmp_path / "one", quiet=True)
    settings = {"parallel": "fsdp", "checkpoint_activations": True}
    assert together(2, Job(changed(half, **settings), tmp_path / "two")) == [0, 0]
    assert losses_of(tmp_path / "two") == pytest.approx(losses_of(tmp_path / "one"), rel=2e-3)
    assert all(w.dtype == torch.float32 for w in load_file(tmp_path / "two" / "model.safetensors").values())


@pytest.mark.parametrize(("world", "count"), [(1, 4), (2, 4), (3, 6), (8, 8)])
def test_any_number_of_processes_can_share_a_step(recipe: Recipe, world: int, count: int) -> None:
    """Its tokens are divided into as many micro-batches as are needed; where possible, they stay as they are."""
    tokenizers = prepare_tokenizers(recipe)
    hands = [open_train_batches(recipe, tokenizers, rank, world) for rank in range(world)]
    assert {len(hand) for hand in hands} == {count // world}
    assert sorted(each.rank for hand in hands for each in hand) == list(range(count))
    assert {each.budget for hand in hands for each in hand} == {2048 // count}
    assert sum(next(each.epoch(0)).tokens for hand in hands for each in hand) <= 2048


def test_three_processes_train_what_one_micro_batch_was_made_for(recipe: Recipe, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert together(3, Job(changed(recipe, step_tokens=0, steps=2), run)) == [0, 0, 0]
    assert (run / "model.safetensors").is_file()


def test_evaluation_is_dealt_out_and_nobody_waits() -> None:
    batches = [Batch({"ids": random_ids(n, 3)}, random_ids(n, 3)) for n in range(1, 6)]
    hands = [list(Group(rank, 3).split(iter(batches))) for rank in range(3)]
    assert [[batch.tokens for batch in hand] for hand in hands] == [[3, 12], [6, 15], [9, 0]]


@pytest.mark.parametrize("similarity", ["contrastive", "regression"])
def test_blank_batches_teach_nothing(similarity: str) -> None:
    model = encoder_only(dtype=torch.float32, head="embedding")
    recipe = Recipe(data=DataConfig(task="similarity"), train=TrainConfig(similarity=similarity))
    batch = Batch({"ids": random_ids(6, 4)}, torch.rand(3)).blank()
    assert (batch.tokens, batch.targets.unique().tolist()) == (0, [IGNORE])
    Objective(model, recipe)(batch).backward()
    assert all(p.grad is not None and not p.grad.any() for p in model.parameters())
