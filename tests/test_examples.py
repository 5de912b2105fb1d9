"""The examples that hold a whole model in one file compute what clearhead computes, and run as their pages say."""

from __future__ import annotations

import itertools
import math
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch import Tensor, nn

from clearhead.config import ModelConfig, TrainConfig
from clearhead.data.batches import IGNORE
from clearhead.model import Model, build_model
from clearhead.train.optimiser import make_optimisers
from clearhead.train.schedule import learning_rate

EXAMPLES = Path(__file__).parents[1] / "examples"
sys.path.insert(0, str(EXAMPLES))
import gpt
import transformer

VOCAB = 40
PAPER = ModelConfig(
    family="encoder-decoder", vocab=VOCAB, d_model=32, d_ff=128, layers=2, heads=4, dropout=0.0, norm_order="post",
    position="sinusoidal", activation="relu", tied="all", scale_embedding=True, norm_epsilon=1e-5,
)  # fmt: skip
GPT = replace(
    PAPER, family="decoder-only", norm_order="pre", position="learned", activation="gelu", scale_embedding=False,
    max_length=gpt.CONTEXT,
)  # fmt: skip
# names of parameters in the examples, as patterns, and in the package
RENAMED = {
    "transformer": {
        r"^(encoder|decoder)": r"\1.blocks", r"^embedding": "encoder.embedding",
        r"feed_forward\.0": "feed_forward.up", r"feed_forward\.2": "feed_forward.down",
    },
    "gpt": {
        r"^(embedding|norm|blocks)": r"decoder.\1", r"^position": "decoder.position.table",
        r"(attention|feed_forward)_norm": r"\1_add_norm.norm",
        r"feed_forward\.0": "feed_forward.up", r"feed_forward\.2": "feed_forward.down",
    },
}  # fmt: skip


def name_in_package(example: ModuleType, name: str) -> str:
    """`blocks.0.up.weight` -> `decoder.blocks.0.feed_forward.up.weight`."""
    for pattern, replacement in RENAMED[example.__name__].items():
        name = re.sub(pattern, replacement, name)
    return name


def twins(example: ModuleType) -> tuple[nn.Module, Model]:
    """The example's model and the package's with the same weights, none of which is 0 or 1, in float64."""
    torch.manual_seed(1)
    if example is transformer:
        small: nn.Module = transformer.Transformer(VOCAB, d_model=32, d_ff=128, heads=4, layers=2, dropout=0.0)
    else:
        small = gpt.GPT(VOCAB, d_model=32, heads=4, layers=2)
    model = build_model(PAPER if example is transformer else GPT).double()
    with torch.no_grad():
        for parameter in small.double().parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
        own = dict(model.named_parameters())
        for name, parameter in small.named_parameters():
            own.pop(name_in_package(example, name)).copy_(parameter)
    assert not own, f"not in the example: {list(own)}"
    return small, model


@pytest.fixture(autouse=True)
def in_float64() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def random_ids(rows: int, length: int) -> Tensor:
    return torch.randint(4, VOCAB, (rows, length))


def assert_same_gradients(example: ModuleType, small: nn.Module, model: Model) -> None:
    own = dict(model.named_parameters())
    for name, parameter in small.named_parameters():
        torch.testing.assert_close(parameter.grad, own[name_in_package(example, name)].grad, rtol=1e-6, atol=1e-6)


def test_the_transformer_has_the_logits_and_gradients_of_the_package() -> None:
    small, model = twins(transformer)
    source, target = random_ids(3, 7), random_ids(3, 5)
    source[1, 4:] = transformer.PAD
    logits, expected = small(source, target), model(source, target, source != transformer.PAD)
    torch.testing.assert_close(logits, expected, rtol=1e-6, atol=1e-6)
    (logits.square().sum() / 100).backward()
    (expected.square().sum() / 100).backward()
    assert_same_gradients(transformer, small, model)


def test_the_gpt_has_the_logits_and_gradients_of_the_package() -> None:
    small, model = twins(gpt)
    ids = random_ids(3, 9)
    logits, expected = small(ids), model(ids)
    torch.testing.assert_close(logits, expected, rtol=1e-6, atol=1e-6)
    (logits.square().sum() / 100).backward()
    (expected.square().sum() / 100).backward()
    assert_same_gradients(gpt, small, model)


def test_the_cache_of_the_gpt_changes_no_logits() -> None:
    small, _ = twins(gpt)
    ids = random_ids(2, 9)
    caches: list[list[Tensor]] = [[], []]
    parts = [small(part, caches) for part in ids.split([4, 1, 3, 1], dim=1)]
    torch.testing.assert_close(torch.cat(parts, 1), small(ids), rtol=1e-9, atol=1e-9)


