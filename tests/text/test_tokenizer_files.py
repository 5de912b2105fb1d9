"""Tokenizer files: ours come back the same, those of others are read as they are."""

from __future__ import annotations

import dataclasses
import json
import lzma
import os
import pickle
from functools import cache
from pathlib import Path

import pytest
import tokenizers
from tokenizers.implementations.bert_wordpiece import BertWordPieceTokenizer

from clearhead.config import TokenizerConfig, UserError
from clearhead.text import bpe
from clearhead.text.tokenizer import (
    Tokenizer,
    Tokenizers,
    load_tokenizer,
    load_tokenizers,
    train_tokenizers,
)
from properties import given, st
from trained_tokenizers import OURS, TEXTS, each_kind, trained

DATA = Path(os.environ.get("CLEARHEAD_DATA", Path(__file__).parents[3] / "shared" / "data"))
needs_gpt2 = pytest.mark.skipif(
    not (DATA / "gpt2_bpe").is_dir(), reason=f"no folder {DATA / 'gpt2_bpe'}; CLEARHEAD_DATA says where it is"
)


ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]))


# ---- Files ----


@each_kind
def test_saved_and_pickled_tokenizers_are_the_same(kind: str, tmp_path: Path) -> None:
    tokenizer = OURS[kind]
    tokenizer.save(tmp_path / "tokenizer.json")
    assert [file.name for file in tmp_path.iterdir()] == ["tokenizer.json"]
    loaded = (load_tokenizer(tmp_path / "tokenizer.json"), load_tokenizer(tmp_path))
    for copy in (*loaded, pickle.loads(pickle.dumps(tokenizer))):
        assert copy.fingerprint == tokenizer.fingerprint
        text = "<end> The car, déjà <pad>"
        assert copy.encode(text) == tokenizer.encode(text)
        assert copy.decode(copy.encode(text)) == tokenizer.decode(tokenizer.encode(text))


def test_fingerprints_differ() -> None:
    changed = trained("bpe", [*TEXTS, "another text, another text"])
    assert len({tokenizer.fingerprint for tokenizer in (*OURS.values(), changed)}) == 5


def test_a_failed_save_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "tokenizer.json"
    OURS["words"].save(path)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UserError, match=r"cannot write .*tokenizer.json: the disk is full"):
        OURS["bpe"].save(path)
    assert [file.name for file in tmp_path.iterdir()] == ["tokenizer.json"]
    assert load_tokenizer(path).fingerprint == OURS["words"].fingerprint


def test_bad_files_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"missing.json' does not exist"):
        load_tokenizer(tmp_path / "missing.json")
    with pytest.raises(UserError, match="no tokenizer in this folder"):
        load_tokenizer(tmp_path)
    for content in (b"{", b"[]", b"\xff", b'{"model": 3}'):
        (tmp_path / "tokenizer.json").write_bytes(content)
        with pytest.raises(UserError, match=r"tokenizer.json is not a tokenizer file, or is damaged"):
            load_tokenizer(tmp_path)


def test_truncation_and_padding_of_a_hugging_face_file_are_switched_off(tmp_path: Path) -> None:
    bare = tokenizers.Tokenizer.from_str(OURS["bpe"].backend.to_str())
    whole = bare.encode(TEXTS[0]).ids
    bare.enable_truncation(4)
    bare.enable_padding(length=100)
    bare.save(str(tmp_path / "tokenizer.json"))
    assert load_tokenizer(tmp_path).encode(TEXTS[0]) == whole


# ---- Two sides ----


