"""The parts of the page's tokenizers do with a text what ours do, and what is not known there is refused."""

from __future__ import annotations

import random
from typing import Any

import pytest
import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers

from clearhead.text.tokenizer import Tokenizer
from page_tokenizers import Ask, by_pieces, check, questions_to, rows_to_decode, short_texts
from trained_tokenizers import trained

# --- parts ------------------------------------------------------------------------------------------------------------

PATTERNS = [
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}]+(?i:'s|'t)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s+",
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*",
    r" ?[^(\s|[.,!?…。，、।۔،])]+",
    r"[一-龥぀-ゟ゠-ヿ]+|\p{Han}|\x{e9}|\u00df",
    *(
        r"\w",
        r"\W",
        r"[\w']+",
        r"[\W]",
        r"[^\W\d]",
        r"(?<!\w).",
        r"\d+",
        r"\D",
        r"\S+",
        r"[^\d\s]+",
        r"\p{^L}",
        r"\P{^Lu}",
    ),
    *(
        "^.",
        ".$",
        "^",
        "$",
        "^ +| +$",
        "a*",
        "x{,2}a",
        "a{2}",
        "(a|b)+",
        "[-a]",
        "[a-]",
        r"[\s-]",
        r"[^\]]",
        "]|}|{",
        "#+?",
    ),
]
BEHAVIORS = ["isolated", "removed", "merged_with_previous", "merged_with_next", "contiguous"]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns(ask: Ask, pattern: str) -> None:
    """Those of GPT-4, GPT-4o, DeepSeek and BLOOM, and what may occur in one."""
    texts = short_texts()
    split = pre_tokenizers.Split(Regex(pattern), "isolated")
    replaced = normalizers.Replace(Regex(pattern), "<$&>")
    check(ask, by_pieces(replaced, split, texts), texts)


@pytest.mark.parametrize("invert", [False, True])
@pytest.mark.parametrize("behavior", BEHAVIORS)
def test_what_becomes_of_a_match(ask: Ask, behavior: str, invert: bool) -> None:
    texts = short_texts()
    for pattern in (Regex(r"\s|a+"), Regex("b*"), "a"):
        check(ask, by_pieces(None, pre_tokenizers.Split(pattern, behavior, invert), texts), texts)
    check(ask, by_pieces(None, pre_tokenizers.Punctuation(behavior), texts), texts)


NORMALIZERS = [
    normalizers.NFD(),
    normalizers.Strip(),
    normalizers.Strip(left=False),
    normalizers.Strip(right=False),
    normalizers.Prepend("▁"),
    normalizers.ByteLevel(),
    normalizers.StripAccents(),
    normalizers.Replace("a", "$&"),
    normalizers.Sequence([normalizers.Replace(" ", "▁"), normalizers.Lowercase(), normalizers.NFC()]),
    normalizers.BertNormalizer(clean_text=False, handle_chinese_chars=False, lowercase=False),
]
PRE_TOKENIZERS = [
    pre_tokenizers.ByteLevel(add_prefix_space=True),
    pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    pre_tokenizers.Digits(),
    pre_tokenizers.WhitespaceSplit(),
    *(pre_tokenizers.Metaspace("▁", scheme) for scheme in ("always", "first", "never")),
    pre_tokenizers.Metaspace("_", "always", split=False),
    pre_tokenizers.Sequence([pre_tokenizers.Split("\n", "isolated"), pre_tokenizers.Metaspace("▁", "first")]),
    pre_tokenizers.Sequence([pre_tokenizers.Punctuation(), pre_tokenizers.ByteLevel(add_prefix_space=True)]),
]


@pytest.mark.parametrize("part", [*NORMALIZERS, *PRE_TOKENIZERS], ids=str)
def test_normalizers_and_pre_tokenizers(ask: Ask, part: Any) -> None:
    texts = short_texts()
    normal = isinstance(part, normalizers.Normalizer)
    check(ask, by_pieces(part, None, texts) if normal else by_pieces(None, part, texts), texts)


