"""One question and its answer, and what may be asked next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from clearhead.text.corpora.embedded import Dice


@dataclass(frozen=True, slots=True)
class Turn:
    """What the user says and what the assistant should say.

    The key says what is asked, whatever the wording; `next` are further questions that lean on this one ("now
    backwards"), drawn only when the conversation goes on.
    """

    ask: str
    answer: str
    key: str
    next: tuple[Callable[[Dice], Turn], ...] = ()
    combinations: tuple[str, ...] = ()
