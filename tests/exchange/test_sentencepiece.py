"""Tokenizers of Marian, read without the library of SentencePiece: the ids and texts are the same."""

from __future__ import annotations

import json
import unicodedata
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from clearhead.config import ModelConfig, UserError
from clearhead.corpora.catalogue import built_in_corpus
from clearhead.exchange.sentencepiece import read_sentencepiece
from clearhead.exchange.tokenizers import read_tokenizers
from clearhead.text.tokenizer import Tokenizers
from marian_files import marian_settings, write_marian
from properties import assume, given, st

sentencepiece = pytest.importorskip("sentencepiece", reason="sentencepiece is not installed")
HARD = ["", " ", "the  red   car", "ﬁne ½ …  “quotes”", "日本語 and\tété", "unknown ☃ snow", "it's 3.14!"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_marian(tmp_path_factory.mktemp("marian"))


@cache
def ours(folder: Path) -> Tokenizers:
    ids = json.loads((folder / "vocab.json").read_text())
    return read_tokenizers(folder, marian_settings(folder), ModelConfig(vocab=len(ids)))


def theirs(folder: Path) -> Any:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    return transformers.MarianTokenizer.from_pretrained(folder)


def test_ids_are_those_of_transformers(folder: Path) -> None:
    peer = theirs(folder)
    mine = ours(folder)
    pairs = list(built_in_corpus("phrasebook", size=100).read("test"))[:100]
    for text in [*HARD, *(pair.source for pair in pairs)]:
        assert mine.source.encode(text) == peer(text, add_special_tokens=False)["input_ids"], text
    for text in (pair.target for pair in pairs):
        ids = peer(text_target=text, add_special_tokens=False)["input_ids"]
        assert mine.target.encode(text) == ids
        assert mine.target.decode(ids) == peer.decode(ids, skip_special_tokens=True) == text
    assert mine.target.start == mine.target.pad == peer.pad_token_id
    assert mine.target.end == peer.eos_token_id


@cache
def theirs_of(folder: Path) -> Any:
    return sentencepiece.SentencePieceProcessor(model_file=str(folder / "source.spm"))


@given(text=st.text(max_size=40))
def test_pieces_are_those_of_sentencepiece(folder: Path, text: str) -> None:
    spm = theirs_of(folder)
    mine = ours(folder).source
    vocabulary = {piece: spm.piece_to_id(piece) for piece in json.loads((folder / "vocab.json").read_text())}
    elsewhere = {piece for piece, number in vocabulary.items() if number == 0 or spm.is_control(number)}
    assume(not any(piece in unicodedata.normalize("NFKC", text) for piece in elsewhere))  # French, </s>, ...
    pieces = [mine.piece(number) for number in mine.encode(text)]
    known = {spm.id_to_piece(n).replace("▁", " ") for n in range(spm.get_piece_size())}
    expected = [piece.replace("▁", " ") for piece in spm.encode(text, out_type=str)]
    assert pieces == [piece if piece in known else "<unk>" for piece in expected]


@pytest.mark.parametrize("data", [b"", b"not a model", b"\x0a\xff\xff\xff\xff\x0f", b"\x0a\x03\x0a\x01"])
def test_damaged_files_are_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "source.spm").write_bytes(data)
    with pytest.raises(UserError, match="SentencePiece model"):
        read_sentencepiece(tmp_path / "source.spm")


def test_several_target_languages_are_refused(folder: Path, tmp_path: Path) -> None:
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    ids = json.loads((folder / "vocab.json").read_text())
    (tmp_path / "vocab.json").write_text(json.dumps(ids | {">>fra<<": len(ids)}))
    with pytest.raises(UserError, match="several target languages"):
        ours(tmp_path)
