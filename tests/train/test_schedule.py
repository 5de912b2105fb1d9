"""Learning-rate schedules: warm-up, decay, and the formula of the paper."""

from __future__ import annotations

from itertools import pairwise

import pytest

from clearhead.config import TrainConfig
from clearhead.train.schedule import learning_rate


@pytest.mark.parametrize("schedule", ["cosine", "linear", "stable", "constant"])
def test_schedules_rise_to_the_rate_and_fall_to_the_end(schedule: str) -> None:
    config = TrainConfig(schedule=schedule, steps=100, learning_rate=0.5, warmup=10, final=0.1)
    rates = [learning_rate(config, 64, step) for step in range(1, 102)]
    assert rates[:10] == pytest.approx([0.05 * step for step in range(1, 11)])
    assert max(rates) == pytest.approx(0.5)
    assert rates[-1] == pytest.approx(0.5 if schedule == "constant" else 0.05)
    assert all(a >= b for a, b in pairwise(rates[9:]))


@pytest.mark.parametrize("schedule", ["cosine", "linear", "stable", "constant"])
@pytest.mark.parametrize("steps", [1, 2, 100])
def test_every_step_learns(schedule: str, steps: int) -> None:
    config = TrainConfig(schedule=schedule, steps=steps, learning_rate=0.5, warmup=0, final=0.0)
    rates = [learning_rate(config, 64, step) for step in range(1, steps + 1)]
    assert min(rates) > 0
    assert schedule == "constant" or learning_rate(config, 64, steps + 1) == pytest.approx(0, abs=1e-12)


def test_noam_is_the_papers() -> None:
    config = TrainConfig(schedule="noam", learning_rate=1.0, warmup=4000)
    assert learning_rate(config, 512, 1) == pytest.approx(512**-0.5 * 4000**-1.5)
    assert learning_rate(config, 512, 4000) == pytest.approx(512**-0.5 * 4000**-0.5)
    assert learning_rate(config, 512, 16_000) == pytest.approx(512**-0.5 * 16_000**-0.5)