@pytest.mark.parametrize(
    "normalizer", [None, normalizers.Strip(), normalizers.Prepend("x"), normalizers.BertNormalizer()]
)
def test_the_first_word_is_marked_unless_text_before_it_was_removed(ask: Ask, normalizer: Any) -> None:
    words = [f"{before}{word}" for before in ("", "▁") for word in ("", "a", "x", "xa", "北")]
    backend = tokenizers.Tokenizer(models.WordLevel({w: n for n, w in enumerate(["?", *words])}, unk_token="?"))
    if normalizer:
        backend.normalizer = normalizer
    backend.pre_tokenizer = pre_tokenizers.Metaspace("▁", "first")
    check(ask, Tokenizer(backend), ["a", " a", "  a", "\0a", "北", "aa", "x a", ""])


TOKENS = [
    "a",
    "##b",
    ".",
    "n't",
    "'s",
    "do not",
    "▁x",
    "▁",
    "x▁y",
    " ",
    "  z ",
    "Ġthe",
    "Ã",
    "é",
    "</w>",
    "w</w>",
    "日",
    "😀",
]
BYTE_TOKENS = [f"<0x{byte:02X}>" for byte in (0x00, 0x41, 0x80, 0xE2, 0x82, 0xAC, 0xC3, 0xF0, 0x9F, 0xEF, 0xBB, 0xBF)]
DECODERS = [
    None,
    decoders.ByteLevel(),
    decoders.ByteFallback(),
    decoders.Fuse(),
    decoders.Replace("▁", " "),
    decoders.Replace(Regex(r"\s|a"), "<$&>"),
    decoders.Strip(" ", 1, 0),
    decoders.Strip(" ", 0, 1),
    decoders.WordPiece(),
    decoders.WordPiece(prefix="##", cleanup=False),
    *(decoders.Metaspace("▁", scheme) for scheme in ("always", "first", "never")),
    decoders.BPEDecoder(),
    decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 2, 0)]
    ),
]


@pytest.mark.parametrize("decoder", DECODERS, ids=str)
def test_decoders(ask: Ask, decoder: Any) -> None:
    vocab = {token: n for n, token in enumerate(["<unk>", *TOKENS, *BYTE_TOKENS])}
    backend = tokenizers.Tokenizer(models.WordLevel(vocab, unk_token="<unk>"))
    if decoder:
        backend.decoder = decoder
    backend.add_special_tokens(["<unk>", "<end>"])
    backend.add_tokens([AddedToken("tail Ġ", special=False)])
    tokenizer = Tokenizer(backend)
    rows = [row for row in rows_to_decode(tokenizer) if row]
    check(ask, tokenizer, ["a"], rows)


# --- models -----------------------------------------------------------------------------------------------------------


def byte_pairs(**settings: Any) -> tokenizers.Tokenizer:
    prefix, suffix = settings.get("continuing_subword_prefix", ""), settings.get("end_of_word_suffix", "")
    merges = [
        ("a", prefix + "a"),
        ("a", prefix + "b"),
        ("aa", f"{prefix}a"),
        ("ab", f"{prefix}ab{suffix}"),
        ("the", f"{prefix}n"),
    ]
    letters = [f"{before}{letter}{after}" for letter in "abthen" for before in ("", prefix) for after in ("", suffix)]
    made = ["aa", "ab", "aaa", "abab" + suffix, "the", "then", f"{prefix}ab{suffix}", "<0xC3>", "<0xA9>", "<0xE2>"]
    vocab = {token: n for n, token in enumerate(dict.fromkeys(["<unk>", *letters, *made]))}
    return tokenizers.Tokenizer(models.BPE(vocab, merges, **settings))


BPE_SETTINGS: list[dict[str, Any]] = [
    {},
    {"unk_token": "<unk>"},
    {"unk_token": "<unk>", "fuse_unk": True},
    {"unk_token": "<unk>", "byte_fallback": True},
    {"unk_token": "<unk>", "byte_fallback": True, "fuse_unk": True},
    {"unk_token": "<unk>", "continuing_subword_prefix": "##"},
    {"unk_token": "<unk>", "end_of_word_suffix": "</w>"},
    {"ignore_merges": True},
]


