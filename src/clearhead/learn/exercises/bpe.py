"""The exercise `bpe`: count pairs of tokens, merge one of them."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

from clearhead.learn.exercise import ExerciseCase, Patch, Piece, call
from clearhead.text import bpe

REFERENCE = SimpleNamespace(count_pairs=bpe.count_pairs, merge=bpe.merge)


def cases() -> list[ExerciseCase]:
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
