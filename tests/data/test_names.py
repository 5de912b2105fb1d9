"""Pairs with invented names, from which a translator learns to copy."""

from __future__ import annotations

from pathlib import Path

import pytest

from clearhead.config import DataConfig, TokenizerConfig, UserError
from clearhead.data.encode import open_store_of
from clearhead.data.examples import Pair
from clearhead.data.names import shared_names, with_invented_names
from clearhead.text.tokenizer import Tokenizers, train_tokenizer

PAIRS = [
    Pair("I saw Tom.", "J'ai vu Tom."),
    Pair("Where is Tom?", "Où est Tom ?"),
    Pair("Six men know Tom.", "Six hommes connaissent Tom."),
    Pair("Tom sleeps.", "Tom dort."),
    Pair("I saw Alice.", "J'ai vu Alice."),
    Pair("Is this Alice's dog?", "Est-ce le chien d'Alice ?"),
    Pair("We love Alice.", "Nous aimons Alice."),
    Pair("I know Alice.", "Je connais Alice."),
    Pair("Six dogs sleep.", "Six chiens dorment."),
    Pair("Tom likes Tom.", "Tom aime Tom."),
]


def test_names_are_the_words_that_both_sides_write_with_a_capital() -> None:
    assert shared_names(iter(PAIRS)) == {"Tom", "Alice"}


def test_a_copy_has_another_name_on_both_sides() -> None:
    found = list(with_invented_names(iter(PAIRS), {"Tom", "Alice"}, 2))
    assert [pair for pair in found if pair in PAIRS] == PAIRS
    assert found[-2:] == PAIRS[-2:]  # no name; a name twice
    assert len(found) == len(PAIRS) + 2 * 8
    copy = found[1]
    name = copy.source.removeprefix("I saw ").removesuffix(".")
    assert name != "Tom"
    assert copy == Pair(f"I saw {name}.", f"J'ai vu {name}.")
    assert found == list(with_invented_names(iter(PAIRS), {"Tom", "Alice"}, 2))


def test_a_vowel_is_replaced_by_a_vowel() -> None:
    for pair in with_invented_names(iter(PAIRS[5:6]), {"Alice"}, 20):
        assert pair.target.removeprefix("Est-ce le chien d'")[0] in "AEIOU"


def test_only_the_training_split_gets_copies(tmp_path: Path) -> None:
    for name in ("train", "valid"):
        (tmp_path / f"{name}.en").write_text("".join(f"{pair.source}\n" for pair in PAIRS))
        (tmp_path / f"{name}.fr").write_text("".join(f"{pair.target}\n" for pair in PAIRS))
    tokenizer = train_tokenizer(TokenizerConfig(vocab=300), [pair.source for pair in PAIRS], progress=False)
    both = Tokenizers(tokenizer, tokenizer)

    def rows(copies: int, split: str) -> int:
        config = DataConfig(
            path=str(tmp_path), source="en", target="fr", cache=str(tmp_path / "cache"), name_copies=copies
        )
        return len(open_store_of(config, both, split).ragged["source"].lengths)

    assert [rows(copies, "train") for copies in (0, 1, 3, 0)] == [10, 18, 34, 10]
    assert rows(3, "valid") == 10


def test_values_that_cannot_be() -> None:
    with pytest.raises(UserError, match=r"data.name_copies = -1: must not be negative"):
        DataConfig(name_copies=-1)
    with pytest.raises(UserError, match=r"data.name_copies = 2 belongs to data.task = 'translation', not to 'masked'"):
        DataConfig(task="masked", name_copies=2)