@pytest.mark.parametrize("settings", BPE_SETTINGS, ids=str)
@pytest.mark.parametrize("splits", [False, True])
def test_byte_pair_encoding(ask: Ask, settings: dict[str, Any], splits: bool) -> None:
    backend = byte_pairs(**settings)
    if splits:
        backend.pre_tokenizer = pre_tokenizers.Whitespace()
    dice = random.Random(2)
    words = ["".join(dice.choices("aaabbtheén☃ ", k=dice.randint(1, 30))) for _ in range(100)]
    check(ask, Tokenizer(backend), [*short_texts(), *words])


@pytest.mark.parametrize("byte_fallback", [False, True])
def test_unigram(ask: Ask, byte_fallback: bool) -> None:
    scores = {
        "<unk>": 0.0,
        "▁": -2.0,
        "a": -3.0,
        "b": -3.0,
        "ab": -6.0,
        "▁ab": -7.5,
        "aab": -9.0,
        "😀": -4.0,
        "é": -3.5,
    }
    tokens = [*scores.items(), *((token, -20.0) for token in BYTE_TOKENS)]
    backend = tokenizers.Tokenizer(models.Unigram(tokens, 0, byte_fallback))
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.decoder = decoders.Metaspace()
    backend.add_special_tokens(["<unk>", "<end>"])
    dice = random.Random(2)
    words = [
        "".join(dice.choices(["a", "a", "b", " ", "é", "☃", "😀", "€", "<unk>", "<end>"], k=20)) for _ in range(100)
    ]
    tokenizer = Tokenizer(backend)
    check(ask, tokenizer, [*short_texts(), *words], rows_to_decode(tokenizer))


ADDED = [
    {},
    {"lstrip": True},
    {"rstrip": True},
    {"lstrip": True, "rstrip": True},
    {"single_word": True},
    {"normalized": False},
    {"normalized": False, "lstrip": True},
]


@pytest.mark.parametrize("settings", ADDED, ids=str)
def test_added_tokens_are_found_in_a_text_and_special_ones_are_not(ask: Ask, settings: dict[str, bool]) -> None:
    backend = tokenizers.Tokenizer.from_str(trained("characters", lowercase=True).backend.to_str())
    backend.add_tokens([AddedToken(text, **settings) for text in ("THE", "Then", "  ", "é", "<ends>")])
    backend.add_special_tokens(["[Then]"])
    dice = random.Random(2)
    parts = ["the", "THE", "Then", "then", " ", "  ", "x", "É", "<end>", "<ends>", "[Then]", "\n", "_"]
    texts = ["".join(dice.choices(parts, k=dice.randint(1, 12))) for _ in range(300)]
    tokenizer = Tokenizer(backend)
    check(ask, tokenizer, texts, rows_to_decode(tokenizer))


# --- what is refused --------------------------------------------------------------------------------------------------

REFUSED = [
    ({"normalizer": {"type": "Nmt"}}, "normalizer 'Nmt'"),
    ({"pre_tokenizer": {"type": "UnicodeScripts"}}, "pre-tokenizer 'UnicodeScripts'"),
    ({"decoder": {"type": "CTC"}}, "decoder 'CTC'"),
    ({"model": {"type": "Toy"}}, "model 'Toy'"),
    ({"model": {"type": "BPE", "vocab": {}, "merges": [], "dropout": 0.1}}, "dropout = 0.1"),
    *(
        ({"normalizer": {"type": "Replace", "pattern": {"Regex": pattern}, "content": ""}}, part)
        for pattern, part in [
            *((r"\bthe\b", r"\b"), ("(?>a)", "(?"), ("a++", "a++"), ("[[:alpha:]]", "[:"), (r"\p{Elvish}", "Elvish")),
            *(
                ("[a&&b]", "&&"),
                ("(?i:[a])", "(?i:"),
                ("a{2}?", "{2}?"),
                (r"(a)\1", r"\1"),
                ("[]a]", "[]"),
                ("(a", "(a"),
            ),
        ]
    ),
]


@pytest.mark.parametrize(("change", "named"), REFUSED, ids=str)
def test_what_is_not_known_is_refused_by_name(ask: Ask, change: dict[str, Any], named: str) -> None:
    questions = questions_to(trained("characters"))
    found = ask(questions | {"json": questions["json"] | change})
    assert named in found["error"]
    assert "not known" in found["error"] or "dropout" in found["error"]
