"""Conversations to token ids, and which of them are learned: those that the assistant says, and the <end> after them.

    <system>Be brief.<end><user>What is 2 + 2?<end><assistant>4.<end>
                                                              ^^^^^^^ learned

Each message consists of the special token of its role, its text, unchanged, and <end>. A prompt ends with <assistant>.
There is no other special token, and no text can be encoded as one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast, get_args

from clearhead.config import UserError, require, suggest
from clearhead.text.dialogue import Dialogue, Message, Role
from clearhead.text.tokenizer import Tokenizer

ROLES = get_args(Role)


@dataclass(frozen=True, slots=True)
class Rendered:
    """A conversation as token ids; `learn` says which of them are learned."""

    ids: list[int]
    learn: list[bool]


def render(dialogue: Dialogue, tokenizer: Tokenizer) -> Rendered:
    """Encode a conversation to learn from; it must end with the assistant."""
    check_dialogue(dialogue)
    last = dialogue.messages[-1]
    require(
        last.role == "assistant",
        f"the conversation ends with the {last.role} ({quote(last.content)}), so there is no answer to learn; add an "
        f"assistant message, or leave that message out",
    )
    return _render(dialogue, tokenizer)


def render_prompt(dialogue: Dialogue, tokenizer: Tokenizer) -> list[int]:
    """Encode a conversation that the assistant has to answer; it must end with the user."""
    check_dialogue(dialogue)
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
    for message, content in zip(dialogue.messages, contents, strict=True):
        ids += [tokenizer.special(message.role), *content, tokenizer.end]
        learn += [False, *[message.role == "assistant"] * (len(content) + 1)]
    return Rendered(ids, learn)


def message_from(value: Any) -> Message:
    """The message of an object {"role": ..., "content": ...}, as in JSON; `check_dialogue` checks the role."""
    fields = value if isinstance(value, Mapping) else {}
    role = fields.get("role")
    content = fields.get("content")
    if not (isinstance(role, str) and isinstance(content, str)):
        raise UserError("a message is an object with a content and a role: system, user or assistant")
    return Message(cast(Role, role), content)


def check_dialogue(dialogue: Dialogue) -> None:
    """Refuse a conversation unless it is an optional system message, then user and assistant in turn."""
    require(bool(dialogue.messages), "the conversation is empty: it needs a message from the user")
    turn = "user"
    for number, message in enumerate(dialogue.messages, 1):
        where = f"message {number} ({quote(message.content)})"
        require(message.role in ROLES, f"{where} has the unknown role {message.role!r}; {suggest(message.role, ROLES)}")
        require(bool(message.content.strip()), f"{where} from the {message.role} is empty; leave the conversation out")
        if message.role == "system" and number == 1:
            continue
        if message.role != turn:
            raise UserError(
                f"{where} is from the {message.role}, but it is the {turn}'s turn: a conversation is an optional "
                f"system message, then user and assistant in turn; join messages of one side, or leave one out"
            )
        turn = "assistant" if turn == "user" else "user"


def quote(content: str) -> str:
    """The beginning of a message, for error messages."""
    return repr(content if len(content) <= 40 else content[:37] + "...")