@pytest.mark.parametrize("separate", [False, True])
def test_shared_and_separate_vocabularies(separate: bool, tmp_path: Path) -> None:
    config = TokenizerConfig(kind="words", vocab=40, separate=separate)
    before = train_tokenizers(dataclasses.replace(config, separate=not separate), lambda side: [side])
    before.save(tmp_path)  # what an earlier run left there
    texts = {"source": ["the cat sleeps"], "target": ["le chat dort"], "both": ["the cat sleeps", "le chat dort"]}
    both = train_tokenizers(config, texts.__getitem__)
    both.save(tmp_path)
    names = ["tokenizer.source.json", "tokenizer.target.json"] if separate else ["tokenizer.json"]
    assert sorted(file.name for file in tmp_path.iterdir()) == names
    for pair in (both, load_tokenizers(tmp_path)):
        assert pair.shared is not separate
        assert (pair.source.fingerprint == pair.target.fingerprint) is not separate
        assert pair.source.decode(pair.source.encode("the cat")) == "the cat"
        assert pair.target.decode(pair.target.encode("le chat")) == "le chat"
        assert (pair.source.unknown in pair.source.encode("le chat")) is separate
    one_file = load_tokenizers(tmp_path / names[0])
    assert one_file.shared


# ---- GPT-2 and BERT ----


@cache
def read_gpt2() -> Tokenizer:
    return load_tokenizer(DATA / "gpt2_bpe")


@needs_gpt2
def test_gpt2_is_read_as_it_is() -> None:
    gpt2 = read_gpt2()
    assert gpt2.vocab == 50257
    assert gpt2.encode("Hello world") == [15496, 995]
    assert gpt2.encode("Hello, world!") == [15496, 11, 995, 0]
    assert gpt2.start == gpt2.end == gpt2.pad == 50256
    assert gpt2.decode([15496, 50256, 995]) == "Hello world"
    assert 50256 not in gpt2.encode("<|endoftext|>")
    assert [piece for piece, _ in gpt2.pieces("Hello world")] == ["Hello", " world"]


@needs_gpt2
@given(text=ANY_TEXT)
def test_gpt2_round_trip(text: str) -> None:
    gpt2 = read_gpt2()
    assert gpt2.decode(gpt2.encode(text)) == text


@needs_gpt2
def test_gpt2_equals_the_didactic_bpe_with_its_merges() -> None:
    encoder, merges = (
        lzma.decompress((DATA / "gpt2_bpe" / name).read_bytes()) for name in ("encoder.json.xz", "vocab.bpe.xz")
    )
    ids = json.loads(encoder)
    lines = merges.decode().split("\n")[1:-1]

    def raw(token: str) -> bytes:
        return bytes(bpe.BYTES[character] for character in token)

    tokens = {raw(token): number for token, number in ids.items() if token != "<|endoftext|>"}
    pairs = [line.split(" ") for line in lines]
    slow = bpe.BytePairs(tokens, [bpe.Merge(raw(left), raw(right), count=0) for left, right in pairs])
    for text in ("It's a naïve café, isn't it?  北京 in 2024!\n", "unbelievably Übergrößenträger 🎉"):
        assert slow.encode(text) == read_gpt2().encode(text)


@needs_gpt2
def test_special_tokens_gpt2_lacks_are_an_error_and_can_be_appended() -> None:
    gpt2 = read_gpt2()
    assert not gpt2.has("user")
    with pytest.raises(UserError, match=r"no special token for 'user'.*extended\('user'\)"):
        _ = gpt2.user
    more = gpt2.extended("end", "user", "assistant")
    assert (more.vocab, more.end, more.user, more.assistant) == (50259, 50256, 50257, 50258)
    assert more.encode("Hello <user>") == gpt2.encode("Hello <user>")


def test_gpt2_files_under_either_name_and_compressed_or_not(tmp_path: Path) -> None:
    ids = {token: number for number, token in enumerate([*sorted(bpe.BYTES), "ab", "abc"])}
    merges = "#version: 0.2\na b\nab c\n"
    for number, (vocab, pairs) in enumerate([("encoder.json", "vocab.bpe"), ("vocab.json", "merges.txt")]):
        for folder, ending, pack in ((f"{number}", "", bytes), (f"{number}xz", ".xz", lzma.compress)):
            (tmp_path / folder).mkdir()
            (tmp_path / folder / (vocab + ending)).write_bytes(pack(json.dumps(ids).encode()))
            (tmp_path / folder / (pairs + ending)).write_bytes(pack(merges.encode()))
            assert load_tokenizer(tmp_path / folder).encode("abcab") == [257, 256]
    (tmp_path / "0" / "vocab.bpe").write_text("a b\nx y z\n")
    with pytest.raises(UserError, match=r"vocab.bpe is not a tokenizer file.*'x y z' is not a pair"):
        load_tokenizer(tmp_path / "0")
    (tmp_path / "0" / "vocab.bpe").write_text("a b\nxx yy\n")
    with pytest.raises(UserError, match="do not belong together"):
        load_tokenizer(tmp_path / "0")


