"""Strings to ids and back, on Hugging Face's `tokenizers`.

Text is only ever text: a special token that somebody types, "<end>" say, is spelled out like any other word and never
becomes the special token. Special ids are added by code alone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import tokenizers

from clearhead.config import TokenizerConfig, UserError, require
from clearhead.files import write_file
from clearhead.text.bpe import BYTES
from clearhead.text.cutting import chunked, cut
from clearhead.text.tokenizer_formats import SPECIALS, read_bare
from clearhead.text.tokenizer_training import PART, train_bare


class SpecialId:
    """The id of a special token, read from a tokenizer as an attribute of its name."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, tokenizer: Tokenizer, owner: type) -> int:
        return tokenizer.special(self.name)


class Tokenizer:
    """Text to ids and back.

    The special tokens are attributes: `tokenizer.end` is an id. A tokenizer we trained has all of them, pad as id 0; in
    other people's some are the same (GPT-2 has one, <|endoftext|>, which serves as pad, start and end) and some are
    absent: asking for one of those is an error, and `extended` the remedy.
    """

    pad = SpecialId()  # fills a batch up; never learned. May be the id of `end`: go by lengths, not by this id
    start = SpecialId()
    end = SpecialId()
    unknown = SpecialId()  # stands for text that has no token
    mask = SpecialId()  # stands for a token to guess
    separator = SpecialId()  # between two texts
    system = SpecialId()  # what follows is said by the system, the user, the assistant
    user = SpecialId()
    assistant = SpecialId()

    def __init__(self, bare: tokenizers.Tokenizer) -> None:
        bare.no_truncation()  # a Hugging Face file may hold settings that drop or add tokens: batches see to lengths
        bare.no_padding()
        bare.encode_special_tokens = True  # "<end>" in a text is text
        self._bare = bare
        self._tokens = {number: token for token, number in bare.get_vocab().items()}
        self._added = bare.get_added_tokens_decoder()
        self._named = {name: spelled[0] for name in SPECIALS if (spelled := self._find(SPECIALS[name]))}
        special = {number for number, token in self._added.items() if token.special} | {*self._named.values()}
        self._control = special - {self._named.get("unknown")}  # unknown stands for text
        state = json.loads(bare.to_str())
        self.byte_level = (state["decoder"] or {}).get("type") == "ByteLevel"
        self._newline_cuts = self._cuts_at_newlines(state["pre_tokenizer"] or {})
        whole, left, right = self._ids(["a b", "a", "b"])
        self._spaces_unwritten = whole == left + right
        # Some tokenizers of others (Unigram) cannot help to see their special tokens in a text.
        self._leaky = any(self._control.intersection(self._ids([self._tokens[n]])[0]) for n in self._control)

    def _find(self, spellings: Iterable[str]) -> list[int]:
        return [number for spelling in spellings if (number := self._bare.token_to_id(spelling)) is not None]

    def _cuts_at_newlines(self, pre_tokenizer: dict[str, Any]) -> bool:
        """Whether no token reaches across a newline before a word, so that long texts can be cut there."""
        known = (
            {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True},
            {"type": "BertPreTokenizer"},
            {"type": "Split", "pattern": {"String": "\n"}, "behavior": "Isolated"},
        )
        steps = pre_tokenizer.get("pretokenizers", [pre_tokenizer])
        whole, left, right = self._ids(["a \n\nb", "a \n", "\nb"])  # a normalizer may strip or add at both ends
        return whole == left + right and any(pattern.items() <= step.items() for step in steps for pattern in known)

    def __reduce__(self) -> tuple[type[Tokenizer], tuple[tokenizers.Tokenizer]]:
        # Built anew, because a pickled `tokenizers.Tokenizer` forgets that text is text.
        return Tokenizer, (self._bare,)

    @cached_property
    def vocab(self) -> int:
        """How many ids there are, the special ones included."""
        return max(self._tokens) + 1

    @cached_property
    def fingerprint(self) -> str:
        """A hash of everything that decides which ids a text gets."""
        return hashlib.blake2b(self._bare.to_str().encode(), digest_size=16).hexdigest()

    def has(self, name: str) -> bool:
        """Whether there is a special token for this purpose."""
        return name in self._named

    def special(self, name: str) -> int:
        """The id of the special token for a purpose; an error where there is none."""
        if name in self._named:
            return self._named[name]
        raise UserError(
            f"this tokenizer has no special token for {name!r} (it would be written {' or '.join(SPECIALS[name])}); "
            f"tokenizer.extended({name!r}) appends one after its {self.vocab:,} ids, and the model's vocabulary grows"
        )

    def extended(self, *names: str) -> Tokenizer:
        """The same tokenizer with special tokens for these purposes; those it lacks are appended after its ids."""
        bare = tokenizers.Tokenizer.from_str(self._bare.to_str())
        bare.add_special_tokens([SPECIALS[name][0] for name in names if not self.has(name)])
        return Tokenizer(bare)

    def encode(self, text: str) -> list[int]:
        """The ids of a text; never one of a special token, whatever the text says, except for `unknown`."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of many texts, on all cores and in little memory."""
        rows: list[list[int]] = [[] for _ in texts]
        for chunk in chunked(self._parts(texts), lambda part: len(part[1])):
            for (row, _), ids in zip(chunk, self._ids([part for _, part in chunk]), strict=True):
                rows[row] += ids
        if self._leaky:
            return [[number if number not in self._control else self.unknown for number in ids] for ids in rows]
        return rows

    def _parts(self, texts: Sequence[str]) -> Iterator[tuple[int, str]]:
        """The texts with their rows, long ones in parts."""
        for row, text in enumerate(texts):
            for part in cut(text, PART) if self._newline_cuts else (text,):
                yield row, part

    def continued(self, part: str) -> str:
        """What to encode of a part that `cutting.cut` cut off: without its space, if one between words is unwritten."""
        return part.removeprefix(" ") if self._spaces_unwritten else part

    def _ids(self, texts: list[str]) -> list[list[int]]:
        try:
            return [encoding.ids for encoding in self._bare.encode_batch_fast(texts, add_special_tokens=False)]
        except TypeError:  # what `tokenizers` says of a lone surrogate
            refuse_surrogates(texts)
            raise

    def decode(self, ids: Sequence[int], keep_special: bool = False) -> str:
        """The text of the ids, without special tokens; `unknown` stays, because it stands for text."""
        for number in ids:
            require(number in self._tokens, f"id {number} is not among the {self.vocab:,} ids of this tokenizer")
        kept = [number for number in ids if keep_special or number not in self._control]
        return self._bare.decode(kept, skip_special_tokens=False)

    def piece(self, number: int) -> str:
        r"""One token as readable text; bytes that are no whole character look like \xe2."""
        token = self._tokens[number]
        if number in self._added:
            return token
        if self.byte_level:
            return bytes(BYTES[character] for character in token).decode(errors="backslashreplace")
        return token.replace("▁", " ")

    def pieces(self, text: str) -> list[tuple[str, int]]:
        """The tokens of a text as readable text, and their ids."""
        return [(self.piece(number), number) for number in self.encode(text)]

    def save(self, path: Path) -> None:
        """Write one tokenizer.json, whole or not at all."""
        write_file(path, self._bare.to_str(pretty=True))


