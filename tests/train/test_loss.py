"""The loss is a sum over targets: however a step is split, and without positions that have none."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from clearhead.config import DataConfig, ModelConfig, Recipe, TrainConfig, UserError
from clearhead.data.batches import IGNORE, Batch
from clearhead.train.loss import Objective, paired_cross_entropy, similarity_of
from tiny_models import decoder_only, encoder_only, random_ids


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
    expected = F.cross_entropy(logits.float(), targets, ignore_index=IGNORE, reduction="sum")
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


# --- R-Drop -----------------------------------------------------------------------------------------------------------


def test_r_drop_is_the_mean_of_both_losses_and_their_divergence_in_both_directions() -> None:
    logits = torch.randn(10, 7, dtype=torch.float64)
    targets = torch.tensor([3, IGNORE, 0, 6, 1])
    first, second = logits[0::2], logits[1::2]
    plain = sum(
        F.cross_entropy(one, targets, ignore_index=IGNORE, reduction="sum", label_smoothing=0.1)
        for one in (first, second)
    )
    learned = targets != IGNORE
    p, q = first[learned].log_softmax(-1), second[learned].log_softmax(-1)
    divergence = F.kl_div(q, p, log_target=True, reduction="sum") + F.kl_div(p, q, log_target=True, reduction="sum")
    expected = plain + 3.0 * divergence / 2  # as in the paper, of which ours is half
    torch.testing.assert_close(paired_cross_entropy(logits, targets, 0.1, 3.0), expected / 2)


@pytest.mark.parametrize("learned", [1.0, 0.3], ids=["all positions", "few positions"])
def test_r_drop_compares_two_passes_with_different_dropout(learned: float) -> None:
    model, batch = decoder_only(dropout=0.5), language_batch(4, learned)
    objective = objective_of("chat", model, r_drop=5.0).train()
    torch.manual_seed(1)
    found = objective(batch)
    torch.manual_seed(1)
    logits = model(torch.cat([batch.inputs["ids"]] * 2)).view(2, 24, -1)
    assert not torch.allclose(logits[0], logits[1])
    pairs = logits.transpose(0, 1).flatten(0, 1).float()
    torch.testing.assert_close(found, paired_cross_entropy(pairs, batch.targets.flatten(), 0.0, 5.0))
    plain = objective_of("chat", model)
    torch.testing.assert_close(objective.eval()(batch), plain.eval()(batch), msg="validation has one pass")


@pytest.mark.parametrize("head", ["classes", "vocabulary"])
def test_r_drop_for_classes_and_for_batches_without_targets(head: str) -> None:
    model = encoder_only(head=head, dropout=0.5, classes=3 if head == "classes" else 0)
    objective = objective_of("classification" if head == "classes" else "masked", model, r_drop=5.0).train()
    ids = random_ids(4, 6)
    batch = Batch({"ids": ids}, torch.tensor([0, 2, 1, 1]) if head == "classes" else ids)
    plain = objective_of("classification", model).train()
    torch.manual_seed(1)
    found = objective(batch)
    torch.manual_seed(1)
    both = plain(Batch({"ids": torch.cat([ids, ids])}, torch.cat([batch.targets] * 2)))
    assert found > both / 2, "the divergence comes on top"
    blank = objective(batch.blank())
    blank.backward()
    assert blank == 0
    assert all(p.grad is None or not p.grad.any() for p in model.parameters())


def test_without_differences_r_drop_is_the_plain_loss() -> None:
    model, batch = decoder_only(dropout=0.0), language_batch(4)
    found, wanted = (
        [loss, *torch.autograd.grad(loss, list(model.parameters()))]
        for loss in (objective_of("language", model, r_drop=r).train()(batch) for r in (5.0, 0.0))
    )
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(
    ("data", "model", "message"),
    [
        (DataConfig(task="similarity"), ModelConfig(), "does not work for data.task = 'similarity'"),
        (DataConfig(), ModelConfig(dropout=0.0), "needs dropout, but model.dropout = 0.0"),
    ],
    ids=["similarity", "no dropout"],
)
def test_r_drop_that_would_do_nothing_is_refused(data: DataConfig, model: ModelConfig, message: str) -> None:
    with pytest.raises(UserError, match=f"train.r_drop = 5.0 {message}"):
        Recipe(data=data, model=model, train=TrainConfig(r_drop=5.0))
