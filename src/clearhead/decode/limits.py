"""How many tokens a run can read and write."""

from __future__ import annotations

from torch import Tensor

from clearhead.config import require
from clearhead.runs import Run


def room(run: Run, wanted: Tensor, read: int) -> Tensor:
    """How many tokens each row may write after it has read so many: learned positions come to an end."""
    limit = run.recipe.model.position_limit
    return wanted if limit is None else wanted.clamp(max=limit - read)


def require_room(run: Run, read: int, tokens: int) -> None:
    """Refuse to write nothing, and what a model with learned positions has no place for."""
    require(tokens >= 1, f"tokens = {tokens}: must be at least 1")
    limit = run.recipe.model.position_limit
    require(
        limit is None or read + tokens <= limit,
        f"a prompt of {read:,} tokens and {tokens:,} new ones are more than model.max_length = {limit}, the "
        "positions that this model has learned; shorten the prompt, or ask for fewer tokens",
    )
