"""The exercise `noam`: the paper's learning rate."""

from __future__ import annotations

from types import SimpleNamespace

from clearhead.config import TrainConfig
from clearhead.learn.exercise import ExerciseCase, Patch, Piece
from clearhead.train import schedule


def reference(step: int, d_model: int, warmup: int) -> float:
    """The project's own schedule."""
    return schedule.factor(TrainConfig(schedule="noam", warmup=warmup), d_model, step)


REFERENCE = SimpleNamespace(learning_rate=reference)


def rates(piece: Piece, steps: list[int], d_model: int, warmup: int) -> list[float]:
    """The learning rates of some steps."""
    return [piece.learning_rate(step, d_model, warmup) for step in steps]


def cases() -> list[ExerciseCase]:
    """During warm-up, at its end, and after it; another size."""
    return [
        ExerciseCase("the first step", rates, ([1], 512, 4000)),
        ExerciseCase("during warm-up", rates, ([2, 10, 2000], 512, 4000)),
        ExerciseCase("at the end of warm-up", rates, ([4000], 512, 4000)),
        ExerciseCase("after warm-up", rates, ([4001, 16_000, 100_000], 512, 4000)),
        ExerciseCase("another size and warm-up", rates, ([1, 50, 100, 400], 128, 100)),
    ]


def swap(piece: Piece) -> list[Patch]:
    """The learning rate of each step of the demo."""
    from clearhead.train import loop

    def learning_rate(config: TrainConfig, d_model: int, step: int) -> float:
        return config.learning_rate * float(piece.learning_rate(step, d_model, config.warmup))

    return [Patch(loop, "learning_rate", learning_rate)]
