"""The exercise `noam`: the paper's learning rate."""

from __future__ import annotations

from types import SimpleNamespace

from clearhead.config import TrainConfig
from clearhead.learn.exercise import Case, Exercise, Mistake, Patch, Piece
from clearhead.train import schedule


def reference(step: int, d_model: int, warmup: int) -> float:
    """The project's own schedule."""
    return schedule.factor(TrainConfig(schedule="noam", warmup=warmup), d_model, step)


def rates(piece: Piece, steps: list[int], d_model: int, warmup: int) -> list[float]:
    """The learning rates of some steps."""
    return [piece.learning_rate(step, d_model, warmup) for step in steps]


def cases() -> list[Case]:
    """During warm-up, at its end, and after it; another size."""
    return [
        Case("the first step", rates, ([1], 512, 4000)),
        Case("during warm-up", rates, ([2, 10, 2000], 512, 4000)),
        Case("at the end of warm-up", rates, ([4000], 512, 4000)),
        Case("after warm-up", rates, ([4001, 16_000, 100_000], 512, 4000)),
        Case("another size and warm-up", rates, ([1, 50, 100, 400], 128, 100)),
    ]


RESULT = "min(rising, falling) / math.sqrt(d_model)"
MISTAKES = (
    Mistake(
        "The larger of the two is taken",
        "It rises first and falls later: the smaller one, min.",
        RESULT,
        "max(rising, falling) / math.sqrt(d_model)",
    ),
    Mistake(
        "d_model^-0.5 is missing",
        "Larger models get smaller learning rates: divide by the square root of d_model.",
        RESULT,
        "min(rising, falling)",
    ),
    Mistake(
        "It is multiplied by the square root of d_model",
        "The exponent is -0.5: larger models get smaller learning rates.",
        RESULT,
        "min(rising, falling) * math.sqrt(d_model)",
    ),
    Mistake(
        "It is divided by d_model, not by its square root",
        "d_model^-0.5 is 1 / sqrt(d_model).",
        RESULT,
        "min(rising, falling) / d_model",
    ),
    Mistake(
        "The exponent of warmup is -1 instead of -1.5",
        "step · warmup^-1.5: then both sides meet at step = warmup, where each is warmup^-0.5.",
        "warmup**-1.5",
        "warmup**-1",
    ),
    Mistake(
        "It rises with the square root of the step after warm-up",
        "The exponent is negative: step^-0.5 is 1 / sqrt(step).",
        RESULT,
        "min(rising, math.sqrt(step)) / math.sqrt(d_model)",
    ),
    Mistake(
        "It falls with the step, not with its square root",
        "step^-0.5 is 1 / sqrt(step), not 1 / step.",
        RESULT,
        "min(rising, 1 / step) / math.sqrt(d_model)",
    ),
    Mistake(
        "It rises to 1",
        "At step = warmup the rate is warmup^-0.5 · d_model^-0.5: compute the formula, it has no other factor.",
        RESULT,
        "min(step / warmup, math.sqrt(warmup / step))",
    ),
    Mistake(
        "It never falls",
        "After warm-up, step^-0.5 is the smaller of the two.",
        RESULT,
        "min(rising, warmup**-0.5) / math.sqrt(d_model)",
    ),
    Mistake(
        "There is no warm-up",
        "In the first steps, step · warmup^-1.5 is the smaller of the two.",
        RESULT,
        "falling / math.sqrt(d_model)",
    ),
    Mistake(
        "Steps are counted from 0",
        "The first step is number 1: nothing is to be added or subtracted.",
        "rising = step *",
        "rising = (step - 1) *",
    ),
)


def swap(piece: Piece) -> list[Patch]:
    """The learning rate of each step of the demo."""
    from clearhead.train import loop

    def learning_rate(config: TrainConfig, d_model: int, step: int) -> float:
        return config.learning_rate * float(piece.learning_rate(step, d_model, config.warmup))

    return [Patch(loop, "learning_rate", learning_rate)]


EXERCISE = Exercise(
    name="noam",
    reference=SimpleNamespace(learning_rate=reference),
    cases=cases,
    mistakes=MISTAKES,
    hints=(
        "step^-0.5 is step**-0.5 in Python, or 1 / math.sqrt(step).",
        "Compute both numbers, rising and falling, and take the smaller.",
    ),
    swap=swap,
    settings="train.schedule=noam train.learning_rate=0.3 train.warmup=20 train.optimiser=adamw",
    gradient=False,
)
