"""Which tokens begin, end and pad a text, from the settings of a model."""

from __future__ import annotations

from typing import Any

import pytest
import tokenizers
from tokenizers import models

from clearhead.config import ModelConfig
from clearhead.exchange.tokenizers import special_tokens
from clearhead.text.tokenizer import Tokenizer

LLAMA3 = ["<|begin|>", "<|endoftext|>", "<|eot|>", "<s>", "</s>", "<pad>", "a"]


@pytest.mark.parametrize(
    ("named", "config", "expected"),
    [
        # Llama: no padding token
        ({"start": "<s>", "end": "</s>"}, {"bos_token_id": 3, "eos_token_id": 4}, ("<s>", "</s>", "<pad>")),
        # Llama 3: several tokens end a text; the tokenizer names one of them
        ({"start": "<|begin|>", "end": "<|eot|>"}, {"eos_token_id": [1, 2]}, ("<|begin|>", "<|eot|>", "<pad>")),
        ({}, {"bos_token_id": 0, "eos_token_id": [2, 1]}, ("<|begin|>", "<|eot|>", "<pad>")),
        # ids that are no tokens are left out
        ({"end": "</s>"}, {"bos_token_id": 99, "pad_token_id": -1, "eos_token_id": None}, ("<s>", "</s>", "<pad>")),
        ({"end": "</s>"}, {"pad_token_id": 2, "bos_token_id": "x"}, ("<s>", "</s>", "<|eot|>")),
    ],
)
def test_special_tokens_are_those_that_the_settings_name(
    named: dict[str, str], config: dict[str, Any], expected: tuple[str, ...]
) -> None:
    backend = tokenizers.Tokenizer(models.WordLevel({token: n for n, token in enumerate(LLAMA3)}, unk_token="a"))
    found = special_tokens(Tokenizer(backend, named), config, ModelConfig(family="decoder-only"))
    assert (found["start"], found["end"], found["pad"]) == expected


def test_a_model_with_an_end_alone_begins_and_pads_with_it() -> None:
    backend = tokenizers.Tokenizer(models.WordLevel({"a": 0, "<|im_end|>": 1}, unk_token="a"))
    found = special_tokens(Tokenizer(backend), {"eos_token_id": 1}, ModelConfig(family="decoder-only"))
    assert (found["start"], found["end"], found["pad"]) == ("<|im_end|>",) * 3
