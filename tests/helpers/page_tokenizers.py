"""The tokenizers of the page, in JavaScript, and ours: the same questions to both, and texts that are hard for them."""

from __future__ import annotations

import json
import mimetypes
import random
import shutil
import subprocess
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import models

from clearhead.corpora.catalogue import built_in_corpus
from clearhead.inspect.web.merges import replay
from clearhead.inspect.web.server import PAGE
from clearhead.text.bpe import BYTES
from clearhead.text.tokenizer import Tokenizer
from patience import PATIENCE

ENGINE = PAGE / "engine"

# --- the same questions to both ---------------------------------------------------------------------------------------

# A function from (the module, the questions) to the answers; an error is answered by its message.
ANSWERS = """
({ loadTokenizer, replay }, { json, settings, texts, rows, replayed }) => {
  const tried = (compute) => { try { return compute(); } catch (error) { return { error: error.message }; } };
  const answers = () => {
    const tokenizer = loadTokenizer(json, settings);
    const ids = Array.from({ length: tokenizer.size }, (_, id) => id);
    return {
      size: tokenizer.size,
      special: tokenizer.special,
      pieces: ids.map((id) => tried(() => tokenizer.piece(id))),
      ids: texts.map((text) => tried(() => tokenizer.encode(text))),
      texts: rows.map((row) => tried(() => [tokenizer.decode(row), tokenizer.decode(row, true)])),
      replayed: replayed.map((text) => replay(tokenizer, text)),
    };
  };
  return tried(answers);
}
"""
Ask = Callable[..., Any]


