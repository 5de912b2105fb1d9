"""Conversations as ids, and which of them a model learns: what the assistant says, and to stop after it.

    <system>Be brief.<end><user>What is 2 + 2?<end><assistant>4.<end>
                                                              ^^^^^^^ learned

Each message is the special token of its role, its words exactly as they were written, and <end>. A prompt to answer
stops after the last <assistant>. There is no other mark, and words can never turn into one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, get_args

from clearhead.config import UserError, require, suggest
from clearhead.terminal.colour import visible
from clearhead.text.dialogue import Dialogue, Role
from clearhead.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from rich.text import Text

ROLES = get_args(Role)


@dataclass(frozen=True, slots=True)
class Rendered:
    """A conversation as ids; `learn` says of each whether a model is to learn to say it."""

    ids: list[int]
    learn: list[bool]


def render(dialogue: Dialogue, tokenizer: Tokenizer) -> Rendered:
    """A conversation to learn from; it must end with the assistant."""
    check(dialogue)
    last = dialogue.messages[-1]
    require(
        last.role == "assistant",
        f"the conversation ends with the {last.role} ({quote(last.content)}), so its last answer is missing; add an "
        f"assistant message, or leave that message out",
    )
    return _render(dialogue, tokenizer)


def prompt(dialogue: Dialogue, tokenizer: Tokenizer) -> list[int]:
    """The ids after which it is the assistant's turn; the conversation must end with the user."""
    check(dialogue)
    last = dialogue.messages[-1]
    require(
        last.role == "user",
        f"it is not the assistant's turn: the last message ({quote(last.content)}) is from the {last.role}; add a "
        f"message from the user",
    )
    return [*_render(dialogue, tokenizer).ids, tokenizer.assistant]


def _render(dialogue: Dialogue, tokenizer: Tokenizer) -> Rendered:
    ids: list[int] = []
    learn: list[bool] = []
    contents = tokenizer.encode_batch([message.content for message in dialogue.messages])
    for message, words in zip(dialogue.messages, contents, strict=True):
        ids += [tokenizer.special(message.role), *words, tokenizer.end]
        learn += [False, *[message.role == "assistant"] * (len(words) + 1)]
    return Rendered(ids, learn)


def check(dialogue: Dialogue) -> None:
    """An error unless it is a conversation: perhaps a system message, then user and assistant in turn."""
    require(bool(dialogue.messages), "the conversation is empty: it needs a message from the user")
    turn = "user"
    for number, message in enumerate(dialogue.messages, 1):
        where = f"message {number} ({quote(message.content)})"
        require(message.role in ROLES, f"{where} has the unknown role {message.role!r}; {suggest(message.role, ROLES)}")
        require(
            bool(message.content.strip()), f"{where} from the {message.role} has no words; leave the conversation out"
        )
        if message.role == "system" and number == 1:
            continue
        if message.role != turn:
            raise UserError(
                f"{where} is from the {message.role}, but it is the {turn}'s turn: a conversation is perhaps a system "
                f"message, then user and assistant in turn; join messages of one side, or leave one out"
            )
        turn = "assistant" if turn == "user" else "user"


def quote(content: str) -> str:
    """The beginning of a message, for errors."""
    return repr(content if len(content) <= 40 else content[:37] + "...")


def show(rendered: Rendered, tokenizer: Tokenizer, bars: bool = False) -> Text:
    """A conversation for the terminal, a line for each message; what is learned stands on green, between ⟦ and ⟧.

    With bars, each token is set apart from the next.
    """
    from rich.text import Text  # a tenth of a second, paid by those who look

    shown = Text()
    for (mark, _), *words in messages(rendered, tokenizer):
        shown.append(tokenizer.piece(mark), style="bold cyan")
        for learn, run in groupby(words, key=itemgetter(1)):
            ids = [number for number, _ in run]
            text = "│".join(map(tokenizer.piece, ids)) if bars else tokenizer.decode(ids, keep_special=True)
            lines = visible(text).replace("⏎", "⏎\n")
            shown.append(f"⟦{lines}⟧" if learn else lines, style="black on green" if learn else "")
        shown.append("\n")
    shown.rstrip()
    return shown


def messages(rendered: Rendered, tokenizer: Tokenizer) -> Iterator[list[tuple[int, bool]]]:
    """The tokens of each message, up to its <end>; the last one may be unfinished."""
    message: list[tuple[int, bool]] = []
    for number, learn in zip(rendered.ids, rendered.learn, strict=True):
        message.append((number, learn))
        if number == tokenizer.end:
            yield message
            message = []
    if message:
        yield message
