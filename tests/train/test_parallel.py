"""More processes, the same run: losses and weights are those of one process, whoever stops, resumes or dies."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch.distributed import TCPStore

from clearhead.config import DataConfig, ModelConfig, Recipe, TokenizerConfig, TrainConfig, UserError
from clearhead.data.batches import IGNORE, Batch
from clearhead.recipes import write_recipe
from clearhead.train import loop
from clearhead.train.checkpoint import checkpoint_folders, load_checkpoint
from clearhead.train.folder import restarted_by_torchrun
from clearhead.train.loss import Objective
from clearhead.train.parallel import Group, checkpoint_activations, rendezvous_store
from clearhead.train.prepare import open_train_batches, prepare_tokenizers
from clearhead.train.run import train
from clearhead.train.watching import log
from forked import PROCESSES
from tiny_models import encoder_decoder, encoder_only, random_ids

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="gloo and forkserver as they are on Linux and macOS")

RECIPE = Recipe(
    name="tiny",
    data=DataConfig(corpus="phrasebook", size=300, batch_tokens=512),
    tokenizer=TokenizerConfig(vocab=400),
    model=ModelConfig(d_model=16, d_ff=32, layers=1, heads=2, dropout=0.0),  # tied = "all"
    train=TrainConfig(steps=8, evaluate_every=4, warmup=2, step_tokens=2048, device="cpu", samples=0),
)


def changed(recipe: Recipe, dropout: float = 0.0, **train: Any) -> Recipe:
    model = replace(recipe.model, dropout=dropout)
    return replace(recipe, model=model, train=replace(recipe.train, **train))


@dataclass(frozen=True)
class Job:
    """What each of some processes does."""

    recipe: Recipe
    run: Path
    resume: bool = False
    stop_after: int = 0  # in this step the last process gets a signal:
    by: signal.Signals = signal.SIGTERM
    restart: int = 0  # how often torchrun has started it before; then the last process comes late


def work(job: Job, rank: int, world: int, port: int) -> None:
    """Train as torchrun would have started it; what is said to the user goes into a file."""
    torch.set_num_threads(1)
    log.peak_flops = nominal_peak
    names = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": world, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    names |= {"GROUP_WORLD_SIZE": 1, "TORCHELASTIC_RUN_ID": "test", "TORCHELASTIC_USE_AGENT_STORE": True}
    names |= {"TORCHELASTIC_RESTART_COUNT": job.restart, "TORCHELASTIC_MAX_RESTARTS": 3}
    os.environ.update({name: str(value) for name, value in names.items()})
    if rank == world - 1:
        loop.train_step = interrupted(loop.train_step, job.stop_after, job.by)
        time.sleep(2 * job.restart)
    try:
        train(job.recipe, job.run, job.resume, quiet=True)
    except UserError as error:
        job.run.with_name(f"{job.run.name}-said-{rank}").write_text(str(error))
        sys.exit(1)


def interrupted(train_step: Callable[..., None], at: int, by: signal.Signals) -> Callable[..., None]:
    def step(state: Any, *arguments: Any) -> None:
        if state.step + 1 == at:
            os.kill(os.getpid(), by)
        train_step(state, *arguments)

    return step


def nominal_peak(_: Any) -> float:
    return 1e12  # measuring it takes longer than the tests


@pytest.fixture(autouse=True)
def _no_measuring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "peak_flops", nominal_peak)


def meeting_place() -> TCPStore:
    """The store that torchrun keeps as long as it runs."""
    return TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)


def together(world: int, job: Job, store: TCPStore | None = None) -> list[int | None]:
    """How the processes ended that did a job together."""
    store = store or meeting_place()
    processes = [PROCESSES.Process(target=work, args=(job, rank, world, store.port)) for rank in range(world)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    return [process.exitcode for process in processes]


def losses_of(run: Path) -> list[float]:
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [line["loss"] for line in lines if line["kind"] in ("train", "valid")]


def assert_close(run: Path, other: Path, loss: float = 1e-6, weight: float = 2e-6) -> None:
    """The same losses and weights, but for the order of a sum."""
    assert losses_of(run) == pytest.approx(losses_of(other), rel=loss)
    ours, theirs = load_file(run / "model.safetensors"), load_file(other / "model.safetensors")
    assert ours.keys() == theirs.keys()
    for name, weights in theirs.items():
        # A key's bias adds the same to all scores of a query: its gradient is 0 but for rounding, which Adam blows up.
        if not name.endswith("key.bias"):
            torch.testing.assert_close(ours[name], weights, rtol=0, atol=weight, msg=lambda m, n=name: f"{n}: {m}")


def assert_equal(run: Path, other: Path) -> None:
    """The same losses and weights, bit for bit."""
    assert losses_of(run) == losses_of(other)
    ours, theirs = load_file(run / "model.safetensors"), load_file(other / "model.safetensors")
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Recipe:
    return replace(RECIPE, data=replace(RECIPE.data, cache=str(tmp_path_factory.mktemp("cache"))))


@pytest.fixture(scope="module")
def alone(recipe: Recipe, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of one process."""
    run = tmp_path_factory.mktemp("alone")
    train(recipe, run, quiet=True)
    return run


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


