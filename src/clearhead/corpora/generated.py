"""Generated corpora: examples drawn from a seed, with splits that share no example.

A corpus draws one example at a time. A hash of the example's key (what it says) decides its split, so two splits never
share an example, whatever the seed and the size. An example that contains a held-out word combination belongs to the
`compositional` split: its words are known from training (all but one in several hundred), their combination is new.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import lru_cache

from clearhead.config import UserError
from clearhead.corpora.dice import Dice, hash_of
from clearhead.data.examples import Example

SPLITS = ("train", "valid", "test", "compositional")
HELD_OUT_PERCENT = 4  # of the word combinations
MAX_CACHED_SIZE = 200_000  # largest train split that is kept in memory, at about 300 bytes an example
MAX_IDLE_DRAWS = 20_000  # draws in a row without a new example, after which a corpus counts as exhausted


@dataclass(frozen=True, slots=True)
class Draft:
    """A drawn example, with what decides its split."""

    example: Example
    key: str  # examples with the same key say the same; a split has only one of them
    combinations: tuple[str, ...] = ()  # pairs of content words in the example, such as "red car"; any may be held out
    group: str = ""  # examples of a group share a split; without a group, the key decides


def split_of(draft: Draft) -> str:
    """The one split a draft belongs to."""
    return split_by(draft.group or draft.key, draft.combinations)


@lru_cache(maxsize=1 << 16)
def is_held_out(combination: str) -> bool:
    """Whether a word combination appears in the `compositional` split only."""
    return hash_of(combination) % 100 < HELD_OUT_PERCENT


def split_by(group: str, combinations: Sequence[str] = ()) -> str:
    """The split of a group by its hash: 80 % train, 10 % valid, 10 % test; `compositional` if one is held out."""
    if any(map(is_held_out, combinations)):
        return "compositional"
    bucket = hash_of(group) % 10
    return "train" if bucket < 8 else "valid" if bucket == 8 else "test"


@dataclass(frozen=True)
class GeneratedCorpus:
    """A function that draws examples, with a name, a size and a seed."""

    name: str
    task: str
    about: str
    draw: Callable[[Dice], Draft]
    size: int = 100_000  # examples of train; the other splits have a tenth, at most 1,000
    seed: int = 0

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits, the same for all generated corpora."""
        return SPLITS

    def count(self, split: str) -> int:
        """The number of examples in a split."""
        return self.size if split == "train" else min(1000, max(1, self.size // 10))

    def read(self, split: str) -> Iterator[Example]:
        """The examples of a split: always the same for the same seed."""
        return copy(cached_examples(self, split)) if self.size <= MAX_CACHED_SIZE else self.examples(split)

    def examples(self, split: str) -> Iterator[Example]:
        """Draw the examples of a split."""
        return itertools.islice(self._draw_all(split), self.count(split))

    def _draw_all(self, split: str) -> Iterator[Example]:
        """Draw without end, and yield the new examples that belong to the split."""
        dice = Dice(f"{self.name} {split} {self.seed}")
        seen: set[int] = set()
        idle = 0
        while idle < MAX_IDLE_DRAWS:
            draft = self.draw(dice)
            key = hash_of(draft.key)
            if key in seen or split_of(draft) != split:
                idle += 1
                continue
            seen.add(key)
            idle = 0
            yield draft.example
        raise UserError(
            f"corpus {self.name!r} has no more than {len(seen):,} different {split} examples; "
            f"lower data.size = {self.size:,}"
        )


@lru_cache(maxsize=4)  # a run reads train three times: for the tokenizers of both sides, and to encode it
def cached_examples(corpus: GeneratedCorpus, split: str) -> Iterator[Example]:
    """The examples of a split, drawn on demand and kept; a copy of this iterator starts from the first example."""
    return itertools.tee(corpus.examples(split), 1)[0]
