"""A small trained tokenizer of each kind."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from clearhead.config import TokenizerConfig
from clearhead.text.tokenizer import Tokenizer, train_tokenizer

TEXTS = [
    "The old man gave the red car to his son. Don't you know?",
    "Où est l'arbre ? « Là-bas, dit-elle, près de l'école. »\nIl n'y en a pas d'autre !",
    "He said: (yes) and <end> no, 3.14 or 42%... déjà vu; e-mail\tok",
] * 3
KINDS = ("bpe", "wordpiece", "characters", "words")


def trained(kind: str, texts: Iterable[str] = TEXTS, vocab: int = 400, lowercase: bool = False) -> Tokenizer:
    config = TokenizerConfig(kind=kind, vocab=vocab, lowercase=lowercase)  # type: ignore[arg-type]
    return train_tokenizer(config, texts)


OURS = {kind: trained(kind) for kind in KINDS}
each_kind = pytest.mark.parametrize("kind", KINDS)
