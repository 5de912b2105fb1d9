"""Learning-rate schedules: pure functions of the step, so there is nothing to save for resuming."""

from __future__ import annotations

import math

from clearhead.config import TrainConfig

DECAY = 0.2  # the last part of a run, in which the schedule "stable" falls


def learning_rate(config: TrainConfig, d_model: int, step: int) -> float:
    """The learning rate of a step, counted from 1."""
    return config.learning_rate * factor(config, d_model, step)


def factor(config: TrainConfig, d_model: int, step: int) -> float:
    """The factor on `train.learning_rate` at a step.

    | schedule    | after warm-up                                                                          |
    |-------------|----------------------------------------------------------------------------------------|
    | noam        | the paper: d_model^-0.5 · min(step^-0.5, step · warmup^-1.5), with learning_rate = 1    |
    | cosine      | half a cosine wave from 1 down to `final`                                              |
    | linear      | a straight line from 1 down to `final`                                                 |
    | stable      | 1, then a straight line down to `final` over the last fifth (warm-up-stable-decay)     |
    | constant    | 1                                                                                      |

    All but noam warm up on a straight line from 0 to 1. `final` would be reached one step after the last, so that with
    `final = 0` the last step still learns.
    """
    warmup = max(1, config.warmup)
    if config.schedule == "noam":
        return d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)
    if step < config.warmup:
        return step / warmup
    done = min(1.0, (step - config.warmup) / max(1, config.steps + 1 - config.warmup))  # 1 one step after the last
    decay = {
        "cosine": (1 + math.cos(math.pi * done)) / 2,
        "linear": 1 - done,
        "stable": min(1.0, (1 - done) / DECAY),
        "constant": 1.0,
    }[config.schedule]
    return config.final + (1 - config.final) * decay
