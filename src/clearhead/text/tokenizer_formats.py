"""The names of special tokens, and the file formats of other tokenizers, read without changing any id."""

from __future__ import annotations

import json
import lzma
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import tokenizers
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers

from clearhead.config import UserError, require
from clearhead.text.panics import no_panic

T = TypeVar("T")

# The name of each special token: our spelling, then those of others.
SPECIALS: dict[str, tuple[str, ...]] = {
    "pad": ("<pad>", "[PAD]", "<|endoftext|>"),
    "start": ("<start>", "<s>", "[CLS]", "<|endoftext|>"),
    "end": ("<end>", "</s>", "[SEP]", "<|endoftext|>"),
    "unknown": ("<unknown>", "<unk>", "[UNK]"),
    "mask": ("<mask>", "[MASK]"),
    "separator": ("<separator>", "</s>", "[SEP]"),
    "system": ("<system>", "<|system|>"),
    "user": ("<user>", "<|user|>"),
    "assistant": ("<assistant>", "<|assistant|>"),
}

# In tokenizer_config.json, which Hugging Face's files have beside them: setting -> the name of the special token.
CONFIG_FILE = "tokenizer_config.json"
SETTINGS = {
    "bos_token": "start",
    "eos_token": "end",
    "pad_token": "pad",
    "unk_token": "unknown",
    "mask_token": "mask",
    "sep_token": "separator",
}
REPLACED = {"bos_token": "cls_token", "eos_token": "sep_token"}  # what BERT has instead

FORMATS = """  tokenizer.json                     clearhead's and Hugging Face's
  encoder.json and vocab.bpe         GPT-2's, also as .xz
  vocab.json and merges.txt          the same under Hugging Face's names
  vocab.txt                          BERT's WordPiece"""


def read_backend(path: Path) -> tokenizers.Tokenizer:
    """Read the tokenizer in a file or a folder of any known format."""
    require(path.exists(), f"tokenizer.path = {str(path)!r} does not exist")
    if path.is_file():
        return read(path, parse_tokenizer)
    if file := find(path, "tokenizer.json"):
        return read(file, parse_tokenizer)
    for vocab, merges in (("encoder.json", "vocab.bpe"), ("vocab.json", "merges.txt")):
        if (ids := find(path, vocab)) and (pairs := find(path, merges)):
            return gpt2(ids, pairs)
    if file := find(path, "vocab.txt"):
        return bert(file, find(path, CONFIG_FILE))
    raise UserError(f"tokenizer.path = {str(path)!r}: no tokenizer in this folder; it may contain\n{FORMATS}")


def read_special_tokens(folder: Path) -> dict[str, str]:
    """The spelling of each special token that the configuration of a tokenizer names, where there is one."""
    if not (folder / CONFIG_FILE).is_file():
        return {}
    config: Any = read(folder / CONFIG_FILE, json.loads)
    found = {}
    for setting, name in SETTINGS.items() if isinstance(config, dict) else ():
        value = config.get(setting) or config.get(REPLACED.get(setting, ""))
        token = value.get("content") if isinstance(value, dict) else value
        if isinstance(token, str):
            found[name] = token
    if found.get("unknown") in [token for name, token in found.items() if name != "unknown"]:
        del found["unknown"]  # GPT-2 has one token for all: it replaces no text, because every byte has a token
    return found


def special_settings(special_tokens: Mapping[str, str]) -> dict[str, str]:
    """The special tokens as settings of tokenizer_config.json."""
    return {setting: special_tokens[name] for setting, name in SETTINGS.items() if name in special_tokens}


def find(folder: Path, name: str) -> Path | None:
    """The file of this name in a folder, perhaps compressed; None if there is none."""
    return next((file for file in (folder / name, folder / f"{name}.xz") if file.is_file()), None)


def read(path: Path, parse: Callable[[str], T]) -> T:
    """Parse the text of a file; an error names the file."""
    try:
        data = lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()
        with no_panic("the tokenizer library fails"):
            return parse(data.decode())
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error
    except Exception as error:  # lzma, json and the Rust library raise many types
        formats = f"a tokenizer is one of\n{FORMATS}\nGive the folder where there is more than one file"
        raise UserError(f"{path} is not a tokenizer file, or is damaged: {error}\n{formats}") from error


