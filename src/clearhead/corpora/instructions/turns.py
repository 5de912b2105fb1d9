"""One question with its answer and its possible follow-ups."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from clearhead.corpora.dice import Dice
from clearhead.corpora.generated import split_by

# the group of facts that follow from no rule and no other question; its hash puts them into train
MEMORISED = "what can only be learned by heart"
assert split_by(MEMORISED) == "train"


@dataclass(frozen=True, slots=True)
class Turn:
    """What the user asks and what the assistant should answer.

    The key says what is asked, whatever the wording. Questions of a group share a split; without a group, the key
    decides. `next` draws follow-up questions that refer to this one ("now backwards").
    """

    ask: str
    answer: str
    key: str
    next: tuple[Callable[[Dice], Turn], ...] = ()
    combinations: tuple[str, ...] = ()
    group: str = ""

    @property
    def split(self) -> str:
        """The one split this question belongs to."""
        return split_by(self.group or self.key, self.combinations)
