"""The paper's learning rate.

Adam's estimates are poor in the first steps, and post-norm Transformers diverge if these are
large. So the learning rate rises on a straight line for `warmup` steps, and then falls with the
square root of the step:

    d_model^-0.5 · min(step^-0.5, step · warmup^-1.5)
"""

import math


def learning_rate(step: int, d_model: int, warmup: int) -> float:
    """Return the learning rate of a step; the first step is number 1."""
    rising = step * warmup**-1.5
    falling = 1 / math.sqrt(step)
    return min(rising, falling) / math.sqrt(d_model)