BERT = ["[PAD]", "[unused0]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"!'(),.abct北京", "do", "not", "the", "cafe", "car"]
BERT += ["##s", "##e", "red", "un", "##able", "don"]
SENTENCES = [
    "The cars, do not!",
    "Café CAFÉ cafe\u0301",
    "北京the",
    "(red) unable\tzzz",
    "don't [MASK] [SEP]",
    "a\0b\u200bc",
]


def bert_folder(folder: Path, tokens: list[str]) -> Path:
    (folder / "vocab.txt").write_text("\n".join(tokens) + "\n", encoding="utf8")
    return folder


@pytest.mark.parametrize("text", SENTENCES)
def test_bert_is_read_as_it_is(tmp_path: Path, text: str) -> None:
    bert = load_tokenizer(bert_folder(tmp_path, BERT))
    peer = tokenizers.Tokenizer.from_str(BertWordPieceTokenizer(str(tmp_path / "vocab.txt"), lowercase=True).to_str())
    peer.encode_special_tokens = True
    assert bert.encode(text) == peer.encode(text, add_special_tokens=False).ids
    assert not {bert.pad, bert.start, bert.separator, bert.mask} & set(bert.encode(text))


def test_bert_has_berts_special_tokens_and_readable_text(tmp_path: Path) -> None:
    bert = load_tokenizer(bert_folder(tmp_path, BERT))
    assert bert.vocab == len(BERT)
    assert (bert.pad, bert.unknown, bert.start, bert.end, bert.separator, bert.mask) == (0, 2, 3, 4, 4, 5)
    assert bert.decode([bert.start, *bert.encode("The cars, (do not) don't!"), bert.end]) == "the cars, (do not) don't!"
    with pytest.raises(UserError, match="no special token for 'user'"):
        _ = bert.user


def test_cased_bert_keeps_case(tmp_path: Path) -> None:
    bert = load_tokenizer(bert_folder(tmp_path, [*BERT, "The", "Café"]))
    assert [piece for piece, _ in bert.pieces("The the Café")] == ["The", "the", "Café"]
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": true}')
    assert [piece for piece, _ in load_tokenizer(tmp_path).pieces("The Café")] == ["the", "cafe"]


@pytest.mark.parametrize("configuration", ["[]", '{"do_lower_case": "yes"}', "{"])
def test_a_damaged_configuration_of_bert_is_refused(tmp_path: Path, configuration: str) -> None:
    (tmp_path / "tokenizer_config.json").write_text(configuration)
    with pytest.raises(UserError, match=r"tokenizer_config.json is not a tokenizer file, or is damaged"):
        load_tokenizer(bert_folder(tmp_path, BERT))


def test_a_vocabulary_without_unknown_is_no_berts(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"vocab.txt has no line \[UNK\]"):
        load_tokenizer(bert_folder(tmp_path, ["a", "b"]))


def test_the_configuration_beside_a_tokenizer_names_its_special_tokens(tmp_path: Path) -> None:
    OURS["words"].save(tmp_path / "tokenizer.json")
    settings = {"bos_token": "<pad>", "eos_token": {"content": "<mask>"}, "pad_token": "nowhere", "unk_token": "<mask>"}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    loaded = load_tokenizer(tmp_path)
    spelled = OURS["words"]
    assert (loaded.start, loaded.end, loaded.pad) == (spelled.pad, spelled.mask, spelled.pad)
    assert loaded.unknown == spelled.unknown  # one token that stands for all of them replaces no text
    assert loaded.fingerprint != spelled.fingerprint
    assert loaded.same_tokens(spelled)
    Tokenizers(loaded, loaded).save(tmp_path)
    assert load_tokenizers(tmp_path).target.fingerprint == loaded.fingerprint
    assert pickle.loads(pickle.dumps(loaded)).end == loaded.end
