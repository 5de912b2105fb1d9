"""Training is exact: split, stopped, resumed or killed, a run learns what it would have learned."""

from __future__ import annotations

import json
import math
import os
import random
import shutil
import signal
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from clearhead.config import DataConfig, ModelConfig, Recipe, TokenizerConfig, TrainConfig, UserError
from clearhead.data.batches import IGNORE, Batch
from clearhead.train.checkpoint import Checkpoint, checkpoint_folders, load_checkpoint, save_checkpoint
from clearhead.train.lora import add_lora
from clearhead.train.loss import Objective, similarity_of
from clearhead.train.muon import STEPS, Muon, orthogonalise
from clearhead.train.optimiser import make_optimisers
from clearhead.train.prepare import batches_from_step
from clearhead.train.run import train
from clearhead.train.schedule import learning_rate
from tiny_models import decoder_only, encoder_decoder, random_ids


@pytest.mark.parametrize("schedule", ["cosine", "linear", "stable", "constant"])
def test_schedules_rise_to_the_rate_and_fall_to_the_end(schedule: str) -> None:
    config = TrainConfig(schedule=schedule, learning_rate=0.5, warmup=10, final=0.1)
    rates = [learning_rate(config, 64, step, 100) for step in range(1, 101)]
    assert rates[:10] == pytest.approx([0.05 * step for step in range(1, 11)])
    assert max(rates) == pytest.approx(0.5)
    assert rates[-1] == pytest.approx(0.5 if schedule == "constant" else 0.05)
    assert all(a >= b for a, b in pairwise(rates[9:]))


def test_noam_is_the_papers() -> None:
    config = TrainConfig(schedule="noam", learning_rate=1.0, warmup=4000)
    assert learning_rate(config, 512, 1, 1) == pytest.approx(512**-0.5 * 4000**-1.5)
    assert learning_rate(config, 512, 4000, 1) == pytest.approx(512**-0.5 * 4000**-0.5)
    assert learning_rate(config, 512, 16_000, 1) == pytest.approx(512**-0.5 * 16_000**-0.5)


@pytest.mark.parametrize("optimiser", ["adamw", "muon"])
def test_every_parameter_has_one_optimiser_and_only_matrices_decay(optimiser: str) -> None:
    model = encoder_decoder(dtype=torch.float32)
    optimisers = make_optimisers(model, TrainConfig(optimiser=optimiser, weight_decay=0.1))
    groups = [group for o in optimisers for group in o.param_groups]
    held = [p for group in groups for p in group["params"]]
    assert sorted(map(id, held)) == sorted(map(id, model.parameters()))
    for group in groups:
        assert all((p.dim() >= 2) == (group["weight_decay"] > 0) for p in group["params"])
    if optimiser == "muon":
        muon = optimisers[1]
        embedding = model.decoder.embedding.weight
        assert all(p is not embedding for group in muon.param_groups for p in group["params"])


@pytest.mark.parametrize("optimiser", ["adamw", "muon"])
@pytest.mark.parametrize("trained", ["LoRA", "matrices of the blocks", "all but those", "norms"])
def test_an_optimiser_without_parameters_is_left_out(optimiser: str, trained: str) -> None:
    model = encoder_decoder(dtype=torch.float32)
    if trained == "LoRA":
        add_lora(model, rank=2, patterns="*.query *.value")
    else:
        for name, p in model.named_parameters():
            in_blocks = ".blocks." in name and p.dim() == 2
            kinds = {"matrices of the blocks": in_blocks, "all but those": not in_blocks, "norms": ".norm." in name}
            p.requires_grad_(kinds[trained])
    trainable = [p for p in model.parameters() if p.requires_grad]
    optimisers = make_optimisers(model, TrainConfig(optimiser=optimiser))
    held = [p for o in optimisers for group in o.param_groups for p in group["params"]]
    assert trainable
    assert sorted(map(id, held)) == sorted(map(id, trainable))
    assert all(group["params"] for o in optimisers for group in o.param_groups)
    before = [p.detach().clone() for p in trainable]
    model(random_ids(2, 5), random_ids(2, 4)).square().sum().backward()
    for each in optimisers:
        each.step()
    assert any(not torch.equal(p, old) for p, old in zip(trainable, before, strict=True))


