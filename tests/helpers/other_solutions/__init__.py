"""A second solution of every exercise, in another style, with mistakes to plant in it."""

from __future__ import annotations

from other_solutions.attention import ATTENTION
from other_solutions.blocks import BLOCKS
from other_solutions.decoding import DECODING
from other_solutions.positions import POSITIONS
from other_solutions.training import TRAINING
from other_solutions.whole_model import WHOLE_MODEL

OTHER_SOLUTIONS = POSITIONS | ATTENTION | BLOCKS | TRAINING | DECODING | WHOLE_MODEL  # exercise -> solution
