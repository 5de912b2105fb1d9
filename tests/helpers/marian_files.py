"""The tokenizer files of a small Marian model, made with the library of SentencePiece."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from clearhead.corpora.catalogue import built_in_corpus


def write_marian(folder: Path) -> Path:
    """The tokenizer files of a Marian model, for the two languages of the phrasebook."""
    sentencepiece = pytest.importorskip("sentencepiece", reason="sentencepiece is not installed")
    pairs = list(built_in_corpus("phrasebook", size=300).read("train"))
    pieces: dict[str, None] = dict.fromkeys(["</s>", "<unk>"])
    for side in ("source", "target"):
        model = io.BytesIO()
        texts = (getattr(pair, side) for pair in pairs)
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=texts, model_writer=model, vocab_size=250, minloglevel=2, bos_id=-1
        )
        (folder / f"{side}.spm").write_bytes(model.getvalue())
        spm = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
        pieces |= dict.fromkeys(spm.id_to_piece(n) for n in range(spm.get_piece_size()))
    ids = {piece: number for number, piece in enumerate([*pieces, "<pad>"])}
    (folder / "vocab.json").write_text(json.dumps(ids))
    settings = {
        "source_lang": "en",
        "target_lang": "fr",
        "unk_token": "<unk>",
        "eos_token": "</s>",
        "pad_token": "<pad>",
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


def marian_settings(folder: Path) -> dict[str, int]:
    """What the config.json of such a model says about special tokens."""
    ids = json.loads((folder / "vocab.json").read_text())
    return {"eos_token_id": ids["</s>"], "decoder_start_token_id": ids["<pad>"], "pad_token_id": ids["<pad>"]}