@pytest.mark.skipif(not hasattr(torch.optim, "Muon"), reason="this torch has no Muon to compare with")
def test_muon_is_torchs_but_for_its_rounding() -> None:
    torch.manual_seed(0)
    start = [torch.randn(shape) for shape in ((8, 24), (24, 8), (8, 24), (8, 8))]
    ours, theirs = ([nn.Parameter(t.clone()) for t in start] for _ in range(2))
    one = Muon(ours, lr=0.01, weight_decay=0.1)
    other = torch.optim.Muon(theirs, lr=0.01, weight_decay=0.1, adjust_lr_fn="match_rms_adamw", ns_steps=STEPS)
    for _ in range(3):
        for mine, its in zip(ours, theirs, strict=True):
            mine.grad = torch.randn_like(mine)
            its.grad = mine.grad.clone()
        one.step()
        other.step()
    for mine, its, before in zip(ours, theirs, start, strict=True):
        moved, difference = (mine - before).norm(), (mine - its).norm()
        assert difference < 0.03 * moved  # bfloat16 has three digits


@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 4, 16), (2, 16, 4), (1, 128, 128)])
def test_muons_updates_have_singular_values_of_about_one(shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    matrices = torch.randn(shape)
    before, after = torch.linalg.svdvals(matrices), torch.linalg.svdvals(orthogonalise(matrices))
    part = before / before.norm(dim=1, keepdim=True)
    assert after[part > 0.03].min() > 0.6
    assert after.max() < 1.3


def objective_of(task: str, model: Any, **changes: Any) -> Objective:
    return Objective(model, Recipe(data=DataConfig(task=task), train=TrainConfig(**changes)))


def language_batch(rows: int, learned: float = 1.0) -> Batch:
    ids, targets = random_ids(rows, 6), random_ids(rows, 6)
    targets[torch.rand(rows, 6) >= learned] = IGNORE
    return Batch({"ids": ids}, targets)


def part_of(batch: Batch, rows: slice) -> Batch:
    return Batch({name: t[rows] for name, t in batch.inputs.items()}, batch.targets[rows])


@pytest.mark.parametrize("learned", [1.0, 0.7, 0.2])
def test_a_step_does_not_depend_on_how_it_is_split(learned: float) -> None:
    """1 x 8 = 4 x 2 = 8 x 1, with unequal numbers of targets: sum / tokens, never a mean of means."""
    model = decoder_only()
    objective, whole = objective_of("language", model, label_smoothing=0.1), language_batch(8, learned)

    def gradients(size: int) -> list[Tensor]:
        model.zero_grad()
        for begin in range(0, 8, size):
            (objective(part_of(whole, slice(begin, begin + size))) / whole.tokens).backward()
        return [p.grad.clone() for p in model.parameters()]

    for size in (2, 1):
        for a, b in zip(gradients(size), gradients(8), strict=True):
            torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-12)


def test_only_what_is_to_be_learned_counts() -> None:
    model, batch = decoder_only(), language_batch(4, 0.3)
    logits = model(**batch.inputs).flatten(0, 1)
    targets = batch.targets.flatten()
    expected = torch.nn.functional.cross_entropy(logits.float(), targets, ignore_index=IGNORE, reduction="sum")
    assert objective_of("chat", model).eval()(batch).item() == pytest.approx(expected.item(), rel=1e-6)
    nothing = Batch(batch.inputs, torch.full_like(batch.targets, IGNORE))
    objective_of("chat", model)(nothing).backward()
    assert all(not p.grad.any() for p in model.parameters())


def test_contrastive_loss_is_small_when_partners_are_closest() -> None:
    near = torch.eye(4)
    vectors = torch.cat([near, near, torch.ones(4, 4)])
    assert similarity_of(vectors, torch.ones(4), TrainConfig()) < 0.01
    assert similarity_of(torch.cat([near, near.flip(0)]), torch.ones(4), TrainConfig()) > 10
    loss = similarity_of(torch.cat([near, near]), torch.full((4,), 0.5), TrainConfig(similarity="regression"))
    assert loss.item() == pytest.approx(4 * 0.25)


RECIPE = Recipe(
    name="tiny",
    data=DataConfig(corpus="phrasebook", size=300, batch_tokens=512),
    tokenizer=TokenizerConfig(vocab=400),
    model=ModelConfig(d_model=16, d_ff=32, layers=1, heads=2, dropout=0.2, attention_dropout=0.1),
    train=TrainConfig(steps=12, evaluate_every=4, warmup=3, step_tokens=1024, device="cpu"),
)


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Recipe:
    return replace(RECIPE, data=replace(RECIPE.data, cache=str(tmp_path_factory.mktemp("cache"))))


def weights_of(run: Path) -> dict[str, Tensor]:
    return load_file(run / "model.safetensors")


def losses_of(run: Path) -> list[float]:
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [line["loss"] for line in lines if line["kind"] == "train"]


