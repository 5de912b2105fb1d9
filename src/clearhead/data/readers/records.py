"""From the fields of a row to an example. One constructor for each kind of example, registered in `EXAMPLES`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from clearhead.config import DataConfig, UserError, require
from clearhead.data.examples import Document, Example, LabelledText, Pair, SentencePair, is_empty
from clearhead.data.readers.tables import Location, SelectedFields
from clearhead.data.report import Report
from clearhead.tasks import TASKS
from clearhead.text.chat import check_dialogue, message_from
from clearhead.text.dialogue import Dialogue, Message

EMPTY = "empty examples dropped"


class NamedFields(NamedTuple):
    """The fields of a row, by the setting that names their column."""

    texts: dict[str, str]
    config: DataConfig
    where: Location


def named_splits(config: DataConfig) -> list[str]:
    """The splits other than train whose setting is not the default: these must exist."""
    splits = ["test"] if config.hold_out else ["valid", "test"]
    return [split for split in splits if getattr(config, split) != getattr(DataConfig, split)]


def columns_of(config: DataConfig, corpus: str) -> SelectedFields:
    """The columns that the task needs, and the optional ones that are set."""
    task = TASKS[config.task]
    needed = (task.whole_column,) if has_whole_column(config) else task.columns
    optional = () if has_whole_column(config) else task.optional_columns
    chosen = [name for name in (*needed, *optional) if getattr(config, name)]
    missing = [f"data.{name}" for name in needed if name not in chosen]
    require(
        not missing,
        f"{corpus}: data.task = {config.task!r} needs {' and '.join(missing)}: a column, by its name in the header or "
        f"in JSON, or by its number from 1"
        + (", or the suffixes of two aligned files (train.en, train.de)" if task.example == "pair" else ""),
    )
    return SelectedFields(tuple(getattr(config, name) for name in chosen), tuple(chosen), config.escapes)


def example_of(values: tuple[Any, ...], columns: SelectedFields, config: DataConfig, where: Location) -> Example:
    """The example in a row."""
    if has_whole_column(config):
        return Dialogue(tuple(messages_of(values[0], where)))
    field = dict(zip(columns.settings, values, strict=True))
    for name, value in field.items():
        if not isinstance(value, str):
            whole = TASKS[config.task].whole_column
            hint = f"; a list of messages is named by data.{whole}" if whole else ""
            raise UserError(f"{where}: the field of data.{name} is a list, not text{hint}")
    return EXAMPLES[TASKS[config.task].example](NamedFields(field, config, where))


def has_whole_column(config: DataConfig) -> bool:
    """Whether one column contains whole examples: a list of messages in each row."""
    whole = TASKS[config.task].whole_column
    return whole != "" and getattr(config, whole) != ""


def pair_of(fields: NamedFields) -> Pair:
    """A source and its target."""
    return Pair(fields.texts["source"], fields.texts["target"])


def document_of(fields: NamedFields) -> Document:
    """A text."""
    return Document(fields.texts["text"])


def labelled_text_of(fields: NamedFields) -> LabelledText:
    """A text and its label."""
    return LabelledText(fields.texts["text"], label_of(fields.texts["label"], fields.where))


def dialogue_of(fields: NamedFields) -> Dialogue:
    """A question, perhaps with further input below it, and its answer."""
    parts = (fields.texts["source"], fields.texts.get("context", ""))
    question = "\n\n".join(part for part in parts if part.strip())
    return Dialogue((Message("user", question), Message("assistant", fields.texts["target"])))


def sentence_pair_of(fields: NamedFields) -> SentencePair:
    """Two sentences and their score; without a column of scores, they mean the same."""
    label = fields.texts.get("label")
    score = 1.0 if label is None else score_of(label, fields.config.best_score, fields.where)
    return SentencePair(fields.texts["text"], fields.texts["other"], score)


EXAMPLES: dict[str, Callable[[NamedFields], Example]] = {  # by `Task.example`
    "pair": pair_of,
    "document": document_of,
    "labelled text": labelled_text_of,
    "dialogue": dialogue_of,
    "sentence pair": sentence_pair_of,
}


def label_of(text: str, where: Location) -> str:
    """The name of a class, without surrounding white space."""
    if not text.strip():
        raise UserError(f"{where}: the label (data.label) is empty; every text needs one")
    return text.strip()


def score_of(text: str, best: float, where: Location) -> float:
    """A score, divided by the best one: a number from 0 to 1."""
    try:
        score = float(text)
    except ValueError:
        score = math.nan
    if not math.isfinite(score):
        raise UserError(f"{where}: {text!r} is not a score (data.label); expected a number")
    if not 0 <= score <= best:
        raise UserError(f"{where}: score {text} is not between 0 and data.best_score = {best:g}; raise best_score")
    return score / best


def messages_of(value: Any, where: Location) -> Iterator[Message]:
    """The messages of a list of {"role": ..., "content": ...}; an empty system message is left out."""
    if not isinstance(value, list) or not value:
        raise UserError(f"{where}: expected a list of messages (data.text)")
    for each in value:
        try:
            message = message_from(each)
        except UserError as error:
            raise UserError(f"{where}: {error}") from error
        if message.role != "system" or message.content.strip():
            yield message


def kept(examples: Iterable[tuple[Location, Example]], report: Report) -> Iterator[tuple[Location, Example]]:
    """The examples to learn from: empty ones are left out and counted, an invalid conversation is an error."""
    for where, example in examples:
        if is_empty(example):
            report.add(EMPTY, str(where))
            continue
        if isinstance(example, Dialogue):
            check_turns(example, where)
        yield where, example


def check_turns(dialogue: Dialogue, where: Location) -> None:
    """Refuse a conversation unless user and assistant alternate and the assistant has the last message."""
    try:
        check_dialogue(dialogue)
    except UserError as error:
        raise UserError(f"{where}: {error}") from error
    last = dialogue.messages[-1].role
    if last != "assistant":
        raise UserError(f"{where}: the last message is from the {last}; there is no answer to learn")