def in_node(folder: Path, questions: object) -> Any:
    code = f"""
        import {{ readFileSync }} from "node:fs";
        import * as engine from {json.dumps((folder / "tokenizer.js").as_uri())};
        process.stdout.write(JSON.stringify(({ANSWERS})(engine, JSON.parse(readFileSync(0, "utf8")))));
    """
    done = subprocess.run(
        ["node", "--input-type=module", "-e", code],
        input=json.dumps(questions),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def in_browser(page: Any, questions: object) -> Any:
    def send(route: Any) -> None:
        file = PAGE / route.request.url.partition(".test/")[2]
        script = file.suffix == ".js"
        kind = mimetypes.types_map[".js" if script else ".html"]
        route.fulfill(body=file.read_text(encoding="utf8") if script else "", content_type=kind)

    page.route("**/*", send)
    page.goto("http://page.test/")
    code = f"async (given) => JSON.stringify(({ANSWERS})(await import('/engine/tokenizer.js'), JSON.parse(given)))"
    return json.loads(page.evaluate(code, json.dumps(questions)))


@contextmanager
def javascript(folder: Path, browser: Callable[[], Any]) -> Iterator[Ask]:
    """Answers questions with node, if it knows the regular expressions of browsers, else in the browser."""
    if shutil.which("node") and subprocess.run(["node", "-e", "RegExp('a', 'v')"], capture_output=True).returncode == 0:
        shutil.copytree(ENGINE, folder / "engine")
        (folder / "package.json").write_text('{"type": "module"}')  # what a browser knows from <script type="module">
        yield partial(in_node, folder / "engine")
    else:
        page = browser().new_page()
        yield partial(in_browser, page)
        page.close()


def questions_to(tokenizer: Tokenizer) -> dict[str, Any]:
    settings = {"special": tokenizer._named, "control": sorted(tokenizer._control)}
    file = json.loads(tokenizer.backend.to_str())
    return {"json": file, "settings": settings, "texts": [], "rows": [], "replayed": []}


def check(ask: Ask, tokenizer: Tokenizer, texts: Sequence[str], rows: Iterable[Sequence[int]] = ()) -> None:
    """Both encode the texts, decode their ids and other rows, spell each token and replay merges alike."""
    ids = [tokenizer.encode(text) for text in texts]
    every = [*ids, *map(list, rows)]
    replayed = [text for text in texts if len(text) < 300][:40]
    found = ask(questions_to(tokenizer) | {"texts": texts, "rows": every, "replayed": replayed})
    assert "error" not in found, found
    for text, expected, got in zip(texts, ids, found["ids"], strict=True):
        assert got == expected, ascii(text)
    for row, got in zip(every, found["texts"], strict=True):
        assert got == [tokenizer.decode(row), tokenizer.decode(row, keep_special=True)], row
    assert found["size"] == tokenizer.vocab
    assert found["special"] == tokenizer._named
    for number, token in tokenizer._tokens.items():
        if not tokenizer.byte_level or number in tokenizer._added or BYTES.keys() >= {*token}:
            assert found["pieces"][number] == tokenizer.piece(number)
    assert found["replayed"] == [replay(tokenizer, text) for text in replayed]


def by_pieces(normalizer: Any = None, pre_tokenizer: Any = None, texts: Sequence[str] = ()) -> Tokenizer:
    """A tokenizer whose vocabulary is all pieces of the texts, so that ids say how they are changed and split."""
    backend = tokenizers.Tokenizer(models.WordLevel({}, unk_token="<unk>"))
    pieces = dict.fromkeys(["<unk>"])
    for text in texts:
        changed = normalizer.normalize_str(text) if normalizer else text
        split = pre_tokenizer.pre_tokenize_str(changed) if pre_tokenizer else [(changed, (0, 0))]
        pieces |= dict.fromkeys(piece for piece, _ in split)
    backend = tokenizers.Tokenizer(models.WordLevel({piece: n for n, piece in enumerate(pieces)}, unk_token="<unk>"))
    if normalizer:
        backend.normalizer = normalizer
    if pre_tokenizer:
        backend.pre_tokenizer = pre_tokenizer
    return Tokenizer(backend)


# --- texts ------------------------------------------------------------------------------------------------------------

# Characters that all tables know: those of the library, of this Python and of any browser.
OLD = unicodedata.ucd_3_2_0
KNOWN = [chr(n) for n in range(0x110000) if OLD.category(chr(n)) not in ("Cs", "Cn")]
ALIKE = ("CJK", "HANGUL SYLLABLE")
# Of the ideographs, the syllables of Korean and the characters for private use, which are all alike, every 50th.
EVERY_CHARACTER = [
    character
    for character in KNOWN
    if ord(character) % 50 == 0 or not (OLD.category(character) == "Co" or OLD.name(character, "").startswith(ALIKE))
]
AWKWARD = [*"aabsS '\n\t\r é0²½ß北.,!<>_-#▁\x85\xa0\u2028\u200d\ufeff\0ﬁ\u0301\u0327Σςİſ😀👩👧ع्", "<end>", "</s>", "##"]
HARD = [
    "",
    *(" ", "   ", "\n", " \n\n a\n", "\n\nb ", "x\ty", " " * 500),
    *("It's 3.14!\n\n  été ☃ 日本語", "I'LL don't I'M we've 'S 'ſ", "a_b_c __ e-mail\r\n", "( a ) [b] « c »"),
    *("<end> we'll <pad>  ", "<unk></s> <s>[CLS] [MASK]", "<|endoftext|>a", "<0xE2><0x41>", "▁▁x ▁", "##ly a##b"),
    *("مرحبا بالعالم", "北京大学 2024年", "नमस्ते दुनिया", "안녕하세요", "Ελλάς ΑΣ ΣΑΣ", "İstanbul Iı", "ŉ ǅ ﬃ ẞ"),
    *(
        "👩‍👩‍👧🎉🇫🇷",
        "e\u0301\u0327 \u0301x",
        "\u1100\u1161\u11a8",
        "ﬁ\u0301 ㍿ ｱﾞ",
        "½ ² ① Ⅷ ٣",
        "\ufeffx\ufeff",
        "\0\x01\x85\u200d\ufffd",
    ),
    *("a" * 300, "ab" * 1500, "é" * 101, "the " * 300),
]


def examples(corpus: str, count: int) -> list[Any]:
    return list(islice(built_in_corpus(corpus, size=count).read("train"), count))


@cache
def texts_to_encode() -> list[str]:
    dice = random.Random(0)
    sentences = [text for pair in examples("phrasebook", 40) for text in (pair.source, pair.target)]
    stories = [story.text for story in examples("stories", 10)]
    strange = ["".join(dice.choices(EVERY_CHARACTER, k=dice.randint(1, 40))) for _ in range(150)]
    awkward = ["".join(dice.choices(AWKWARD, k=dice.randint(1, 40))) for _ in range(150)]
    return [*HARD, *sentences, *stories, "\n".join(stories * 40)[:20_000], *strange, *awkward]


def short_texts() -> list[str]:
    """Those that are enough for a part of a tokenizer."""
    return [text for text in texts_to_encode() if len(text) < 300]


def rows_to_decode(tokenizer: Tokenizer) -> list[list[int]]:
    """Ids in any order: bytes that are no text, special tokens, pieces that belong inside a word."""
    dice = random.Random(1)
    known = sorted(tokenizer._tokens)
    return [dice.choices(known, k=dice.randint(0, 30)) for _ in range(200)]
