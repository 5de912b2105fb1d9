"""Answers of a run: after all messages so far, or without the oldest if they do not fit."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from clearhead.config import UserError
from clearhead.decode.chat import answer, fitting_prompt
from clearhead.library import Loaded
from clearhead.runs import Run
from clearhead.text.chat import render_prompt
from clearhead.text.dialogue import Dialogue, Message


def said(*contents: str) -> list[dict[str, str]]:
    return [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(contents)]


def test_an_answer_depends_on_all_that_was_said(talker: Run) -> None:
    loaded = Loaded(talker)
    alone = "".join(loaded.chat("the dog", tokens=8))
    later = loaded.chat(said("a cat", "runs", "the dog"), tokens=8)
    assert later.forgotten == 0
    assert "".join(later) != alone
    assert "".join(loaded.chat([{"role": "system", "content": "red"}, *said("the dog")], tokens=8)) != alone


def test_a_conversation_that_is_too_long_forgets_its_oldest_turns_and_says_so(talker: Run) -> None:
    old, new = ["the red car is fast"] * 8, ["a cat runs", "fast", "the dog"]
    system = {"role": "system", "content": "red"}
    answered = Loaded(talker).chat([system, *said(*old, *new)], tokens=20)
    kept = 11 - answered.forgotten
    assert 0 < answered.forgotten < 11
    assert answered.forgotten % 2 == 0  # a question goes with its answer
    assert "".join(answered) == "".join(Loaded(talker).chat([system, *said(*[*old, *new][-kept:])], tokens=20))
    dialogue = Dialogue(tuple(Message("user", "a") for _ in range(1)))
    assert fitting_prompt(talker, dialogue, 20) == (render_prompt(dialogue, talker.tokenizers.target), 0)


def test_an_answer_ends_where_the_positions_end(talker: Run) -> None:
    assert "".join(Loaded(talker).chat("the red car is fast", tokens=1000))
    with pytest.raises(UserError, match="the last message alone has"):
        Loaded(talker).chat("the red car is fast " * 30)


@pytest.mark.parametrize(
    ("messages", "message"),
    [
        ([], "the conversation is empty"),
        ([{"role": "system", "content": "red"}], "not the assistant's turn"),
        (said("a", "b"), "not the assistant's turn"),
        ([{"role": "robot", "content": "a"}], "unknown role 'robot'"),
        ([{"content": "a"}], "a message is an object with a content and a role"),
        ([{"role": "user", "content": None}], "a message is an object with a content and a role"),
        ("  ", "is empty"),
    ],
)
def test_what_is_no_conversation_is_refused(talker: Run, messages: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(UserError, match=message):
        Loaded(talker).chat(messages)


def test_an_answer_is_what_the_model_says_after_the_prompt(talker: Run) -> None:
    dialogue = Dialogue((Message("user", "the dog"),))
    prompt = render_prompt(dialogue, talker.tokenizers.target)
    ids = list(prompt)
    for _ in range(6):
        ids.append(int(talker.model(torch.tensor([ids]))[0, -1].argmax()))
        if ids[-1] == talker.tokenizers.target.end:
            break
    assert "".join(answer(talker, dialogue, tokens=6)) == talker.tokenizers.target.decode(ids[len(prompt) :])
