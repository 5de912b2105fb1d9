"""What a request may ask for, and how many requests are accepted."""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import inf

from clearhead.config import require


@dataclass(frozen=True)
class Limits:
    """The limits of a server; each is an option of `clearhead serve`.

    Parameters
    ----------
    batch
        Texts that are generated at the same time.
    queue
        Requests that may wait; further ones are answered with 429.
    texts
        Texts of one request.
    characters
        Characters of all texts of one request.
    tokens
        New tokens of one text.
    seconds
        Time limit of a request, including the queue.
    connections
        Connections at the same time; fewer if the limit of open files (ulimit -n) is low.
    client_seconds
        Time for a client to send the headers or the body of a request, or to read a next part of the answer.

    """

    batch: int = 64
    queue: int = 256
    texts: int = 128
    characters: int = 100_000
    tokens: int = 2048
    seconds: float = 120.0
    connections: int = 320  # more than queue and batch, so that a full queue can be answered
    client_seconds: int = 30

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            require(0 < value < inf, f"--{each.name.replace('_', '-')} {value}: must be above 0, and finite")
