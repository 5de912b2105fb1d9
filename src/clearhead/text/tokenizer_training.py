"""How the four kinds of tokenizers are built and trained.

| kind       | a token is                              | unknown                   | comes back as                 |
|------------|-----------------------------------------|---------------------------|-------------------------------|
| bpe        | bytes that are often seen together      | nothing                   | the same text, byte for byte  |
| wordpiece  | a word, or a piece that goes on with ## | words with new characters | the same text, composed (NFC) |
| characters | a character                             | new characters            | the same text, composed (NFC) |
| words      | a word or a sign                        | new words                 | the same text, composed (NFC) |

Words and pieces leave the one space between two words unwritten; any other is a token of its own, ▁: "Yes, I do." is
`Yes` `,` `▁` `I` `do` `.`. So no space is lost, and "cat" is the same token wherever it stands; only a ▁ in
the text itself comes back as a space. Languages that put no spaces between words are better served by bpe.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sized
from contextlib import contextmanager

import tokenizers
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, trainers

from clearhead.config import TokenizerConfig, UserError, require
from clearhead.terminal.progress import progress_bar
from clearhead.text.cutting import cut
from clearhead.text.tokenizer_formats import SPECIALS

MARKS = [spellings[0] for spellings in SPECIALS.values()]  # ids 0 to 8: pad is 0
UNKNOWN = SPECIALS["unknown"][0]
PART = 20_000  # characters: longer texts are cut, because one long text takes memory and one core only


def train_bare(config: TokenizerConfig, texts: Iterable[str], progress: bool) -> tokenizers.Tokenizer:
    """A tokenizer of the configured kind, always the same for the same texts."""
    smallest = len(MARKS) + (256 if config.kind == "bpe" else 1)
    require(
        config.vocab >= smallest or config.kind == "characters",
        f"tokenizer.vocab = {config.vocab} is too small: kind = {config.kind!r} needs at least {smallest} "
        f"({len(MARKS)} special tokens{' and the 256 bytes' if config.kind == 'bpe' else ' and a word'})",
    )
    train = {"bpe": train_bpe, "wordpiece": train_wordpiece, "characters": train_characters, "words": train_words}
    with read_with_progress(texts, progress) as parts:
        bare = train[config.kind](config, parts)
    bare.add_special_tokens(MARKS)
    return bare


@contextmanager
def read_with_progress(texts: Iterable[str], progress: bool) -> Iterator[Iterator[str]]:
    """Read texts in parts, with a progress bar until the tokenizer is trained; no text at all is an error."""
    total = len(texts) if isinstance(texts, Sized) else None
    with progress_bar("reading", total, "texts", quiet=not progress) as bar:

        def read() -> Iterator[str]:
            empty = True
            for text in texts:
                empty = empty and not text
                yield from cut(text, PART)
                bar.advance()
            require(not empty, "there is no text to train a tokenizer on: the corpus is empty")
            bar.rename("learning the vocabulary")

        yield read()


def normalizer(config: TokenizerConfig, *more: normalizers.Normalizer) -> normalizers.Normalizer:
    """What happens to the text before anything else."""
    return normalizers.Sequence([*([normalizers.Lowercase()] if config.lowercase else []), *more])


def train_bpe(config: TokenizerConfig, texts: Iterator[str]) -> tokenizers.Tokenizer:
    """Byte-level BPE; bpe.py says in slow motion what happens here."""
    bare = tokenizers.Tokenizer(models.BPE())
    bare.normalizer = normalizer(config)
    bare.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bare.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=config.vocab, special_tokens=MARKS, initial_alphabet=alphabet, min_frequency=2, show_progress=False
    )
    bare.train_from_iterator(texts, trainer)
    return bare


def train_characters(config: TokenizerConfig, texts: Iterator[str]) -> tokenizers.Tokenizer:
    """All characters of the texts, the most frequent first."""
    before = normalizer(config, normalizers.NFC())
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(before.normalize_str(text))
    ordered = sorted(counts, key=lambda character: (-counts[character], character))
    ids = {token: number for number, token in enumerate([*MARKS, *ordered])}
    bare = tokenizers.Tokenizer(models.BPE(ids, [], unk_token=UNKNOWN))  # BPE that merges nothing
    bare.normalizer = before
    bare.pre_tokenizer = pre_tokenizers.Split("\n", "isolated")
    bare.decoder = decoders.Fuse()
    return bare


def by_words(config: TokenizerConfig, model: models.Model) -> tokenizers.Tokenizer:
    """A tokenizer of words and signs, where only the space between two words goes without saying."""
    bare = tokenizers.Tokenizer(model)
    bare.normalizer = normalizer(config, normalizers.NFC(), normalizers.Replace(" ", "▁"))
    bare.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split("\n", "isolated"),
            pre_tokenizers.Split(Regex(r"(?<=\w)▁(?=\w)"), "removed"),
            pre_tokenizers.Split(Regex(r"\w+|\W"), "isolated"),
        ]
    )
    word = rf"\w|{UNKNOWN}"  # an unknown word stands between spaces, too
    bare.decoder = decoders.Sequence(
        [
            decoders.WordPiece(prefix="##", cleanup=False),  # a space before every token but ##
            decoders.Fuse(),
            decoders.Replace(Regex(rf" (?!{word})|(?<!{word}) "), ""),
            decoders.Replace("▁", " "),
        ]
    )
    return bare


def train_words(config: TokenizerConfig, texts: Iterator[str]) -> tokenizers.Tokenizer:
    """The most frequent words."""
    bare = by_words(config, models.WordLevel(unk_token=UNKNOWN))
    trainer = trainers.WordLevelTrainer(vocab_size=config.vocab, special_tokens=MARKS, show_progress=False)
    bare.train_from_iterator(texts, trainer)
    return bare


def train_wordpiece(config: TokenizerConfig, texts: Iterator[str]) -> tokenizers.Tokenizer:
    """Words in pieces.

    The trainer numbers the ##characters in an order that changes from run to run, and breaks ties by number. So it is
    called twice: once to learn which there are, and then with all of them in order in front.
    """
    kept = list(texts)

    def train(vocab: int, first: list[str]) -> dict[str, int]:
        bare = by_words(config, models.WordPiece(unk_token=UNKNOWN))
        bare.train_from_iterator(
            kept, trainers.WordPieceTrainer(vocab_size=vocab, special_tokens=MARKS + first, show_progress=False)
        )
        return bare.get_vocab()

    alphabet = train(0, [])
    if config.vocab < len(alphabet):
        raise UserError(
            f"tokenizer.vocab = {config.vocab} is too small: these texts have {len(alphabet) - len(MARKS):,} different "
            f"characters, at the beginning of a word or within, and kind = 'wordpiece' needs a token for each; "
            f"take at least {len(alphabet):,}, or kind = 'bpe'"
        )
    ids = train(config.vocab, sorted(token for token in alphabet if token.startswith("##")))
    return by_words(config, models.WordPiece(ids, unk_token=UNKNOWN))
