"""SentencePiece models (.spm) as `tokenizers`, read without the library: the file is a list of pieces with scores.

A Marian model has one for the source, one for the target, and in vocab.json the ids that both share.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import tokenizers
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers

from clearhead.config import UserError, require

UNIGRAM = 1  # trainer_spec.model_type
NORMAL = 1  # type of a piece
UNKNOWN = 10.0  # by how much the score of unknown text is below that of the least likely piece
ELSEWHERE = "\0"  # before pieces of the other language: no text has this character after normalisation


@dataclass(frozen=True)
class SentencePiece:
    """A model: its pieces with their scores, and how a text is normalised."""

    scores: dict[str, float]
    charsmap: bytes  # a table of replacements, for `normalizers.Precompiled`


def read_sentencepiece(path: Path) -> SentencePiece:
    """Read a unigram model from a file; refuse other kinds of models."""
    try:
        return parse(path.read_bytes())
    except (OSError, IndexError, struct.error, UnicodeDecodeError, KeyError) as error:
        raise UserError(f"{path} is not a SentencePiece model, or is damaged: {error!r}") from error


def parse(data: bytes) -> SentencePiece:
    """The pieces and the normaliser of a model in the format of protocol buffers."""
    scores = {}
    charsmap = b""
    for field, value in fields(data):
        if field == 1:  # a piece: 1 its text, 2 its score, 3 its type
            piece = dict(fields(bytes_of(value)))
            if piece.get(3, NORMAL) == NORMAL:
                [score] = struct.unpack("<f", bytes_of(piece.get(2, bytes(4))))
                scores[bytes_of(piece[1]).decode()] = float(score)
        elif field == 2:  # how it was trained
            kind = dict(fields(bytes_of(value))).get(3, UNIGRAM)
            require(kind == UNIGRAM, f"model_type = {kind!r} of SentencePiece cannot be expressed here: unigram can")
        elif field == 3:  # how a text is normalised
            charsmap = bytes_of(dict(fields(bytes_of(value))).get(2, b""))
    require(bool(scores), "a SentencePiece model without pieces")
    return SentencePiece(scores, charsmap)


def bytes_of(value: int | bytes) -> bytes:
    """The value of a field that must be bytes."""
    if isinstance(value, int):
        raise IndexError("a number where bytes should be")
    return value


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message: number and value, which is a number, or bytes of known or fixed length."""
    place = 0

    def varint() -> int:
        nonlocal place
        value = 0
        for shift in range(0, 70, 7):
            byte = data[place]
            place += 1
            value |= (byte & 127) << shift
            if byte < 128:
                break
        return value

    while place < len(data):
        key = varint()
        kind = key & 7
        if kind == 0:
            yield key >> 3, varint()
            continue
        length = {1: 8, 5: 4}[kind] if kind != 2 else varint()
        if place + length > len(data):
            raise IndexError("the file is cut off")
        yield key >> 3, data[place : place + length]
        place += length


def marian_backend(model: SentencePiece, ids: dict[str, int]) -> tokenizers.Tokenizer:
    """The tokenizer of one language, with the ids of both.

    Pieces of the other language only are never used for a text, except single characters, which score like unknown
    text. (`transformers` reads several such characters in a row as one unknown piece.)
    """
    ordered = sorted(ids, key=lambda piece: ids[piece])
    in_order = [ids[piece] for piece in ordered] == list(range(len(ids)))
    require(in_order, "vocab.json does not number its tokens from 0 on")
    special = [token for token in ("</s>", "<unk>", "<pad>") if token in ids]
    require("<unk>" in special, "vocab.json has no <unk>")
    unlikely = min(model.scores.values()) - UNKNOWN
    pieces = [
        (piece if piece in model.scores or piece in special or len(piece) == 1 else ELSEWHERE + piece, unlikely)
        for piece in ordered
    ]
    pieces = [(piece, model.scores.get(piece, score)) for piece, score in pieces]
    backend = tokenizers.Tokenizer(models.Unigram(pieces, unk_id=ids["<unk>"]))
    rules: list[normalizers.Normalizer] = [normalizers.Precompiled(model.charsmap)] if model.charsmap else []
    spaces = [normalizers.Replace(Regex("^ +| +$"), ""), normalizers.Replace(Regex(" {2,}"), " ")]
    backend.normalizer = normalizers.Sequence([*rules, *spaces])
    backend.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
    backend.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always")
    backend.add_special_tokens(special)
    return backend
