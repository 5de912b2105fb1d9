"""Strings to token ids and back, with Hugging Face's `tokenizers`.

Text is always encoded as text: if it contains the spelling of a special token, such as "<end>", its ids are those of
ordinary characters. Only code adds the ids of special tokens.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import tokenizers

from clearhead.config import TokenizerConfig, UserError, require
from clearhead.files import write_file
from clearhead.text.bpe import BYTES
from clearhead.text.cutting import chunked, cut
from clearhead.text.panics import no_panic, no_stderr
from clearhead.text.tokenizer_formats import CONFIG_FILE, SPECIALS, read_backend, read_special_tokens, special_settings
from clearhead.text.tokenizer_training import TEXT_PART_CHARACTERS, train_backend

RECENT_TEXTS = 1000  # as many are kept with their ids


class SpecialId:
    """An attribute of a tokenizer: the id of the special token of this name."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, tokenizer: Tokenizer, owner: type) -> int:
        return tokenizer.special(self.name)


class Tokenizer:
    """Text to token ids and back.

    The ids of the special tokens are attributes: `tokenizer.end`. Our own tokenizers have all of them, with pad = 0. In
    others, some are the same (GPT-2 uses <|endoftext|> as pad, start and end), and some are missing: reading one of
    these is an error, and `extended` adds them. They are found by their spellings; `special_tokens` says which token
    has which name where the spelling does not say it.
    """

    pad = SpecialId()  # padding. May be the same id as `end`, so lengths, not this id, say what is padding
    start = SpecialId()
    end = SpecialId()
    unknown = SpecialId()  # replaces text that has no token
    mask = SpecialId()  # replaces a token that has to be predicted
    separator = SpecialId()  # between two texts
    system = SpecialId()  # begins a message of the system, the user, the assistant
    user = SpecialId()
    assistant = SpecialId()

    def __init__(self, backend: tokenizers.Tokenizer, special_tokens: Mapping[str, str] | None = None) -> None:
        backend.no_truncation()  # a Hugging Face file may set these; here batches take care of lengths
        backend.no_padding()
        backend.encode_special_tokens = True  # "<end>" in a text is text
        self.backend = backend
        self._tokens = {number: token for token, number in backend.get_vocab().items()}
        self._recent: dict[str, list[int]] = {}  # the ids of recent texts
        self._added = backend.get_added_tokens_decoder()
        self.special_tokens = {n: token for n, token in (special_tokens or {}).items() if self._find([token])}
        spellings = {name: (self.special_tokens.get(name, ""), *SPECIALS[name]) for name in SPECIALS}
        self._named = {name: spelled[0] for name in SPECIALS if (spelled := self._find(spellings[name]))}
        special = {number for number, token in self._added.items() if token.special} | {*self._named.values()}
        self._control = special - {self._named.get("unknown")}  # all but unknown, which replaces text
        state = json.loads(backend.to_str())
        self.byte_level = (state["decoder"] or {}).get("type") == "ByteLevel"
        self._newline_cuts = self._cuts_at_newlines(state["pre_tokenizer"] or {})
        whole, left, right = self._ids(["a b", "a", "b"])
        self._implicit_spaces = whole == left + right
        # Some tokenizers (Unigram) find their special tokens in a text in spite of `encode_special_tokens`.
        self._leaky = any(self._control.intersection(self._ids([self._tokens[n]])[0]) for n in self._control)

    def _find(self, spellings: Iterable[str]) -> list[int]:
        return [number for spelling in spellings if (number := self.backend.token_to_id(spelling)) is not None]

    def _cuts_at_newlines(self, pre_tokenizer: dict[str, Any]) -> bool:
        """Whether no token spans a newline before a word, so that long texts can be cut there."""
        known = (
            {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True},
            {"type": "BertPreTokenizer"},
            {"type": "Split", "pattern": {"String": "\n"}, "behavior": "Isolated"},
        )
        parts = pre_tokenizer.get("pretokenizers", [pre_tokenizer])
        whole, left, right = self._ids(["a \n\nb", "a \n", "\nb"])  # a normalizer may change both ends
        return whole == left + right and any(pattern.items() <= part.items() for part in parts for pattern in known)

    def __reduce__(self) -> tuple[type[Tokenizer], tuple[tokenizers.Tokenizer, Mapping[str, str]]]:
        # Rebuilt, because a pickled `tokenizers.Tokenizer` loses the setting `encode_special_tokens`.
        return Tokenizer, (self.backend, self.special_tokens)

    @cached_property
    def vocab(self) -> int:
        """The number of ids, special tokens included."""
        return max(self._tokens) + 1

    @property
    def settings(self) -> dict[str, Any]:
        """What tokenizer.json does not say: the ids of named tokens, and of those that are no text."""
        return {"special": self._named, "control": sorted(self._control)}

    @cached_property
    def fingerprint(self) -> str:
        """A hash of everything that determines the ids of a text."""
        named = json.dumps(self.special_tokens, sort_keys=True) if self.special_tokens else ""
        return hashlib.blake2b((self.backend.to_str() + named).encode(), digest_size=16).hexdigest()

    @cached_property
    def halves(self) -> dict[int, tuple[int, int]]:
        """Byte-pair encoding: the two tokens that each token was merged from; empty for other kinds of tokenizers."""
        model = json.loads(self.backend.to_str())["model"]
        merges = [tuple(merge.split(" ") if isinstance(merge, str) else merge) for merge in model.get("merges", [])]
        ids = model["vocab"]
        found = {ids[left + right]: (ids[left], ids[right]) for left, right in reversed(merges)}  # the first one counts
        return dict(sorted(found.items()))

    @cached_property
    def words_have_spaces(self) -> bool:
        """Whether some tokens are a space and the word after it, as " the"."""
        return any(len(piece) > 1 and piece[0] == " " for piece in map(self.piece, self._tokens))

    def same_tokens(self, other: Tokenizer) -> bool:
        """Whether every id stands for the same token."""
        return self._tokens == other._tokens

    def has(self, name: str) -> bool:
        """Whether there is a special token of this name, such as "mask"."""
        return name in self._named

    def special(self, name: str) -> int:
        """The id of the special token of this name; an error if there is none."""
        if name in self._named:
            return self._named[name]
        raise UserError(
            f"this tokenizer has no special token for {name!r} (it would be written {' or '.join(SPECIALS[name])}); "
            f"tokenizer.extended({name!r}) appends one after its {self.vocab:,} ids, and the model's vocabulary grows"
        )

    def extended(self, *names: str) -> Tokenizer:
        """A copy with these special tokens; new ones get ids after the existing ones."""
        backend = tokenizers.Tokenizer.from_str(self.backend.to_str())
        backend.add_special_tokens([SPECIALS[name][0] for name in names if not self.has(name)])
        return Tokenizer(backend, self.special_tokens)

    def encode(self, text: str) -> list[int]:
        """The ids of a text; of the special tokens, only `unknown` can be among them."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of many texts, computed on all cores and in little memory.

        Recent texts are not encoded again: a text is encoded to warn about it, to split it, and to be translated.
        """
        known = {text: ids for text in texts if (ids := self._recent.get(text)) is not None}
        new = [text for text in dict.fromkeys(texts) if text not in known]
        known.update(zip(new, self._encode_new(new), strict=True))
        if len(self._recent) + len(new) > RECENT_TEXTS:
            self._recent.clear()
        self._recent.update((text, known[text]) for text in new[-RECENT_TEXTS:] if len(text) <= TEXT_PART_CHARACTERS)
        return [list(known[text]) for text in texts]

    def _encode_new(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of texts that are not known yet."""
        rows: list[list[int]] = [[] for _ in texts]
        for chunk in chunked(self._parts(texts), lambda part: len(part[1])):
            for (row, _), ids in zip(chunk, self._ids([part for _, part in chunk]), strict=True):
                rows[row] += ids
        if self._leaky:
            return [[number if number not in self._control else self.unknown for number in ids] for ids in rows]
        return rows

    def _parts(self, texts: Sequence[str]) -> Iterator[tuple[int, str]]:
        """The texts, long ones in parts, each with the number of its text."""
        for row, text in enumerate(texts):
            for part in cut(text, TEXT_PART_CHARACTERS) if self._newline_cuts else (text,):
                yield row, part

    def continued(self, part: str) -> str:
        """A later part of `cutting.cut`, ready to encode: without its first space, if such spaces have no token."""
        return part.removeprefix(" ") if self._implicit_spaces else part

    def _ids(self, texts: list[str]) -> list[list[int]]:
        try:
            with no_panic("this tokenizer cannot encode the text"):
                return [encoding.ids for encoding in self.backend.encode_batch_fast(texts, add_special_tokens=False)]
        except TypeError:  # raised by `tokenizers` for a lone surrogate
            refuse_surrogates(texts)
            raise

    def decode(self, ids: Sequence[int], keep_special: bool = False) -> str:
        """The text of the ids, without special tokens other than `unknown`, which replaces text."""
        return self.decode_batch([ids], keep_special)[0]

    def decode_batch(self, rows: Sequence[Sequence[int]], keep_special: bool = False) -> list[str]:
        """The texts of many rows of ids, computed on all cores."""
        unknown = next((number for ids in rows for number in ids if number not in self._tokens), None)
        require(unknown is None, f"id {unknown} is not one of the {self.vocab:,} ids of this tokenizer")
        kept = [[number for number in ids if keep_special or number not in self._control] for ids in rows]
        with no_panic("this tokenizer cannot decode the ids"):
            return self.backend.decode_batch(kept, skip_special_tokens=False)

    def open_text(self, prompt: Sequence[int]) -> list[int]:
        """The ids at the end of a prompt that are decoded with its continuation; none if each token decodes alone."""
        last = max((place for place, number in enumerate(prompt) if number in self._control), default=-1)
        return [] if self.byte_level else list(prompt[last + 1 :])

    def decode_after(self, prompts: Sequence[Sequence[int]], rows: Sequence[Sequence[int]]) -> list[str]:
        """The text that each row of ids adds to its prompt.

        Without the prompt, the first word of a row may be written without the space before it.
        """
        before = [self.open_text(prompt) for prompt in prompts]
        whole = self.decode_batch([[*prompt, *ids] for prompt, ids in zip(before, rows, strict=True)])
        return [text[len(prompt) :] for text, prompt in zip(whole, self.decode_batch(before), strict=True)]

    def piece(self, number: int) -> str:
        r"""One token as readable text; bytes that are not a whole character are shown as \xe2."""
        if number in self._added or number in self._control:
            return self._tokens[number]
        return self.token_bytes(number).decode(errors="backslashreplace")

    def token_bytes(self, number: int) -> bytes:
        """The bytes that a token adds to a text, none for a special token other than `unknown`."""
        token = "" if number in self._control else self._tokens[number]
        if self.byte_level and BYTES.keys() >= set(token):
            return bytes(BYTES[character] for character in token)
        return token.replace("▁", " ").encode()

    def pieces(self, text: str) -> list[tuple[str, int]]:
        """The tokens of a text as readable text, each with its id."""
        return [(self.piece(number), number) for number in self.encode(text)]

    def save(self, path: Path) -> None:
        """Write tokenizer.json atomically."""
        write_file(path, self.backend.to_str(pretty=True))


def refuse_surrogates(texts: Iterable[str]) -> None:
    """Refuse texts that contain a lone surrogate, which is half a character."""
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            at = error.start
            around = text[max(0, at - 20) : at + 20].encode("ascii", "backslashreplace").decode()
            raise UserError(
                f"character {at + 1:,} of a text is a lone surrogate, U+{ord(text[at]):04X}, half a character that "
                f"UTF-8 cannot encode: ...{around}...; remove it, or read the file without errors='surrogateescape'"
            ) from error


def load_tokenizer(path: Path) -> Tokenizer:
    """Load a tokenizer.json, ours or Hugging Face's, or a folder in GPT-2's or BERT's format.

    A tokenizer_config.json beside it says which tokens are special.
    """
    with no_stderr():  # also while the new tokenizer encodes a few texts
        return Tokenizer(read_backend(path), read_special_tokens(path if path.is_dir() else path.parent))


def train_tokenizer(config: TokenizerConfig, texts: Iterable[str], progress: bool = True) -> Tokenizer:
    """Train a tokenizer of the configured kind, with a progress bar if stderr is a terminal."""
    try:
        return Tokenizer(train_backend(config, texts, progress))
    except UnicodeEncodeError as error:
        refuse_surrogates([error.object])
        raise


@dataclass(frozen=True)
class Tokenizers:
    """The tokenizers of source and target, which are the same object if the vocabulary is shared."""

    source: Tokenizer
    target: Tokenizer

    @property
    def shared(self) -> bool:
        """Whether source and target have the same vocabulary."""
        return self.source is self.target

    def save(self, folder: Path) -> None:
        """Write tokenizer.json if shared, else tokenizer.source.json and tokenizer.target.json; delete the other."""
        sides = {"tokenizer.source.json": self.source, "tokenizer.target.json": self.target}
        files = {"tokenizer.json": self.source} if self.shared else sides
        for name, tokenizer in files.items():
            tokenizer.save(folder / name)
        for name in {"tokenizer.json", *sides} - files.keys():
            (folder / name).unlink(missing_ok=True)
        if named := self.target.special_tokens:
            write_file(folder / CONFIG_FILE, json.dumps(special_settings(named), ensure_ascii=False, indent=1))


def load_tokenizers(path: Path) -> Tokenizers:
    """Load the two tokenizers of a folder, or one for both source and target."""
    if (path / "tokenizer.source.json").exists():
        return Tokenizers(*(load_tokenizer(path / f"tokenizer.{side}.json") for side in ("source", "target")))
    both = load_tokenizer(path)
    return Tokenizers(both, both)


def train_tokenizers(config: TokenizerConfig, texts: Callable[[str], Iterable[str]]) -> Tokenizers:
    """Train one tokenizer on sources and targets; with tokenizer.separate, one for each.

    `texts` returns the texts of a side: "source", "target" or "both".
    """
    if config.separate:
        return Tokenizers(train_tokenizer(config, texts("source")), train_tokenizer(config, texts("target")))
    both = train_tokenizer(config, texts("both"))
    return Tokenizers(both, both)