def parse_tokenizer(text: str) -> tokenizers.Tokenizer:
    """Build the tokenizer of a tokenizer.json; one whose regular expressions can take exponential time is refused."""
    for pattern in patterns_in(json.loads(text)):
        require(
            not repeats_group(pattern),
            f"its regular expression {pattern[:60]!r} repeats a group, which can take exponential time",
        )
    return tokenizers.Tokenizer.from_str(text)


def patterns_in(tree: Any) -> Iterator[str]:
    """All regular expressions in the parts of a tokenizer.json."""
    if isinstance(tree, dict):
        yield from (value for name, value in tree.items() if name == "Regex" and isinstance(value, str))
    for value in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        if isinstance(value, dict | list):
            yield from patterns_in(value)


def repeats_group(pattern: str) -> bool:
    """Whether a group is repeated ten times or without a limit, as in (a+)+ or (a|aa)*: exponential backtracking.

    No tokenizer needs this: ours and those of GPT-2 to GPT-4, Llama and BERT have none.
    """
    bare = re.sub(r"\\.", "_", pattern)  # an escaped character
    bare = re.sub(r"\[\^?\]?[^\]]*\]", "_", bare)  # a class of characters
    return re.search(r"\)[?]?([*+]|\{\d*,(\d\d+)?\})", bare) is not None


def gpt2(vocab: Path, merges: Path) -> tokenizers.Tokenizer:
    """GPT-2's byte-level BPE, from the ids of its tokens and the list of its merges."""
    ids = read(vocab, json.loads)
    pairs = read(merges, parse_merges)
    try:
        backend = tokenizers.Tokenizer(models.BPE(ids, pairs))
    except Exception as error:
        raise UserError(f"{vocab} and {merges} do not belong together: {error}") from error
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens(special_tokens_among(ids))
    return backend


def special_tokens_among(ids: dict[str, int]) -> list[str]:
    """The special tokens that a vocabulary has, in any spelling."""
    return [spelling for spellings in SPECIALS.values() for spelling in spellings if spelling in ids]


def parse_merges(text: str) -> list[tuple[str, str]]:
    """The pairs of a merges file: two tokens per line, after a line with the version."""
    lines = [line for line in text.split("\n") if line and not line.startswith("#version")]
    pairs = [tuple(line.split(" ")) for line in lines]
    for line, pair in zip(lines, pairs, strict=True):
        require(len(pair) == 2, f"{line!r} is not a pair of tokens")
    return [(pair[0], pair[1]) for pair in pairs]


def bert(vocab: Path, config: Path | None) -> tokenizers.Tokenizer:
    """BERT's WordPiece, from the list of its tokens. Lower case unless the configuration or a token says otherwise."""
    ids = {token: number for number, token in enumerate(read(vocab, lambda text: text.rstrip("\n").split("\n")))}
    require("[UNK]" in ids, f"{vocab} has no line [UNK]: it is not a BERT vocabulary")
    cased = any(token != token.lower() for token in ids if not token.startswith("["))
    backend = tokenizers.Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))
    backend.normalizer = (
        read(config, lambda text: bert_normalizer(json.loads(text), cased)) if config else bert_normalizer({}, cased)
    )
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    # Hugging Face's own clean-up is not used, because it also turns "do not" into "don't".
    signs = decoders.Replace(Regex(r" (?=[.,;:!?…)\]}])|(?<=[(\[{]) "), "")
    apostrophes = decoders.Replace(Regex(r"(?<=\w) ' (?=\w)"), "'")
    pieces = decoders.WordPiece(prefix="##", cleanup=False)
    backend.decoder = decoders.Sequence([pieces, decoders.Fuse(), signs, apostrophes])
    backend.add_special_tokens(special_tokens_among(ids))
    return backend


def bert_normalizer(settings: Mapping[str, Any], cased: bool) -> normalizers.Normalizer:
    """What BERT does to a text first, by the settings of its configuration."""
    return normalizers.BertNormalizer(
        handle_chinese_chars=settings.get("tokenize_chinese_chars", True),
        strip_accents=settings.get("strip_accents"),  # None: only with lower case
        lowercase=settings.get("do_lower_case", not cased),
    )
