"""A tokenizer file that takes exponential time or makes the library panic is refused with a sentence."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from clearhead.config import TokenizerConfig, UserError
from clearhead.text.tokenizer import Tokenizer, load_tokenizer, train_tokenizer
from clearhead.text.tokenizer_formats import repeats_group
from damaged_files import edit_json


@pytest.mark.parametrize(
    ("pattern", "hostile"),
    [
        (r"(a+)+$", True),
        (r"(?:a|aa)*b", True),
        (r"((x)){2,}", True),
        (r"(?:a|aa){1,99}$", True),
        (r"(?<=\w)▁(?=\w)", False),
        (r" ?[^(\s|[.,!?…。，、।۔،])]+", False),  # BLOOM
        (
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s+",
            False,
        ),  # GPT-4
        (r"\(+\)+", False),
    ],
)
def test_patterns_that_take_exponential_time_are_recognised(pattern: str, hostile: bool) -> None:
    assert repeats_group(pattern) == hostile


def test_a_tokenizer_with_a_regular_expression_bomb_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    train_tokenizer(TokenizerConfig(vocab=300), ["the red car"] * 20, progress=False).save(path)
    bomb = {"type": "Split", "pattern": {"Regex": r"(a+)+$"}, "behavior": "Isolated", "invert": False}
    edit_json(path, pre_tokenizer=bomb)
    with pytest.raises(UserError, match="repeats a group, which can take exponential time"):
        load_tokenizer(path)


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"normalizer": {"type": "Precompiled", "precompiled_charsmap": "/////w=="}}, "the tokenizer library fails"),
        (
            {"pre_tokenizer": {"type": "FixedLength", "length": 0}},
            "cannot encode the text: chunk size",
        ),
    ],
)
def test_a_file_that_makes_the_tokenizer_library_panic_is_one_sentence(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], part: dict[str, Any], message: str
) -> None:
    path = tmp_path / "tokenizer.json"
    train_tokenizer(TokenizerConfig(vocab=300), ["the red car"] * 20, progress=False).save(path)
    edit_json(path, **part)
    with pytest.raises(UserError, match=message):
        load_tokenizer(path)
    os.write(2, b"stderr is back")
    assert capfd.readouterr() == ("", "stderr is back")


def test_a_decoder_that_panics_is_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    train_tokenizer(TokenizerConfig(vocab=300), ["the red car"] * 20, progress=False).save(path)
    edit_json(path, decoder={"type": "Strip", "content": "a", "start": 9, "stop": 9})
    tokenizer = load_tokenizer(path)
    with pytest.raises(UserError, match="this tokenizer cannot decode the ids: index out of bounds"):
        tokenizer.decode(tokenizer.encode("a"))


def test_a_panic_of_the_tokenizer_library_is_a_sentence() -> None:
    class PanicException(BaseException):
        pass

    class Backend:
        def encode_batch_fast(self, texts: list[str], add_special_tokens: bool) -> None:
            raise PanicException("retry-limit-in-match over")

    tokenizer = object.__new__(Tokenizer)
    tokenizer.backend = Backend()  # type: ignore[assignment]
    with pytest.raises(UserError, match="cannot encode the text: retry-limit-in-match over"):
        tokenizer._ids(["a"])
