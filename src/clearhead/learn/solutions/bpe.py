"""Byte-pair encoding: count and merge.

A tokenizer starts with single bytes. Again and again, the most frequent pair of neighbouring
tokens becomes a new token. Two functions are all that this needs: one counts the pairs, the other
merges one of them everywhere.
"""

from collections import Counter
from itertools import pairwise


def count_pairs(words: list[tuple[list[bytes], int]]) -> dict[tuple[bytes, bytes], int]:
    """Count the pairs of neighbouring tokens in a corpus.

    words: the tokens of each word, and how often the word occurs: [([b"t", b"h", b"e"], 7), ([b"h", b"e"], 2)]
    Returns how often each pair occurs: {(b"t", b"h"): 7, (b"h", b"e"): 9}. No pair spans two words.
    """
    counts: Counter[tuple[bytes, bytes]] = Counter()
    for tokens, count in words:
        for pair in pairwise(tokens):
            counts[pair] += count
    return dict(counts)


def merge(tokens: list[bytes], pair: tuple[bytes, bytes]) -> list[bytes]:
    """Return the tokens with every occurrence of a pair merged into one token, from left to right.

    merge([b"a", b"b", b"c", b"a", b"b"], (b"a", b"b")) is [b"ab", b"c", b"ab"].
    A token belongs to one pair at most: merge([b"a", b"a", b"a"], (b"a", b"a")) is [b"aa", b"a"].
    """
    merged: list[bytes] = []
    i = 0
    while i < len(tokens):
        if tuple(tokens[i : i + 2]) == pair:
            merged.append(tokens[i] + tokens[i + 1])
            i += 2
        else:
            merged.append(tokens[i])
            i += 1
    return merged
