"""From the fields of a row to the example of a task."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

from clearhead.config import DataConfig, Task, UserError, require
from clearhead.data.examples import Document, Example, LabelledText, Pair, SentencePair, is_empty
from clearhead.data.readers.tables import Location, SelectedFields
from clearhead.data.report import Report
from clearhead.text.chat import check
from clearhead.text.dialogue import Dialogue, Message

# The settings that name the columns of each task; the first ones must be there, those after "|" may.
WANTED: dict[Task, tuple[str, ...]] = {
    "translation": ("source", "target"),
    "language": ("text",),
    "masked": ("text",),
    "classification": ("text", "label"),
    "chat": ("source", "target", "|", "context"),
    "similarity": ("text", "other", "|", "label"),
}
EMPTY = "empty examples dropped"


def named_splits(config: DataConfig) -> list[str]:
    """The splits besides train that a setting names by another name than the usual: these must be there."""
    splits = ["test"] if config.hold_out else ["valid", "test"]
    return [split for split in splits if getattr(config, split) != getattr(DataConfig, split)]


def columns_of(config: DataConfig, what: str) -> SelectedFields:
    """The columns that the task needs and those that are set besides."""
    settings = WANTED[config.task]
    if config.task == "chat" and config.text:
        settings = ("text",)
    needed = settings[: settings.index("|")] if "|" in settings else settings
    chosen = [name for name in settings if name != "|" and getattr(config, name)]
    missing = [f"data.{name}" for name in needed if name not in chosen]
    require(
        not missing,
        f"{what}: data.task = {config.task!r} needs {' and '.join(missing)}: the column, by the name in its header or "
        f"its JSON field, or by its number from 1"
        + (", or the endings of two aligned files (train.en, train.de)" if config.task == "translation" else ""),
    )
    return SelectedFields(tuple(getattr(config, name) for name in chosen), tuple(chosen), config.escapes)


def example_of(values: tuple[Any, ...], columns: SelectedFields, config: DataConfig, where: Location) -> Example:
    """The example that a row holds."""
    if config.task == "chat" and config.text:
        return Dialogue(tuple(messages_of(values[0], where)))
    field = dict(zip(columns.settings, values, strict=True))
    for name, value in field.items():
        if not isinstance(value, str):
            hint = "; a list of messages is named by data.text" if config.task == "chat" else ""
            raise UserError(f"{where}: the field of data.{name} is a list, not text{hint}")
    match config.task:
        case "translation":
            return Pair(field["source"], field["target"])
        case "classification":
            return LabelledText(field["text"], label_of(field["label"], where))
        case "similarity":
            score = score_of(field["label"], config.best_score, where) if "label" in field else 1.0
            return SentencePair(field["text"], field["other"], score)
        case "chat":
            asked = "\n\n".join(part for part in (field["source"], field.get("context", "")) if part.strip())
            return Dialogue((Message("user", asked), Message("assistant", field["target"])))
        case _:
            return Document(field["text"])


def label_of(text: str, where: Location) -> str:
    """A class by its name, without white space around it."""
    if not text.strip():
        raise UserError(f"{where}: the label (data.label) is empty; every text needs one")
    return text.strip()


def score_of(text: str, best: float, where: Location) -> float:
    """A score between 0 and 1."""
    try:
        score = float(text)
    except ValueError:
        score = math.nan
    if not math.isfinite(score):
        raise UserError(f"{where}: {text!r} is no score (data.label); expected a number")
    if not 0 <= score <= best:
        raise UserError(f"{where}: score {text} is not between 0 and data.best_score = {best:g}; set it to the highest")
    return score / best


def messages_of(value: Any, where: Location) -> Iterator[Message]:
    """The messages of a conversation given as a list of {"role": ..., "content": ...}; an empty system one is none."""
    if not isinstance(value, list) or not value:
        raise UserError(f"{where}: expected a list of messages (data.text)")
    for message in value:
        is_message = isinstance(message, dict) and isinstance(message.get("content"), str)
        if not is_message or message.get("role") not in ("system", "user", "assistant"):
            raise UserError(f"{where}: a message is an object with a content and a role: system, user or assistant")
        if message["role"] != "system" or message["content"].strip():
            yield Message(message["role"], message["content"])


def kept(examples: Iterable[tuple[Location, Example]], report: Report) -> Iterator[tuple[Location, Example]]:
    """The examples that can be learned from: empty ones are left out and counted, a broken dialogue is an error."""
    for where, example in examples:
        if is_empty(example):
            report.add(EMPTY, str(where))
            continue
        if isinstance(example, Dialogue):
            check_turns(example, where)
        yield where, example


def check_turns(dialogue: Dialogue, where: Location) -> None:
    """An error with its place unless user and assistant speak in turn and the assistant has the last word."""
    try:
        check(dialogue)
    except UserError as error:
        raise UserError(f"{where}: {error}") from error
    if dialogue.messages[-1].role != "assistant":
        raise UserError(f"{where}: the last message is the {dialogue.messages[-1].role}'s; there is no answer to learn")