def test_what_is_wrong_is_said_once(recipe: Recipe, tmp_path: Path) -> None:
    run = tmp_path / "run"
    wrong = replace(recipe, model=replace(recipe.model, family="decoder-only"))
    assert together(2, Job(wrong, run)) == [1, 1]
    [said] = [path for path in tmp_path.iterdir() if path != run]
    assert "is for model.family = 'encoder-decoder', not 'decoder-only'" in said.read_text()


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


def test_only_the_torchrun_that_began_a_run_goes_on_unasked(tmp_path: Path) -> None:
    (tmp_path / "launch").write_text("mine")
    assert restarted_by_torchrun(Group(launch="mine", restarted=True), tmp_path)
    assert not restarted_by_torchrun(Group(launch="mine"), tmp_path)
    assert not restarted_by_torchrun(Group(launch="another", restarted=True), tmp_path)
    assert not restarted_by_torchrun(Group(launch="mine", restarted=True), tmp_path / "elsewhere")


def test_restarts_on_several_nodes_need_a_store_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    names = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1", "TORCHELASTIC_USE_AGENT_STORE": "True"}
    for name, value in (names | {"GROUP_WORLD_SIZE": "2", "TORCHELASTIC_MAX_RESTARTS": "3"}).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(UserError, match="TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 and --rdzv-backend=c10d"):
        rendezvous_store(0, 2)


def test_out_of_memory_says_what_to_halve(recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(loop, "train_step", full)
    with pytest.raises(UserError, match=r"data.batch_tokens=256 train.step_tokens=2048"):
        train(recipe, tmp_path / "one", quiet=True)
    with pytest.raises(UserError, match=r"data.batch_tokens=256 train.step_tokens=512"):
        train(changed(recipe, step_tokens=0), tmp_path / "two", quiet=True)


KILLER = """
import os, signal
from clearhead.cli import main
from clearhead.train import loop

train_step = loop.train_step

def dying(state, *arguments):
    if os.environ["RANK"] == "1" and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0" and state.step == 6:
        open("died", "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    train_step(state, *arguments)

loop.train_step = dying
main()
"""


@pytest.mark.long
def test_started_again_they_do_not_wait_for_the_dead(recipe: Recipe, alone: Path, tmp_path: Path) -> None:
    """Their addresses are still there when the first of those who follow looks for the others."""
    store, recipe = meeting_place(), changed(recipe, parallel="fsdp")
    assert together(2, Job(recipe, tmp_path, stop_after=6, by=signal.SIGKILL), store) == [1, -signal.SIGKILL]
    assert load_checkpoint(checkpoint_folders(tmp_path)[-1]).step == 4
    assert together(2, Job(recipe, tmp_path, restart=1), store) == [0, 0]
    assert_close(tmp_path, alone)


@pytest.mark.long
@pytest.mark.slow
def test_a_process_dies_and_the_run_ends_the_same(recipe: Recipe, tmp_path: Path) -> None:
    """torchrun starts all of them again; they go on from the last checkpoint, with dropout as it would have been."""
    recipe = changed(recipe, dropout=0.2)
    assert together(2, Job(recipe, tmp_path / "undisturbed")) == [0, 0]
    write_recipe(recipe, tmp_path / "tiny.toml")
    (tmp_path / "killer.py").write_text(KILLER)
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "--max-restarts=1"]
    command, environment = [*torchrun, "killer.py", "train", "tiny.toml"], os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "died").exists()
    assert_equal(tmp_path / "runs" / "tiny", tmp_path / "undisturbed")
