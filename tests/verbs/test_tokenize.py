"""`clearhead tokenize` shows the tokens of a run, of a file, or of a recipe."""

from __future__ import annotations

import json
from pathlib import Path

from clearhead.text.tokenizer import load_tokenizer
from command_line import TRAINED, Verb


def test_tokens_ids_and_counts_are_the_tokenizers(verb: Verb) -> None:
    expected = load_tokenizer(TRAINED / "tokenizer.json").pieces("the red car")
    for name in (TRAINED, TRAINED / "tokenizer.json"):
        [line], _, code = verb("tokenize", name, "--json", stdin="the red car\n")
        read = json.loads(line)
        assert (code, read["count"], read["ids"]) == (0, len(expected), [number for _, number in expected])
        assert read["tokens"] == [piece for piece, _ in expected]
    lines, _, _ = verb("tokenize", TRAINED, "the red car")
    assert all(f"{piece} {number}" in lines[0] for piece, number in expected)
    assert lines[-1] == f"{len(expected)} tokens, 11 characters, 11 bytes"
    assert verb("tokenize", TRAINED, "a")[0][-1] == "1 token, 1 character, 1 byte"


def test_a_recipe_has_its_tokenizer_trained(verb: Verb, tmp_path: Path) -> None:
    recipe = tmp_path / "small.toml"
    recipe.write_text('[data]\ncorpus = "phrasebook"\nsize = 50\n[tokenizer]\nvocab = 300\n')
    [line], _, code = verb("tokenize", recipe, "--json", "a cat")
    assert (code, json.loads(line)["text"]) == (0, "a cat")
    assert "is not a run, a tokenizer.json or a recipe" in verb("tokenize", "./nothing", "a")[1]
