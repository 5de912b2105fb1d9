"""Rows as examples: labels, scores and conversations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from clearhead.data.examples import SentencePair
from clearhead.text.dialogue import Dialogue, Message
from reading import corpus, error_of, read


def test_scores_are_divided_by_the_best_and_refused_above_it(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("a,b,2.5\n")
    settings: dict[str, Any] = {"task": "similarity", "text": "1", "other": "2"}
    assert read(tmp_path, **settings, label="3", best_score=5.0) == [SentencePair("a", "b", 0.5)]
    assert read(tmp_path, **settings) == [SentencePair("a", "b", 1.0)]
    message = error_of(lambda: read(tmp_path, **settings, label="3"))
    assert "train.csv:1: score 2.5 is not between 0 and data.best_score = 1; set it to the highest one" in message
    for bad in ("much", "nan", "inf", ""):
        (tmp_path / "train.csv").write_text(f"a,b,{bad}\n")
        assert "is not a score" in error_of(lambda: read(tmp_path, **settings, label="3"))
    (tmp_path / "train.tsv").write_text("a\tb\t0,5\n")
    message = error_of(lambda: read(tmp_path / "train.tsv", **settings, label="3"))
    assert message.endswith("'0,5' is not a score (data.label); expected a number such as 0.5")
    (tmp_path / "train.tsv").unlink()
    (tmp_path / "train.csv").write_text("a,b, \n")
    message = error_of(lambda: read(tmp_path, task="classification", text="1", label="3"))
    assert message.endswith("train.csv:1: the label (data.label) is empty; fill it in, or leave the row out")


def test_chat_from_columns_and_from_messages(tmp_path: Path) -> None:
    record = {
        "q": "Add.",
        "c": "1 2",
        "a": "3",
        "m": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}],
    }
    (tmp_path / "train.jsonl").write_text(json.dumps(record) + "\n" + json.dumps(record | {"c": "", "a": " "}) + "\n")
    opened = corpus(tmp_path, task="chat", source="q", context="c", target="a")
    assert list(opened.read("train")) == [Dialogue((Message("user", "Add.\n\n1 2"), Message("assistant", "3")))]
    assert opened.reports["train"].counts == {"empty examples dropped": 1}
    messages = read(tmp_path, task="chat", text="m")
    assert messages == [Dialogue((Message("user", "Hi"), Message("assistant", "Ho")))] * 2


def test_conversations_of_sharegpt(tmp_path: Path) -> None:
    turns = [("system", "Be brief."), ("human", "Hi"), ("gpt", "Ho")]
    record = {"id": "1", "conversations": [{"from": speaker, "value": text} for speaker, text in turns]}
    (tmp_path / "train.json").write_text(json.dumps([record]))
    spoken = (Message("system", "Be brief."), Message("user", "Hi"), Message("assistant", "Ho"))
    assert read(tmp_path, task="chat", text="conversations") == [Dialogue(spoken)]
    record["conversations"][1]["from"] = ["human"]
    (tmp_path / "train.json").write_text(json.dumps([record]))
    assert "train.json: item 1: a message is an object with" in error_of(
        lambda: read(tmp_path, task="chat", text="conversations")
    )


def test_an_empty_system_message_is_none(tmp_path: Path) -> None:
    empty = {"role": "system", "content": " \n"}
    spoken = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]
    conversations = [[empty, *spoken], [empty], [empty, spoken[0], spoken[1] | {"content": ""}]]
    (tmp_path / "train.jsonl").write_text("".join(json.dumps({"m": each}) + "\n" for each in conversations))
    opened = corpus(tmp_path, task="chat", text="m")
    assert list(opened.read("train")) == [Dialogue((Message("user", "Hi"), Message("assistant", "Ho")))]
    assert opened.reports["train"].counts == {"empty examples dropped": 2}


@pytest.mark.parametrize(
    "messages",
    [
        "hello",
        [],
        [{"role": "user"}],
        [{"role": "boss", "content": "x"}],
        [{"role": "user", "content": "x"}],
        [{"role": "assistant", "content": "x"}],
        [{"role": "user", "content": "x"}, {"role": "user", "content": "y"}],
    ],
)
def test_broken_conversations_are_named(tmp_path: Path, messages: Any) -> None:
    (tmp_path / "train.jsonl").write_text(json.dumps({"m": messages}) + "\n")
    assert "train.jsonl:1: " in error_of(lambda: read(tmp_path, task="chat", text="m"))
