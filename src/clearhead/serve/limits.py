"""What a request may ask for, and how many requests are accepted."""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import inf

from clearhead.config import require


@dataclass(frozen=True)
class Limits:
    """The limits of a server; each is an option of `clearhead serve`."""

    batch: int = 64  # texts that are generated at the same time
    queue: int = 256  # requests that wait; further ones are answered with 429
    texts: int = 128  # texts of one request
    characters: int = 100_000  # of all texts of one request
    tokens: int = 2048  # new tokens of one text
    seconds: float = 120.0  # time limit of a request, including the queue
    connections: int = 320  # at the same time: more than --queue and --batch, so that a full queue can be answered
    client_seconds: int = 30  # for a client to send the headers or the body of a request, or to read on

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            require(0 < value < inf, f"--{each.name.replace('_', '-')} {value}: must be above 0, and finite")