@pytest.fixture(scope="module")
def whole(recipe: Recipe, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that never stopped."""
    run = tmp_path_factory.mktemp("whole")
    train(recipe, run, quiet=True)
    return run


def assert_same_run(one: Path, other: Path) -> None:
    assert losses_of(one) == losses_of(other)
    first, second = weights_of(one), weights_of(other)
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_the_same_seed_is_the_same_run(recipe: Recipe, whole: Path, tmp_path: Path) -> None:
    train(recipe, tmp_path, quiet=True)
    assert_same_run(tmp_path, whole)
    assert losses_of(tmp_path)[-1] < losses_of(tmp_path)[0]


@pytest.mark.parametrize("at", [1, 5, 8])
def test_resumed_is_never_stopped(recipe: Recipe, whole: Path, tmp_path: Path, at: int, monkeypatch: Any) -> None:
    """Ctrl-C during a step: it is finished and saved; what follows is bit for bit what would have followed."""
    from clearhead.train import loop

    train_step, taken = loop.train_step, []

    def interrupted(*arguments: Any) -> None:
        taken.append(1)
        if len(taken) == at:
            os.kill(os.getpid(), signal.SIGINT)
        train_step(*arguments)

    monkeypatch.setattr(loop, "train_step", interrupted)
    train(recipe, tmp_path, quiet=True)
    monkeypatch.undo()
    assert len(losses_of(tmp_path)) == at
    torch.manual_seed(time.time_ns() % 1000)
    train(recipe, tmp_path, resume=True, quiet=True)
    assert_same_run(tmp_path, whole)


def test_a_run_is_not_overwritten_or_continued_by_another_recipe(recipe: Recipe, whole: Path) -> None:
    with pytest.raises(UserError, match="already holds a run; --resume continues it"):
        train(recipe, whole, quiet=True)
    other = replace(recipe, train=replace(recipe.train, beta1=0.5))
    with pytest.raises(UserError, match=r"another recipe: train.beta1 = 0.5, not 0.9"):
        train(other, whole, resume=True, quiet=True)


def test_a_damaged_checkpoint_is_refused_and_the_one_before_offered(recipe: Recipe, tmp_path: Path) -> None:
    train(recipe, tmp_path, quiet=True)
    before, last = checkpoint_folders(tmp_path)
    weights = last / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    message = rf"model.safetensors differs from what was written.*continue from {before.name}"
    with pytest.raises(UserError, match=message):
        train(recipe, tmp_path, resume=True, quiet=True)
    weights.write_bytes(content[:100])
    with pytest.raises(UserError, match="is damaged"):
        load_checkpoint(last)
    (last / "manifest.json").unlink()
    with pytest.raises(UserError, match="is damaged"):
        load_checkpoint(last)
    assert load_checkpoint(before).step == 8


def test_killed_while_saving_a_whole_checkpoint_is_left(tmp_path: Path) -> None:
    """kill -9 at 50 random moments: what is there afterwards can be loaded, and nothing goes back."""
    tensors = {"model": {f"w{i}": torch.randn(50_000) for i in range(5)}}
    random.seed(0)
    newest = -1
    for _ in range(50):
        child = os.fork()
        if child == 0:
            for step in range(newest + 1, newest + 1000):
                save_checkpoint(tmp_path, Checkpoint(step, tensors, {}))
            os._exit(0)
        time.sleep(random.uniform(0.005, 0.12))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        for folder in checkpoint_folders(tmp_path):
            assert torch.equal(load_checkpoint(folder).tensors["model"]["w4"], tensors["model"]["w4"])
        steps = [load_checkpoint(folder).step for folder in checkpoint_folders(tmp_path)]
        assert max(steps, default=-1) >= newest
        newest = max(steps, default=-1)
    assert newest > 2  # some saves were finished, however busy the machine


def test_a_full_disk_leaves_the_last_checkpoint(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    small, large = ({"model": {"w": torch.zeros(n)}} for n in (100, 1_000_000))
    save_checkpoint(tmp_path, Checkpoint(1, small, {}))
    before, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        with pytest.raises(UserError, match=r"cannot save the checkpoint of step 2 .*the disk is full"):
            save_checkpoint(tmp_path, Checkpoint(2, large, {}))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert [folder.name for folder in (tmp_path / "checkpoints").iterdir()] == ["step-00000001"]
    assert load_checkpoint(checkpoint_folders(tmp_path)[-1]).step == 1


def test_a_loss_that_is_no_number_stops_with_advice(recipe: Recipe, tmp_path: Path) -> None:
    wild = replace(recipe, train=replace(recipe.train, learning_rate=1e30, warmup=0, clip=0.0))
    with pytest.raises(UserError, match=r"not finite 5 times in a row.*lower train.learning_rate = 1e\+30"):
        train(wild, tmp_path, quiet=True)


def test_patience_ends_a_run_that_learns_nothing(recipe: Recipe, tmp_path: Path) -> None:
    stuck = replace(recipe, train=replace(recipe.train, learning_rate=1e-30, evaluate_every=1, patience=2, steps=50))
    train(stuck, tmp_path, quiet=True)
    assert len(losses_of(tmp_path)) <= 5


def test_frozen_parameters_stay_and_init_takes_over_what_fits(recipe: Recipe, whole: Path, tmp_path: Path) -> None:
    settings = replace(recipe.train, steps=2, init=str(whole), freeze="encoder.* *.embedding.*")
    train(replace(recipe, train=settings), tmp_path, quiet=True)
    before, after = weights_of(whole), weights_of(tmp_path)
    for name, weight in before.items():
        frozen = name.startswith("encoder.") or ".embedding." in name
        assert torch.equal(weight, after[name]) == frozen, name
    nonsense = replace(recipe, train=replace(settings, freeze="encodre.*"))
    with pytest.raises(UserError, match=r"no parameter matches 'encodre\.\*'"):
        train(nonsense, tmp_path / "other", quiet=True)


@pytest.mark.parametrize("average", ["ema", "last"])
def test_averaged_runs_resume_exactly_too(recipe: Recipe, tmp_path: Path, average: str) -> None:
    averaged = replace(recipe, train=replace(recipe.train, average=average, average_last=2, ema=0.9))
    once, twice = tmp_path / "once", tmp_path / "twice"
    train(averaged, once, quiet=True)
    train(averaged, twice, quiet=True)
    shutil.rmtree(checkpoint_folders(twice)[-1])  # as if the run had died after step 8
    train(averaged, twice, resume=True, quiet=True)
    assert_same_run(twice, once)
    last = load_checkpoint(checkpoint_folders(once)[-1]).tensors["model"]
    assert any(not torch.equal(last[name], weight) for name, weight in weights_of(once).items())


@pytest.mark.parametrize("optimiser", ["adamw", "muon"])
def test_corrections_learn_while_the_model_stays(recipe: Recipe, whole: Path, tmp_path: Path, optimiser: Any) -> None:
    settings = replace(recipe.train, steps=3, init=str(whole), lora=2, optimiser=optimiser)
    train(replace(recipe, train=settings), tmp_path, quiet=True)
    before, after = weights_of(whole), weights_of(tmp_path)
    assert before.keys() == after.keys()  # merged: a plain model again
    for name, weight in before.items():
        corrected = name.endswith((".query.weight", ".value.weight"))
        assert torch.equal(weight, after[name]) == (not corrected), name
    with pytest.raises(UserError, match=r"train\.lora = 2 needs train\.average = 'none'"):
        replace(settings, average="ema")


def test_a_task_needs_its_family(recipe: Recipe, tmp_path: Path) -> None:
    wrong = replace(recipe, model=replace(recipe.model, family="decoder-only"))
    with pytest.raises(UserError, match=r"is for model\.family = 'encoder-decoder', not 'decoder-only'"):
        train(wrong, tmp_path, quiet=True)


def test_batches_go_on_from_any_step() -> None:
    class ThreeAnEpoch:
        def steps(self, _: int) -> int:
            return 3

        def epoch(self, epoch: int, start: int) -> Any:
            return iter([(epoch, step) for step in range(start, 3)])

    for begin in range(8):
        stream = batches_from_step(ThreeAnEpoch(), begin)
        assert [next(stream) for _ in range(4)] == [divmod(step, 3) for step in range(begin, begin + 4)]


TASKS = {
    "stories": ("language", ModelConfig(family="decoder-only")),
    "instructions": ("chat", ModelConfig(family="decoder-only")),
    "reviews": ("classification", ModelConfig(family="encoder-only", head="classes", pool="first")),
    "paraphrases": ("similarity", ModelConfig(family="encoder-only", head="embedding")),
    "headlines": ("translation", ModelConfig()),
}


@pytest.mark.parametrize("corpus", [*TASKS, "masked"])
def test_every_task_learns_something(corpus: str, recipe: Recipe, tmp_path: Path) -> None:
    task, model = TASKS.get(corpus, ("masked", ModelConfig(family="encoder-only")))
    data = replace(recipe.data, corpus="stories" if corpus == "masked" else corpus, task=task, max_length=256, size=40)
    shape = replace(model, d_model=16, d_ff=32, layers=1, heads=2)
    settings = replace(recipe.train, steps=100, evaluate_every=0, learning_rate=1e-2, step_tokens=2048)
    train(replace(recipe, data=data, model=shape, train=settings), tmp_path, quiet=True)
    losses = losses_of(tmp_path)
    assert all(math.isfinite(loss) for loss in losses)
    assert sum(losses[-10:]) < 0.9 * sum(losses[:10])
