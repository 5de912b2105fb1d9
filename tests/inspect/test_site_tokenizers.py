"""The page's tokenizers in JavaScript give the ids and texts of ours, to the letter."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Sequence
from pathlib import Path

import pytest
from tokenizers import Regex, normalizers, pre_tokenizers

from clearhead.config import ModelConfig
from clearhead.exchange.tokenizers import read_tokenizers
from clearhead.inspect.web.server import PAGE
from clearhead.text.tokenizer import Tokenizer, load_tokenizer
from marian_files import marian_settings, write_marian
from page_tokenizers import EVERY_CHARACTER, Ask, by_pieces, check, questions_to, rows_to_decode, texts_to_encode
from real_corpora import SHARED
from trained_tokenizers import KINDS, TEXTS, trained

BUNDLED = PAGE.parents[2] / "bundled" / "english-french"

# --- tokenizers as they are used --------------------------------------------------------------------------------------


@pytest.mark.parametrize("lowercase", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_our_kinds(ask: Ask, kind: str, lowercase: bool) -> None:
    tokenizer = trained(kind, lowercase=lowercase)
    check(ask, tokenizer, texts_to_encode(), rows_to_decode(tokenizer))


def bert_folder(folder: Path, **settings: object) -> Path:
    """A folder in BERT's format, with a small vocabulary."""
    letters = sorted({character for text in TEXTS for character in text.lower() if character.isalpha()})
    words = ["the", "car", "red", "école", "ecole", "!", "'", "-", ".", "北", "##ing", "##ed", "Ελλ", "ελλας", "½"]
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words, *letters, *(f"##{letter}" for letter in letters)]
    (folder / "vocab.txt").write_text("\n".join(tokens), encoding="utf8")
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


REAL = {
    "english-french": lambda folder: load_tokenizer(BUNDLED),
    "gpt2": lambda folder: load_tokenizer(shared("gpt2_bpe")),
    "stories260k": lambda folder: load_tokenizer(shared("stories260k")),
    "bert-uncased": lambda folder: load_tokenizer(bert_folder(folder, do_lower_case=True)),
    "bert-cased": lambda folder: load_tokenizer(bert_folder(folder, do_lower_case=False)),
    "bert-accents": lambda folder: load_tokenizer(bert_folder(folder, do_lower_case=True, strip_accents=False)),
    "marian": lambda folder: marian(folder),
}


def shared(name: str) -> Path:
    if not (SHARED / name).is_dir():
        pytest.skip(f"{name} is not on this machine")
    return SHARED / name


def marian(folder: Path) -> Tokenizer:
    write_marian(folder)
    vocab = len(json.loads((folder / "vocab.json").read_text()))
    return read_tokenizers(folder, marian_settings(folder), ModelConfig(vocab=vocab)).source


@pytest.mark.parametrize("name", REAL)
def test_real_tokenizers(ask: Ask, name: str, tmp_path: Path) -> None:
    tokenizer = REAL[name](tmp_path)
    check(ask, tokenizer, texts_to_encode(), rows_to_decode(tokenizer))


# --- all characters ---------------------------------------------------------------------------------------------------


def in_context(characters: Sequence[str]) -> list[str]:
    """Each character between a letter, a digit, a sign and a space, in texts of moderate size."""
    blocks = [characters[start : start + 2048] for start in range(0, len(characters), 2048)]
    return ["".join(f"z{each}0{each}!{each} {each}\nz" for each in block) for block in blocks]


CENSUS = {
    "words of GPT-2": (None, pre_tokenizers.ByteLevel(add_prefix_space=False)),
    "words": (None, pre_tokenizers.Split(Regex(r"\w+|\W"), "isolated")),
    "no words": (None, pre_tokenizers.Split(Regex(r"[^\w\s]|[\d]+"), "isolated")),
    "Whitespace": (None, pre_tokenizers.Whitespace()),
    "Digits": (None, pre_tokenizers.Digits(individual_digits=True)),
    "Lowercase": (normalizers.Lowercase(), pre_tokenizers.WhitespaceSplit()),
    "NFC": (normalizers.NFC(), pre_tokenizers.WhitespaceSplit()),
    "NFKC": (normalizers.NFKC(), pre_tokenizers.WhitespaceSplit()),
    "NFKD": (normalizers.Sequence([normalizers.NFKD(), normalizers.StripAccents()]), pre_tokenizers.WhitespaceSplit()),
    "BERT": (normalizers.BertNormalizer(lowercase=True), pre_tokenizers.BertPreTokenizer()),
}


@pytest.mark.parametrize("name", CENSUS)
def test_every_character_is_treated_alike(ask: Ask, name: str) -> None:
    texts = in_context(EVERY_CHARACTER)
    check(ask, by_pieces(*CENSUS[name], texts), texts)


def test_marks_and_signs_that_berts_tables_do_not_have(ask: Ask) -> None:
    """The tables of BERT's normaliser are older than the browser's: a younger mark is a letter for it."""
    classes = ("P", "Mn", "Cf", "Co")
    known = [chr(n) for n in range(0x110000) if unicodedata.category(chr(n)).startswith(classes) and n < 0xF0000]
    stable = [character for character in known if unicodedata.normalize("NFD", character) == character]
    texts = in_context(stable)
    check(ask, by_pieces(*CENSUS["BERT"], texts), texts)


def test_texts_and_ids_that_cannot_be_are_refused(ask: Ask) -> None:
    tokenizer = trained("bpe")
    found = ask(questions_to(tokenizer) | {"texts": ["😀a\ud83d b"], "rows": [[tokenizer.vocab], [-1]]})
    assert found["ids"][0]["error"].startswith("character 3 of the text is half a character")
    assert [row["error"] for row in found["texts"]] == [
        f"id {number} is not one of the {tokenizer.vocab} ids of this tokenizer" for number in (tokenizer.vocab, -1)
    ]
