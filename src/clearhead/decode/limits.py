"""How many tokens a run can read and write."""

from __future__ import annotations

import sys

from clearhead.config import ModelConfig, Recipe, require

LONGEST_PROMPT = 16  # times data.max_length; attention to more takes minutes, and the output is noise


def tokens_left(model: ModelConfig, read: int) -> int:
    """How many tokens a model can write after it has read so many: learned positions end, the other kinds do not."""
    return sys.maxsize if model.position_limit is None else model.position_limit - read


def check_prompt(recipe: Recipe, read: int) -> None:
    """Refuse a prompt that is far longer than any text that the model was trained on."""
    longest = recipe.data.max_length
    require(
        read <= LONGEST_PROMPT * longest,
        f"a prompt of {read:,} tokens is more than {LONGEST_PROMPT} times as long as the texts that the model was "
        f"trained on (data.max_length = {longest}); shorten it",
    )


def check_tokens(model: ModelConfig, read: int, tokens: int) -> None:
    """Refuse to write no tokens, or more than there are learned positions."""
    require(1 <= tokens < 2**31, f"tokens = {tokens}: must be at least 1, and less than 2^31")
    require(
        tokens <= tokens_left(model, read),
        f"a prompt of {read:,} tokens and {tokens:,} new ones are more than model.max_length = {model.max_length} "
        "learned positions; shorten the prompt, or ask for fewer tokens",
    )
