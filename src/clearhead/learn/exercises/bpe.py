"""The exercise `bpe`: count pairs of tokens, merge one of them."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

from clearhead.learn.exercise import Case, Exercise, Mistake, Patch, Piece, call
from clearhead.text import bpe


def cases() -> list[Case]:
    """Words with counts, repeated letters, pairs that overlap."""
    hello = [bytes([byte]) for byte in b"hello hello"]
    return [
        call("count_pairs", "pairs within one word are counted", [([b"t", b"h", b"e"], 1), ([b"a"], 1)]),
        call(
            "count_pairs", "frequent words count more", [([b"t", b"h", b"e"], 7), ([b"h", b"e"], 2), ([b"e", b"t"], 3)]
        ),
        call("merge", "every occurrence is merged", hello, (b"l", b"l")),
        call("merge", "merged tokens can be merged again", [b"th", b"e", b"n", b"th", b"e"], (b"th", b"e")),
        call("merge", "a token belongs to one pair at most", [b"a"] * 5, (b"a", b"a")),
        call("merge", "nothing to merge", [b"x"], (b"x", b"x")),
    ]


MISTAKES = (
    Mistake(
        "The number of occurrences of a word is ignored",
        "A word that occurs seven times has each of its pairs seven times: add its count, not 1.",
        "counts[pair] += count",
        "counts[pair] += 1",
    ),
    Mistake(
        "Pairs are counted across the border of two words",
        "The last token of a word and the first of the next are no neighbours: handle each word alone.",
        """    for tokens, count in words:
        for pair in pairwise(tokens):
            counts[pair] += count
""",
        """    line = [(token, count) for tokens, count in words for token in tokens]
    for (left, count), (right, _) in pairwise(line):
        counts[left, right] += count
""",
    ),
    Mistake(
        "Only the first occurrence is merged",
        "Go on after a merge, to the end of the tokens.",
        "            i += 2\n",
        "            return [*merged, *tokens[i + 2 :]]\n",
    ),
    Mistake(
        "A token is used in two pairs",
        "After a merge, go on behind both tokens: three times a are aa and a, not aa and aa.",
        "            i += 2\n",
        "            i += 1 + (i + 2 >= len(tokens))\n",
    ),
    Mistake(
        "The second token of a merged pair stays",
        "After a merge, go on behind both tokens: move the index by two.",
        "            i += 2\n",
        "            i += 1\n",
    ),
    Mistake(  # the same, in a loop over pairs, which also loses the last token
        "The second token of a merged pair stays",
        "After a merge, go on behind both tokens: move an index by two. And the last token has no neighbour.",
        "    i = 0\n",
        """    for one, other in pairwise(tokens):
        merged.append(one + other if (one, other) == pair else one)
    return merged
    i = 0
""",
    ),
    Mistake(
        "Pairs are merged from right to left",
        "Where pairs overlap, the left one is merged: three times a are aa and a, not a and aa.",
        "    i = 0\n    while i < len(tokens):\n",
        """    i = len(tokens)
    while i > 0:
        if tuple(tokens[max(i - 2, 0) : i]) == pair:
            merged.insert(0, tokens[i - 2] + tokens[i - 1])
            i -= 2
        else:
            merged.insert(0, tokens[i - 1])
            i -= 1
    while i < len(tokens) and not merged:
""",
    ),
    Mistake(
        "The two tokens stay beside their merge",
        "The new token takes the place of both: append it, and neither of the two.",
        "merged.append(tokens[i] + tokens[i + 1])",
        "merged += [tokens[i] + tokens[i + 1], tokens[i], tokens[i + 1]]",
    ),
)


def swap(piece: Piece) -> list[Patch]:
    """Train the tokenizer of the demo by the readable implementation, with the student's two functions."""
    from tokenizers import Tokenizer, models

    from clearhead.config import TokenizerConfig
    from clearhead.text import tokenizer_training

    train_bpe = tokenizer_training.train_bpe

    def train_readable_bpe(config: TokenizerConfig, texts: Iterator[str]) -> Tokenizer:
        backend = train_bpe(config, iter([]))
        specials = {spelling: number for number, spelling in enumerate(tokenizer_training.SPECIAL_TOKENS)}
        learned = bpe.train(texts, config.vocab, len(specials))
        ids = {bpe.spell(token): number for token, number in learned.ids.items()}
        merges = [(bpe.spell(each.left), bpe.spell(each.right)) for each in learned.merges]
        backend.model = models.BPE(specials | ids, merges)
        return backend

    return [
        Patch(bpe, "count_pairs", piece.count_pairs),
        Patch(bpe, "merge", piece.merge),
        Patch(tokenizer_training, "train_bpe", train_readable_bpe),
    ]


EXERCISE = Exercise(
    name="bpe",
    reference=SimpleNamespace(count_pairs=bpe.count_pairs, merge=bpe.merge),
    cases=cases,
    mistakes=MISTAKES,
    hints=(
        "itertools.pairwise(tokens) yields the pairs of neighbours of one word.",
        "For merge, walk through the tokens with an index: after a merge it moves by two, otherwise by one.",
        "Build a new list. Changing a list while walking through it goes wrong sooner or later.",
    ),
    swap=swap,
    settings="data.size=300 tokenizer.vocab=400",
    gradient=False,
)
