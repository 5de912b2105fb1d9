"""How the four kinds of tokenizers are built and trained.

| kind       | a token is                              | unknown                   | decodes to                    |
|------------|-----------------------------------------|---------------------------|-------------------------------|
| bpe        | bytes that often occur together         | nothing                   | the same text, byte for byte  |
| wordpiece  | a word, or ## and a later part of one   | words with new characters | the same text, composed (NFC) |
| characters | a character                             | new characters            | the same text, composed (NFC) |
| words      | a word or a punctuation mark            | new words                 | the same text, composed (NFC) |

`wordpiece` and `words` have no token for a single space between two words; any other space is the token ▁: "Yes, I do."
is `Yes` `,` `▁` `I` `do` `.`. So no space is lost, and "cat" is the same token everywhere. Only a ▁ in the text itself
decodes to a space. For languages without spaces between words, use bpe.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sized
from concurrent.futures import Future, wait
from contextlib import contextmanager
from threading import Event, Thread

import tokenizers
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, trainers

from clearhead.config import TokenizerConfig, UserError, require
from clearhead.terminal.progress import progress_bar
from clearhead.text.cutting import cut
from clearhead.text.tokenizer_formats import SPECIALS

SPECIAL_TOKENS = [spellings[0] for spellings in SPECIALS.values()]  # ids 0 to 8; pad is 0
UNKNOWN = SPECIALS["unknown"][0]
LONGEST_WORD = 1000  # characters: longer ones are not words, and would take the trainer quadratic time
TEXT_PART_CHARACTERS = (
    20_000  # characters: longer texts are cut, because one text is tokenized on one core and takes much memory
)


def train_backend(config: TokenizerConfig, texts: Iterable[str], progress: bool) -> tokenizers.Tokenizer:
    """Train a tokenizer of the configured kind; the same texts always give the same tokenizer."""
    smallest = len(SPECIAL_TOKENS) + (256 if config.kind == "bpe" else 1)
    require(
        config.vocab >= smallest or config.kind == "characters",
        f"tokenizer.vocab = {config.vocab} is too small: kind = {config.kind!r} needs at least {smallest} "
        f"({len(SPECIAL_TOKENS)} special tokens{' and the 256 bytes' if config.kind == 'bpe' else ' and a word'})",
    )
    train = {"bpe": train_bpe, "wordpiece": train_wordpiece, "characters": train_characters, "words": train_words}
    with read_with_progress(texts, progress) as parts:
        backend = in_thread(lambda: train[config.kind](config, parts))
    backend.add_special_tokens(SPECIAL_TOKENS)
    return backend


def in_thread(train: Callable[[], tokenizers.Tokenizer]) -> tokenizers.Tokenizer:
    """Train in a thread: a signal is handled by Python code of the main thread, and the Rust library returns late.

    After Ctrl-C nothing waits for the thread, because it can take minutes to learn a vocabulary.
    """
    trained: Future[tokenizers.Tokenizer] = Future()

    def work() -> None:
        try:
            trained.set_result(train())
        except BaseException as error:  # raised in the main thread
            trained.set_exception(error)

    Thread(target=work, name="tokenizer", daemon=True).start()  # cli.py knows this name
    while not trained.done():
        wait([trained], timeout=0.1)  # a signal just before a wait does not end it, and is handled after it
    return trained.result()


@contextmanager
def read_with_progress(texts: Iterable[str], progress: bool) -> Iterator[Iterator[str]]:
    """Read texts in parts, with a progress bar until the tokenizer is trained; no text at all is an error.

    When the context ends, so does the reading: a thread that still trains a tokenizer gets an error.
    """
    ended = Event()
    total = len(texts) if isinstance(texts, Sized) else None
    with progress_bar("reading", total, "texts", quiet=not progress) as bar:

        def read() -> Iterator[str]:
            empty = True
            for text in texts:
                require(not ended.is_set(), "the training of the tokenizer was interrupted")
                empty = empty and not text
                yield from map(cut_long_words, cut(text, TEXT_PART_CHARACTERS))
                bar.advance()
            require(not empty, "there is no text to train a tokenizer on: the corpus is empty; look at data.path")
            bar.rename("learning the vocabulary")

        try:
            yield read()
        finally:
            ended.set()


def cut_long_words(text: str) -> str:
    """Break words of more than LONGEST_WORD characters into lines: a merge rewrites every word that it occurs in."""
    if len(text) <= LONGEST_WORD or all(len(word) <= LONGEST_WORD for word in text.split()):
        return text
    return re.sub(rf"\S{{{LONGEST_WORD}}}", r"\g<0>\n", text)


def normalizer(config: TokenizerConfig, *more: normalizers.Normalizer) -> normalizers.Normalizer:
    """The normalisation of a text: lower case if configured, then the others."""
    return normalizers.Sequence([*([normalizers.Lowercase()] if config.lowercase else []), *more])


def train_bpe(config: TokenizerConfig, texts: Iterator[str]) -> tokenizers.Tokenizer:
    """Byte-level BPE. bpe.py shows the algorithm, slow and readable."""
    backend = tokenizers.Tokenizer(models.BPE())
    backend.normalizer = normalizer(config)
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=config.vocab,
        special_tokens=SPECIAL_TOKENS,
        initial_alphabet=alphabet,
        min_frequency=2,
        show_progress=False,
    )
    backend.train_from_iterator(texts, trainer)
    return backend


def train_characters(config: TokenizerConfig, texts: Iterator[str]) -> tokenizers.Tokenizer:
    """All characters of the texts, the most frequent first."""
    normalisation = normalizer(config, normalizers.NFC())
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(normalisation.normalize_str(text))
    ordered = sorted(counts, key=lambda character: (-counts[character], character))
    ids = {token: number for number, token in enumerate([*SPECIAL_TOKENS, *ordered])}
    backend = tokenizers.Tokenizer(models.BPE(ids, [], unk_token=UNKNOWN))  # BPE that merges nothing
    backend.normalizer = normalisation
    backend.pre_tokenizer = pre_tokenizers.Split("\n", "isolated")
    backend.decoder = decoders.Fuse()
    return backend


def by_words(config: TokenizerConfig, model: models.Model) -> tokenizers.Tokenizer:
    """A tokenizer of words and punctuation marks, without a token for a single space between two words."""
    backend = tokenizers.Tokenizer(model)
    backend.normalizer = normalizer(config, normalizers.NFC(), normalizers.Replace(" ", "▁"))
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split("\n", "isolated"),
            pre_tokenizers.Split(Regex(r"(?<=\w)▁(?=\w)"), "removed"),
            pre_tokenizers.Split(Regex(r"\w+|\W"), "isolated"),
        ]
    )
    word = rf"\w|{UNKNOWN}"  # an unknown word also has spaces around it
    backend.decoder = decoders.Sequence(
        [
            decoders.WordPiece(prefix="##", cleanup=False),  # a space before every token except those with ##
            decoders.Fuse(),
            decoders.Replace(Regex(rf" (?!{word})|(?<!{word}) "), ""),
            decoders.Replace("▁", " "),
        ]
    )
    return backend


def train_words(config: TokenizerConfig, texts: Iterator[str]) -> tokenizers.Tokenizer:
    """The most frequent words."""
    backend = by_words(config, models.WordLevel(unk_token=UNKNOWN))
    trainer = trainers.WordLevelTrainer(vocab_size=config.vocab, special_tokens=SPECIAL_TOKENS, show_progress=False)
    backend.train_from_iterator(texts, trainer)
    return backend


def train_wordpiece(config: TokenizerConfig, texts: Iterator[str]) -> tokenizers.Tokenizer:
    """Words, and parts of words.

    The trainer numbers the ##characters in an order that differs between runs, and breaks ties by number. So it is
    called twice: first to find these characters, then with all of them, sorted, as the first tokens.
    """
    kept = list(texts)

    def train(vocab: int, first: list[str]) -> dict[str, int]:
        backend = by_words(config, models.WordPiece(unk_token=UNKNOWN))
        backend.train_from_iterator(
            kept,
            trainers.WordPieceTrainer(vocab_size=vocab, special_tokens=SPECIAL_TOKENS + first, show_progress=False),
        )
        return backend.get_vocab()

    alphabet = train(0, [])
    if config.vocab < len(alphabet):
        characters = len(alphabet) - len(SPECIAL_TOKENS)
        raise UserError(
            f"tokenizer.vocab = {config.vocab} is too small: these texts have {characters:,} different characters, at "
            f"the beginning of a word or inside, and kind = 'wordpiece' needs a token for each; "
            f"use at least {len(alphabet):,}, or kind = 'bpe'"
        )
    ids = train(config.vocab, sorted(token for token in alphabet if token.startswith("##")))
    return by_words(config, models.WordPiece(ids, unk_token=UNKNOWN))
