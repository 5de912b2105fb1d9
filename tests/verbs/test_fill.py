"""`clearhead fill`: the most likely tokens in the place of each mask, with their probabilities."""

from __future__ import annotations

import json
from pathlib import Path

import tokenizers
import torch

import clearhead
from clearhead.decode.fill import encode_masked, fill
from clearhead.text.tokenizer import Tokenizer
from command_line import Verb


def test_candidates_are_the_likeliest_tokens_of_the_model(verb: Verb, runs: dict[str, Path]) -> None:
    run = clearhead.load(runs["masked"]).run
    tokenizer = run.tokenizers.target
    text = "the <mask> car is <mask>"
    row = [tokenizer.start, *encode_masked(text, tokenizer), tokenizer.end]
    probabilities = run.model(torch.tensor([row])).softmax(-1)[0]
    [filled] = fill(run, [text], top=3)
    places = [place for place, number in enumerate(row) if number == tokenizer.mask]
    assert len(places) == len(filled.masks) == 2
    for place, candidates in zip(places, filled.masks, strict=True):
        best = probabilities[place].topk(3)
        assert [each.token for each in candidates] == [tokenizer.piece(n) for n in best.indices.tolist()]
        torch.testing.assert_close(torch.tensor([each.probability for each in candidates]), best.values)
    [line], _, code = verb("fill", runs["masked"], text, "--json", "--top", 3)
    read = json.loads(line)
    assert (read["text"], read["filled"], len(read["masks"]), len(read["masks"][0]), code) == (
        text,
        filled.text,
        2,
        3,
        0,
    )
    lines, _, _ = verb("fill", runs["masked"], stdin="the <mask>\na <mask> cat\n")
    assert len(lines) == 2 * (1 + 5)


def test_ids_without_a_token_are_no_obstacle() -> None:
    ids = {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4, "a": 9}  # 5 to 8 stand for nothing
    backend = tokenizers.Tokenizer(tokenizers.models.WordLevel(ids, unk_token="[UNK]"))
    backend.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    assert encode_masked("a [MASK] a", Tokenizer(backend)) == [9, 4, 9]


def test_a_text_alone_is_what_it_is_in_a_batch(runs: dict[str, Path]) -> None:
    run = clearhead.load(runs["masked"]).run
    texts = ["the <mask> car", "a <mask> cat runs and runs"]
    together = fill(run, texts)
    assert [each.text for each in together] == [fill(run, [text])[0].text for text in texts]


def test_what_cannot_be_filled_gets_a_sentence(verb: Verb, runs: dict[str, Path]) -> None:
    assert "text 1 has no <mask>: write it in place of" in verb("fill", runs["masked"], "the cat")[1]
    assert "data.max_length = 256; shorten it" in verb("fill", runs["masked"], "<mask>" + " cat" * 999)[1]
    assert "top = 0: must be between 1" in verb("fill", runs["masked"], "<mask>", "--top", 0)[1]
    assert "use it with `clearhead fill`" in verb("translate", runs["masked"], "a")[1]
