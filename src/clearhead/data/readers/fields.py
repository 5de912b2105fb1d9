"""From the fields of a row to an example. One constructor for each kind of example, registered in `EXAMPLES`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from clearhead.config import DataConfig, UserError, require
from clearhead.data.examples import Document, Example, LabelledText, Pair, SentencePair, is_empty
from clearhead.data.readers.files import format_of
from clearhead.data.readers.tables import Location, SelectedFields, TableRow, first_fields
from clearhead.data.report import Report
from clearhead.tasks import TASKS
from clearhead.text.chat import check_dialogue, message_from
from clearhead.text.dialogue import Dialogue, Message

Texts = dict[str, str]  # the fields of a row, by the setting that names their column

SPLITS = ("train", "valid", "test")
SPEAKERS = {"human": "user", "gpt": "assistant"}  # of ShareGPT -> roles
FIELD = "where FIELD is a name in the header or in JSON, or a number from 1"
EMPTY = "empty examples dropped"


def named_splits(config: DataConfig) -> list[str]:
    """The splits other than train whose setting is not the default: these must exist."""
    splits = ["test"] if config.hold_out else ["valid", "test"]
    return [split for split in splits if getattr(config, split) != getattr(DataConfig, split)]


def column_settings(name: str) -> list[str]:
    """The ways to name the columns that a task reads; settings in brackets are optional."""
    task = TASKS[name]
    optional = [f"[data.{column}=FIELD]" for column in task.optional_columns]
    optional += ["[data.best_score=5]"] if "best_score" in task.settings else []
    each = " ".join([*(f"data.{column}=FIELD" for column in task.columns), *optional])
    return [each, *([f"data.{task.whole_column}=FIELD (a list of messages)"] if task.whole_column else [])]


def columns_of(config: DataConfig, corpus: Path | str) -> SelectedFields:
    """The columns that the task needs, and the optional ones that are set."""
    task = TASKS[config.task]
    needed = (task.whole_column,) if has_whole_column(config) else task.columns
    optional = () if has_whole_column(config) else task.optional_columns
    chosen = [name for name in (*needed, *optional) if getattr(config, name)]
    missing = [f"data.{name}" for name in needed if name not in chosen]
    if missing:
        ways = " or ".join(column_settings(config.task))
        there = ""
        if isinstance(corpus, Path):
            plain = format_of(corpus) == ".txt"
            there = f"; {corpus.name} is plain text, without columns" if plain else f"; it has {first_fields(corpus)}"
        aligned = ", or the suffixes of two aligned files (train.en, train.de)" if task.example == "pair" else ""
        raise UserError(
            f"{corpus}: data.task = {config.task!r} needs {' and '.join(missing)}: {ways}, {FIELD}{aligned}{there}"
        )
    return SelectedFields(tuple(getattr(config, name) for name in chosen), tuple(chosen), config.escapes)


def read_examples(
    source: Path | str, rows: Iterable[TableRow], columns: SelectedFields, config: DataConfig, report: Report
) -> Iterator[tuple[Location, Example]]:
    """Yield each example with its location. Empty ones are left out and counted; an invalid one is an error."""
    for line, values in rows:
        where = Location(source, line)
        try:
            example = example_of(values, columns, config)
            empty = is_empty(example)
            if isinstance(example, Dialogue) and not empty:
                check_turns(example)
        except UserError as error:
            raise UserError(f"{where}: {error}") from error
        if empty:
            report.add(EMPTY, str(where))
        else:
            yield where, example


def example_of(values: tuple[Any, ...], columns: SelectedFields, config: DataConfig) -> Example:
    """The example in a row."""
    if has_whole_column(config):
        return Dialogue(tuple(messages_of(values[0])))
    texts = dict(zip(columns.settings, values, strict=True))
    for name, value in texts.items():
        if not isinstance(value, str):
            whole = TASKS[config.task].whole_column
            hint = f"; a list of messages is named by data.{whole}" if whole else ""
            raise UserError(f"the field of data.{name} is a list, not text{hint}")
    return EXAMPLES[TASKS[config.task].example](texts, config)


def has_whole_column(config: DataConfig) -> bool:
    """Whether one column contains whole examples: a list of messages in each row."""
    whole = TASKS[config.task].whole_column
    return whole != "" and getattr(config, whole) != ""


def dialogue_of(texts: Texts, _: DataConfig) -> Dialogue:
    """A question, perhaps with further input below it, and its answer."""
    parts = (texts["source"], texts.get("context", ""))
    question = "\n\n".join(part for part in parts if part.strip())
    return Dialogue((Message("user", question), Message("assistant", texts["target"])))


def labelled_text_of(texts: Texts, _: DataConfig) -> LabelledText:
    """A text and the name of its class, without surrounding white space."""
    label = texts["label"].strip()
    require(label != "", "the label (data.label) is empty; fill it in, or leave the row out")
    return LabelledText(texts["text"], label)


def sentence_pair_of(texts: Texts, config: DataConfig) -> SentencePair:
    """Two sentences and their score, divided by the best one; without a column of scores, they mean the same."""
    score = score_of(texts["label"], config.best_score) if "label" in texts else 1.0
    return SentencePair(texts["text"], texts["other"], score)


EXAMPLES: dict[str, Callable[[Texts, DataConfig], Example]] = {  # by `Task.example`
    "pair": lambda texts, _: Pair(texts["source"], texts["target"]),
    "document": lambda texts, _: Document(texts["text"]),
    "labelled text": labelled_text_of,
    "dialogue": dialogue_of,
    "sentence pair": sentence_pair_of,
}


def score_of(text: str, best: float) -> float:
    """A score, divided by the best one: a number from 0 to 1."""
    try:
        score = float(text)
    except ValueError:
        score = math.nan
    require(math.isfinite(score), f"{text!r} is not a score (data.label); expected a number such as 0.5")
    require(
        0 <= score <= best, f"score {text} is not between 0 and data.best_score = {best:g}; set it to the highest one"
    )
    return score / best


def messages_of(value: Any) -> Iterator[Message]:
    """The messages of a list of {"role": ..., "content": ...}; an empty system message is left out."""
    require(isinstance(value, list) and bool(value), "expected a list of messages (data.text)")
    for message in map(message_from, map(renamed_fields, value)):
        if message.role != "system" or message.content.strip():
            yield message


def renamed_fields(message: Any) -> Any:
    """A message {"from": ..., "value": ...}, as in ShareGPT, with the usual names; any other one as it is."""
    if not (isinstance(message, dict) and message.keys() >= {"from", "value"}):
        return message
    speaker = message["from"]
    return {"role": SPEAKERS.get(str(speaker), speaker), "content": message["value"]}


def check_turns(dialogue: Dialogue) -> None:
    """Refuse a conversation unless user and assistant alternate and the assistant has the last message."""
    check_dialogue(dialogue)
    last = dialogue.messages[-1].role
    require(last == "assistant", f"the last message is from the {last}; there is no answer to learn")
