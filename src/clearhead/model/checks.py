"""What a model refuses, and the message for the user: called where inputs enter, so that the formulas stay clean."""

from __future__ import annotations

import torch
from torch import Tensor

from clearhead.config import ModelConfig, UserError, require


def check_config(config: ModelConfig) -> None:
    """Refuse settings that are complete only when the data is known."""
    require(config.vocab > 0, "model.vocab = 0: a model needs a vocabulary; set it to the tokenizer's number of tokens")
    require(config.head != "classes" or config.classes > 1, "model.classes = 0: model.head = 'classes' needs 2 or more")


def check_ids(ids: Tensor, vocab: int, setting: str) -> None:
    """Refuse token ids outside the vocabulary, whose size is `setting`."""
    if can_be_read(ids):
        low, high = map(int, ids.aminmax())
        if low < 0 or high >= vocab:
            raise UserError(
                f"token id {low if low < 0 else high} is outside the vocabulary of {setting} = {vocab}; "
                "encode the text with the model's own tokenizer"
            )


def check_length(length: int, limit: int | None) -> None:
    """Refuse more tokens, padding included, than there are learned positions; None: there is no limit."""
    if limit is not None and length > limit:
        raise UserError(
            f"a sequence of {length} tokens is longer than model.max_length = {limit} learned positions; "
            "shorten it, or train with a larger max_length or another model.position"
        )


def check_positions(positions: Tensor, limit: int | None) -> None:
    """Refuse positions that have no learned embedding; None: there is no limit."""
    if limit is not None and can_be_read(positions):
        check_length(int(positions.amax()) + 1, limit)


def check_segments(segments: Tensor | None, kinds: int) -> None:
    """Refuse segments where the model has no embeddings for them."""
    require(segments is None or kinds > 0, "segments were given, but model.segments = 0; leave them out")


def check_real(real: Tensor | None) -> None:
    """Refuse a mask of real tokens that is not boolean: attention would add its numbers to the scores."""
    if real is not None and real.dtype != torch.bool:
        raise UserError(f"a mask is True where a token is real, not {real.dtype}; use mask.bool()")


def check_prompt(prompt: Tensor) -> None:
    """Refuse an empty prompt."""
    require(prompt.size(1) > 0, "a prompt needs at least one token, such as the tokenizer's start token")


def can_be_read(numbers: Tensor) -> bool:
    """Whether a check may look at values: not on a GPU, which it would stall, nor while a graph is compiled."""
    return numbers.device.type == "cpu" and numbers.numel() > 0 and not torch.compiler.is_compiling()
