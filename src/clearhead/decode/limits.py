"""How many tokens a run can read and write."""

from __future__ import annotations

import sys

from clearhead.config import ModelConfig, require


def tokens_left(model: ModelConfig, read: int) -> int:
    """How many tokens a model can write after it has read so many: learned positions end, the other kinds do not."""
    return sys.maxsize if model.position_limit is None else model.position_limit - read


def check_tokens(model: ModelConfig, read: int, tokens: int) -> None:
    """Refuse to write no tokens, or more than there are learned positions."""
    require(tokens >= 1, f"tokens = {tokens}: must be at least 1")
    require(
        tokens <= tokens_left(model, read),
        f"a prompt of {read:,} tokens and {tokens:,} new ones are more than model.max_length = {model.max_length} "
        "learned positions; shorten the prompt, or ask for fewer tokens",
    )