def test_the_loss_of_the_transformer_falls_as_the_packages_does(capsys: pytest.CaptureFixture[str]) -> None:
    small, model = twins(transformer)
    random.seed(2)
    pairs = [([random.randrange(4, VOCAB) for _ in range(6)],) * 2 for _ in range(200)]  # copy the source
    random.seed(3)
    losses = transformer.train(small, pairs, steps=25, tokens=120, warmup=10)
    random.seed(3)
    config = TrainConfig(schedule="noam", learning_rate=1.0, warmup=10, beta2=0.98, weight_decay=0.0, steps=25)
    (optimiser,) = make_optimisers(model, config)
    batches: list[list[transformer.Pair]] = []
    for step, loss in enumerate(losses, 1):
        batches = batches or transformer.batches(pairs, 120)
        source, target = transformer.tensors(batches.pop())
        logits = model(source, target[:, :-1], source != transformer.PAD).flatten(0, 1)
        expected = nn.functional.cross_entropy(
            logits, target[:, 1:].flatten(), ignore_index=transformer.PAD, label_smoothing=0.1
        )
        assert loss == pytest.approx(expected.item(), rel=1e-4)  # epsilon of Adam: the paper's 1e-9, PyTorch's 1e-8
        for group in optimiser.param_groups:
            group["lr"] = learning_rate(config, 32, step)
        optimiser.zero_grad()
        expected.backward()
        optimiser.step()
    assert losses[-1] < losses[0] - 0.5


def test_a_full_beam_finds_the_best_of_all_texts() -> None:
    torch.manual_seed(3)
    model = transformer.Transformer(vocab=5, d_model=16, d_ff=32, heads=2, layers=1, dropout=0.0).eval()
    source, limit = [3, 4, 3], 3
    memory = model.encode(torch.tensor([[*source, transformer.END]]))

    def score(ids: list[int]) -> float:
        logits = model.decode(torch.tensor([[transformer.START, *ids[:-1]]]), memory)[0]
        total = logits.log_softmax(-1)[range(len(ids)), ids].sum().item()
        return total / ((5 + len(ids)) / 6) ** 0.6

    texts = [list(ids) for length in range(1, limit + 1) for ids in itertools.product(range(5), repeat=length)]
    complete = [
        ids for ids in texts if transformer.END not in ids[:-1] and (ids[-1] == transformer.END or len(ids) == limit)
    ]
    assert transformer.beam_search(model, source, width=200, limit=limit) == max(complete, key=score)


def test_a_beam_of_one_is_greedy() -> None:
    small, _ = twins(transformer)
    for source in random_ids(8, 5).tolist():
        assert transformer.beam_search(small, source, width=1, limit=9) == transformer.greedy(small, source, limit=9)


def test_only_the_answer_is_learned() -> None:
    random.seed(0)
    inputs, targets = gpt.answers_of([([5, 6, 7], [8, 9]), ([5], [6])], rows=8)
    rows = {tuple(zip(*row, strict=True)) for row in zip(inputs.tolist(), targets.tolist(), strict=True)}
    assert rows == {
        ((5, IGNORE), (6, IGNORE), (7, 8), (8, 9)),
        ((5, 6), (0, IGNORE), (0, IGNORE), (0, IGNORE)),
    }


@pytest.mark.parametrize("example", [transformer, gpt])
def test_every_text_survives_its_tokens(example: ModuleType) -> None:
    text = "Amy's car, l'été à 7:45.\n  «Où ?»"
    vocabulary = example.Vocabulary(text + " car car car", words=1)
    assert "".join(vocabulary.tokens[i] for i in vocabulary.encode(text)) == text
    assert len(vocabulary.encode(" car")) == 1


def test_the_first_loss_is_near_that_of_a_guess() -> None:
    torch.manual_seed(0)
    model, ids = gpt.GPT(500, d_model=32, heads=4, layers=2), torch.randint(0, 500, (4, 20))
    with torch.no_grad():
        loss = nn.functional.cross_entropy(model(ids).flatten(0, 1), torch.randint(0, 500, (80,)))
    assert loss.item() == pytest.approx(math.log(500), abs=0.2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (["transformer.py", "--steps", "5"], ["step 5 of 5", "of 100 sentences", "<end>"]),
        (["gpt.py", "--steps", "8"], ["step 8 of 8", "step 4 of 4", "Sentences: 4", "of 40 answers"]),
    ],
)
def test_the_examples_run(command: list[str], shown: list[str], tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, str(EXAMPLES / command[0]), *command[1:]],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert all(text in result.stdout for text in shown), result.stdout
