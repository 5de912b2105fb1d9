"""A small tokenizer for tests of data."""

from __future__ import annotations

import pytest

from clearhead.config import TokenizerConfig
from clearhead.text.tokenizer import Tokenizer, train_tokenizer
from json_rows import LINES


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    return train_tokenizer(TokenizerConfig(vocab=300), LINES, progress=False)