def refuse_surrogates(texts: Iterable[str]) -> None:
    """An error if one of the texts has half a character."""
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            at = error.start
            around = text[max(0, at - 20) : at + 20].encode("ascii", "backslashreplace").decode()
            raise UserError(
                f"character {at + 1:,} of a text is a lone surrogate, U+{ord(text[at]):04X}, half a character that no "
                f"UTF-8 can hold: ...{around}...; remove it, or read the file without errors='surrogateescape'"
            ) from error


def load_tokenizer(path: Path) -> Tokenizer:
    """A tokenizer from tokenizer.json (ours, Hugging Face's) or from a folder in GPT-2's or BERT's format."""
    return Tokenizer(read_bare(path))


def train_tokenizer(config: TokenizerConfig, texts: Iterable[str], progress: bool = True) -> Tokenizer:
    """A tokenizer of the configured kind, trained with a progress bar if stderr is a terminal."""
    try:
        return Tokenizer(train_bare(config, texts, progress))
    except UnicodeEncodeError as error:
        refuse_surrogates([error.object])
        raise


@dataclass(frozen=True)
class Tokenizers:
    """The tokenizers of the two sides of a translation; with a shared vocabulary they are one and the same."""

    source: Tokenizer
    target: Tokenizer

    @property
    def shared(self) -> bool:
        """Whether both sides have the same vocabulary."""
        return self.source is self.target

    def save(self, folder: Path) -> None:
        """Write tokenizer.json if shared, else tokenizer.source.json and tokenizer.target.json; never leave both."""
        sides = {"tokenizer.source.json": self.source, "tokenizer.target.json": self.target}
        files = {"tokenizer.json": self.source} if self.shared else sides
        for name, tokenizer in files.items():
            tokenizer.save(folder / name)
        for name in {"tokenizer.json", *sides} - files.keys():
            (folder / name).unlink(missing_ok=True)


def load_tokenizers(path: Path) -> Tokenizers:
    """Both sides' tokenizers from a folder with two of them; else one for both, from what `load_tokenizer` reads."""
    if (path / "tokenizer.source.json").exists():
        return Tokenizers(*(load_tokenizer(path / f"tokenizer.{side}.json") for side in ("source", "target")))
    both = load_tokenizer(path)
    return Tokenizers(both, both)


def train_tokenizers(
    config: TokenizerConfig, sources: Iterable[str], targets: Iterable[str], progress: bool = True
) -> Tokenizers:
    """One tokenizer for both sides, trained on both; or, with tokenizer.separate, one for each."""
    if config.separate:
        return Tokenizers(train_tokenizer(config, sources, progress), train_tokenizer(config, targets, progress))
    both = train_tokenizer(config, chain(sources, targets), progress)
    return Tokenizers(both, both)
