"""Pairs with invented names, so that a translator learns to copy names that it has never seen."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from clearhead.corpora.dice import Dice
from clearhead.corpora.grammar.invented import invent
from clearhead.data.examples import Pair

NAME = re.compile(r"\b[A-Z][a-z]{2,}\b")
INSIDE = re.compile(r"(?<=[\w,] )[A-Z][a-z]{2,}\b")  # not at the beginning of a sentence, where any word has a capital
FEWEST_PAIRS = 3  # a name occurs in at least so many pairs
SEED = "names"


def shared_names(pairs: Iterator[Pair]) -> set[str]:
    """Find names: words that are capitalised inside a sentence on both sides, in at least FEWEST_PAIRS pairs."""
    counts: Counter[str] = Counter()
    for pair in pairs:
        counts.update(set(INSIDE.findall(pair.source)) & set(INSIDE.findall(pair.target)))
    return {name for name, count in counts.items() if count >= FEWEST_PAIRS}


def with_invented_names(pairs: Iterator[Pair], names: set[str], copies: int) -> Iterator[Pair]:
    """Yield each pair; after one that has a name once on each side, also `copies` of it with invented names."""
    dice = Dice(SEED)
    for pair in pairs:
        yield pair
        found = [Counter(NAME.findall(text)) for text in (pair.source, pair.target)]
        both = sorted(name for name in names & found[0].keys() if found[0][name] == found[1][name] == 1)
        for _ in range(copies if both else 0):
            name = dice.choice(both)
            other = like(dice, name)
            yield Pair(*(re.sub(rf"\b{name}\b", other, text) for text in (pair.source, pair.target)))


def like(dice: Dice, name: str) -> str:
    """An invented name that begins with a vowel if the given one does: French has "de Tom", but "d'Alice"."""
    while True:
        other = invent(dice)
        if (other[0] in "AEIOU") == (name[0] in "AEIOU"):
            return other
