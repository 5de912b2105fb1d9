"""Generating with a run: one prompt or many, streamed or whole, and prompts that do not fit."""

from __future__ import annotations

import pytest

from clearhead.config import UserError
from clearhead.decode.generate import generate
from clearhead.decode.sampling import SamplingSettings
from clearhead.library import Loaded
from clearhead.runs import Run

WILD = SamplingSettings(temperature=1.5)


PROMPTS = ["the red", "", "a cat runs and the dog sees", "la voiture"]


def test_many_prompts_go_on_as_each_alone(writer: Run) -> None:
    loaded = Loaded(writer)
    assert loaded.generate(PROMPTS, tokens=12) == [loaded.generate(prompt, tokens=12) for prompt in PROMPTS]
    assert len(set(loaded.generate(PROMPTS, tokens=12))) > 2
    drawn = loaded.generate(PROMPTS, 12, WILD, seed=3)
    assert drawn == [loaded.generate(prompt, 12, WILD, seed=3 + number) for number, prompt in enumerate(PROMPTS)]


@pytest.mark.parametrize(
    "choice", [None, WILD, SamplingSettings(repetition_penalty=1.3, top_k=5)], ids=["greedy", "wild", "few"]
)
def test_a_stream_joined_is_the_whole(writer: Run, choice: SamplingSettings | None) -> None:
    loaded = Loaded(writer)
    pieces = list(loaded.stream("the red", 40, choice, seed=7))
    assert "".join(pieces) == loaded.generate("the red", 40, choice, seed=7)
    assert len(pieces) > 3


def test_the_same_seed_writes_the_same_text_and_none_another(writer: Run) -> None:
    loaded = Loaded(writer)
    assert loaded.generate("a", 20, WILD, seed=1) == loaded.generate("a", 20, WILD, seed=1)
    assert loaded.generate("a", 20, WILD, seed=1) != loaded.generate("a", 20, WILD, seed=2)
    assert loaded.generate("a", 20, WILD) != loaded.generate("a", 20, WILD)


def test_a_prompt_that_does_not_fit_is_refused_and_not_cut(talker: Run) -> None:
    loaded = Loaded(talker)  # 64 positions
    for write in (loaded.generate, lambda *given: list(loaded.stream(*given))):
        with pytest.raises(UserError, match=r"more than model\.max_length = 64"):
            write("the red car " * 50, 10)
    with pytest.raises(UserError, match="at least 1"):
        loaded.generate("the", tokens=0)
    assert generate(talker, [], tokens=5) == []
