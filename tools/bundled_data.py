"""Write the training data of the translator that comes with clearhead: `make model` calls this.

    python tools/bundled_data.py data/tatoeba-en-fr build/tatoeba-en-fr

Tatoeba's pairs; a quarter of them again as people type, without capital and final mark; pairs with Tom or Mary again
with other names, real and invented; and pairs of the phrasebook. valid and test stay as they are.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from clearhead.config import DataConfig, UserError
from clearhead.corpora.catalogue import built_in_corpus
from clearhead.corpora.dice import Dice
from clearhead.corpora.grammar.invented import invent
from clearhead.corpora.grammar.templates import capital
from clearhead.data.examples import Pair
from clearhead.data.sources import open_corpus

NAMES = re.findall(
    r"\w+",
    "Ali Alice Anna Ben Betty Bill Bob Carlos Carol Chen Clara Daniel David Elena Emma Eva Fatima Frank Fred George "
    "Ivan Jack James Jane Julia Karen Kate Kevin Laura Leo Linda Lisa Lucas Lucy Maria Martin Max Michael Miguel Nancy "
    "Nina Olga Oliver Omar Paul Peter Priya Ravi Robert Rosa Sam Sarah Simon Sofia Steven Susan Thomas Victor Yuki",
)
REPLACED = ("Tom", "Mary")
VOWELS = tuple("AEIOUYH")  # before which "de" and "que" lose their e
ELIDED = re.compile(r"\b(?:de|que|jusque|lorsque|puisque) (?:Tom|Mary)\b")
KEEPS_CAPITAL = re.compile(r"I\b|(?:Tom|Mary)\b|[A-Z]\w*(?:'s)? (?:is|was|has)\b")
NO_NAME = re.compile(r"(?:This|That|It|He|She|There|What|Where|Who|Here)\b")
RENAMED = 0.6  # part of the pairs with Tom or Mary that come again with another name
REAL = 0.4  # part of the other names that are real
PLAIN = 0.25  # part of the pairs that come again without capital and final mark
PHRASES = 60_000
PUNCTUATED = 0.3  # part of the phrases that get a capital and a full stop


def renamed(pairs: list[Pair], dice: Dice) -> Iterator[Pair]:
    """Pairs with another name instead of Tom or Mary, where French does not need another word before it."""
    for pair in pairs:
        known = next((name for name in REPLACED if all(has_word(text, name) for text in sides(pair))), "")
        if known and dice.chance(RENAMED):
            name = dice.choice(NAMES) if dice.chance(REAL) else invent(dice)
            if not (name.startswith(VOWELS) and ELIDED.search(pair.target)):
                yield Pair(*(re.sub(rf"\b{known}\b", name, text) for text in sides(pair)))


def sides(pair: Pair) -> tuple[str, str]:
    """Source and target."""
    return pair.source, pair.target


def has_word(text: str, word: str) -> bool:
    """Whether a word occurs in a text."""
    return re.search(rf"\b{word}\b", text) is not None


def plain(text: str) -> str:
    """A sentence as people type it: no final mark, and no capital unless it may be that of a name."""
    text = re.sub(r"\s*[.!?]+$", "", text)
    named = KEEPS_CAPITAL.match(text) and not NO_NAME.match(text)
    return text if named else text[:1].lower() + text[1:]


def phrases(dice: Dice) -> Iterator[Pair]:
    """Pairs of the phrasebook, some of the statements with a capital and a full stop."""
    for pair in built_in_corpus("phrasebook", PHRASES).read("train"):
        assert isinstance(pair, Pair)
        statement = pair.source[-1] not in ".?!"
        written = statement and dice.chance(PUNCTUATED)
        yield Pair(*(f"{capital(text)}." for text in sides(pair))) if written else pair


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit("usage: python tools/bundled_data.py CORPUS FOLDER")
    source, folder = map(Path, sys.argv[1:])
    try:
        corpus = open_corpus(DataConfig(path=str(source), source="en", target="fr"))
    except UserError as error:
        sys.exit(f"{error} (make model DATA=FOLDER)")
    dice = Dice("box")
    splits = {name: [pair for pair in corpus.read(name) if isinstance(pair, Pair)] for name in corpus.splits}
    train = splits["train"]
    one_sentence = [pair for pair in train if "." not in pair.source[:-1]]
    copies = [Pair(*map(plain, sides(pair))) for pair in one_sentence if dice.chance(PLAIN)]
    splits["train"] = [*train, *renamed(train, dice), *copies, *phrases(dice)]
    folder.mkdir(parents=True, exist_ok=True)
    for name, pairs in splits.items():
        print(f"{name}: {len(pairs):,} pairs")
        for side, number in (("en", 0), ("fr", 1)):
            lines = (f"{sides(pair)[number]}\n" for pair in pairs)
            (folder / f"{name}.{side}").write_text("".join(lines), encoding="utf8")


if __name__ == "__main__":
    main()
