"""How well people agree: BLEU between different translations of a sentence, where the training data has several.

The sentences are as long as those of a split, so that the score can be compared with that of a run on the split. A
score of 100 cannot be reached, since nobody can know which of several good translations the reference is. How often two
people write the same is not known, because a corpus has each pair once: --equal assumes a percentage.

python bench/agreement.py [--recipe tatoeba-en-fr] [--data data/tatoeba-en-fr] [--split valid] [--equal 30]
    [--run english-french]
"""

from __future__ import annotations

import random
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from measure import options

import clearhead
from clearhead.data.examples import Example, Pair
from clearhead.data.sources import open_corpus
from clearhead.evaluate.measures import bleu
from clearhead.recipes import load_recipe

DRAWS = 5  # random choices of sentences and translations: the score is their mean
LONGEST = 12  # words; longer sentences are one group

Several = dict[int, list[list[str]]]  # by the length of the source, all translations of each source that has several


def main() -> None:
    chosen = options(__doc__, recipe="tatoeba-en-fr", data="data/tatoeba-en-fr", split="valid", equal=30, run="")
    if not Path(chosen.data).is_dir():
        print(f"left out: there is no {chosen.data}; --data names the folder of the corpus")
        return
    corpus = open_corpus(load_recipe(chosen.recipe, [f"data.path={chosen.data}"]).data)
    several = by_length(pairs(corpus.read("train")))
    whole = list(pairs(corpus.read(chosen.split)))
    split = [pair for pair in whole if words(pair.source) in several]
    print(f"{len(split):,} of {len(whole):,} sentences of {chosen.split} are as long as one of these")
    if not split:
        return
    for equal in (0, chosen.equal):
        scores = [agreement(several, split, equal / 100, random.Random(seed)) for seed in range(DRAWS)]
        found = f"BLEU {statistics.mean(scores):.1f}, standard deviation {statistics.stdev(scores):.1f}"
        print(f"two translations by people, of which {equal} % are equal: {found}")
    if chosen.run:
        compare(chosen.run, split)


def pairs(examples: Iterable[Example]) -> Iterator[Pair]:
    """The examples, which are pairs."""
    for example in examples:
        assert isinstance(example, Pair)
        yield example


def by_length(train: Iterable[Pair]) -> Several:
    """Collect the sentences with several translations."""
    found = defaultdict(set)
    for pair in train:
        found[pair.source].add(pair.target)
    several: Several = defaultdict(list)
    for source, targets in found.items():
        if len(targets) > 1:
            several[words(source)].append(sorted(targets))
    print(f"{sum(map(len, several.values())):,} of {len(found):,} sentences of train have several translations")
    return several


def words(source: str) -> int:
    """The number of words of a sentence, at most LONGEST."""
    return min(len(source.split()), LONGEST)


def agreement(several: Several, split: list[Pair], equal: float, draw: random.Random) -> float:
    """BLEU of one translation against another, for as many sentences of each length as the split has."""
    drawn = []
    for pair in split:
        one, other = draw.sample(draw.choice(several[words(pair.source)]), 2)
        drawn.append((pair.target, pair.target) if draw.random() < equal else (one, other))
    return score(drawn)


def compare(run: str, split: list[Pair]) -> None:
    """Print the score of a run, and that of its translations that differ from the reference."""
    texts = clearhead.load(run).translate([pair.source for pair in split])
    both = [(text, pair.target) for text, pair in zip(texts, split, strict=True)]
    other = [(text, wanted) for text, wanted in both if text != wanted]
    equal = 1 - len(other) / len(both)
    rest = f", on the others BLEU {score(other):.1f}" if other else ""
    print(f"{run}: BLEU {score(both):.1f}; {equal:.1%} equal the reference{rest}")


def score(both: list[tuple[str, str]]) -> float:
    """BLEU of translations against references."""
    return bleu([text for text, _ in both], [wanted for _, wanted in both]).value


if __name__ == "__main__":
    main()
