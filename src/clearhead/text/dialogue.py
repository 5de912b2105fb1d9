"""A conversation: what its messages are and who says them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Role = Literal["system", "user", "assistant"]


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation."""

    role: Role
    content: str


@dataclass(frozen=True, slots=True)
class Dialogue:
    """A conversation: optionally a system message, then user and assistant in turn."""

    messages: tuple[Message, ...]
