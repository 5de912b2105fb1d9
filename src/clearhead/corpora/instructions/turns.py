"""One question and its answer, and what may be asked next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from clearhead.corpora.dice import Dice
from clearhead.corpora.generated import split_by

MEMORISED = "what can only be learned by heart"  # the group of all facts that no rule and no other question tells
assert split_by(MEMORISED) == "train"


@dataclass(frozen=True, slots=True)
class Turn:
    """What the user says and what the assistant should say.

    The key says what is asked, whatever the wording and whatever it leans on; questions of one group share a split, and
    without a group a question goes by its key. `next` are further questions that lean on this one ("now backwards"),
    drawn only when the conversation goes on.
    """

    ask: str
    answer: str
    key: str
    next: tuple[Callable[[Dice], Turn], ...] = ()
    combinations: tuple[str, ...] = ()
    group: str = ""

    @property
    def split(self) -> str:
        """The one split in which this may be asked."""
        return split_by(self.group or self.key, self.combinations)
