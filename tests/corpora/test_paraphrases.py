"""Paraphrases have equal meaning and hard negatives do not: sentences are parsed back into who, what and whom."""

from __future__ import annotations

import collections
import re
from collections.abc import Iterator

from clearhead.corpora import paraphrases
from clearhead.corpora.dice import Dice
from clearhead.corpora.paraphrases import PATTERNS
from clearhead.data.examples import SentencePair

Meaning = tuple[str, ...]

# synonyms become one word; opposites become one word with the roles swapped
SYNONYMS = {
    "little": "small",
    "large": "big",
    "lovely": "beautiful",
    "movie": "film",
    "quick": "fast",
    "costly": "expensive",
}
SYNONYMS |= {word: concept for concept, word in paraphrases.WORDS["word"].items()}
OPPOSITES = {
    "smaller": "bigger", "newer": "older", "slower": "faster", "lighter": "heavier", "cheaper": "more expensive",
    "weaker": "stronger", "sadder": "happier", "ruder": "politer", "dirtier": "cleaner", "easier": "more difficult",
    "noisier": "quieter", "uglier": "more beautiful", "duller": "more interesting", "more fearful": "braver",
}  # fmt: skip
COMPARATIVE = r"((?:more )?[a-z]+)"


def drawn(count: int) -> Iterator[SentencePair]:
    dice = Dice("tests of paraphrases")
    for _ in range(count):
        example = paraphrases.draw(dice).example
        assert isinstance(example, SentencePair)
        yield example


OPENINGS = ("The", "It", "My", "Our", "Your", "Of", "Compared")


def plain(sentence: str) -> str:
    """The sentence without capital and full stop, each word replaced by its synonym."""
    sentence = sentence[0].lower() + sentence[1:-1] if sentence.startswith(OPENINGS) else sentence[:-1]
    return re.sub(r"[\w-]+", lambda match: SYNONYMS.get(match[0], match[0]), sentence)


def read_comparison(sentence: str) -> Meaning | None:
    """Who is bigger than whom, in one direction."""
    text = plain(sentence)
    if match := re.fullmatch(rf"(.+) (?:is|was) {COMPARATIVE} than (.+)", text):
        more, word, less = match[1], match[2], match[3]
    elif match := re.fullmatch(rf"compared with (.+), (.+) (?:is|was) {COMPARATIVE}", text):
        more, word, less = match[2], match[3], match[1]
    elif match := re.fullmatch(rf"of (.+) and (.+), (.+) (?:is|was) the {COMPARATIVE} one", text):
        more, word, less = match[3], match[4], match[2] if match[3] == match[1] else match[1]
    else:
        return None
    if word == "shorter":  # of things and of people
        return less, "longer or taller", more
    if word in ("longer", "taller"):
        word = "longer or taller"
    bigger = OPPOSITES.get(word)
    return (less, bigger, more) if bigger else (more, word if word != "bigger" else "bigger", less)


def read_transfer(sentence: str) -> Meaning | None:
    """Who lends what to whom."""
    text = re.sub(r"^it (?:is|was) (.+) that (.+ (?:borrow|borrowed)) ", r"\2 \1 ", plain(sentence))
    text = text.replace("will be lent", "was lent").replace("will lend", "lent").replace("will borrow", "borrowed")
    if match := re.fullmatch(r"(.+) borrowed (.+) from (.+)", text):
        return match[3], match[2], match[1]
    if match := re.fullmatch(r"(.+) was lent to (.+) by (.+)", text):
        return match[3], match[1], match[2]
    if match := re.fullmatch(r"(.+) lent (the .+) to (.+)", text):
        return match[1], match[2], match[3]
    if match := re.fullmatch(r"(.+) lent (the .+?|[A-Z]\w+) (the .+)", text):
        return match[1], match[3], match[2]
    return None


def read_help(sentence: str) -> Meaning | None:
    """Who helps whom, negation and tense."""
    text = re.sub(r"assist(ed)?", lambda m: "help" + (m[1] or ""), plain(sentence))
    no = "not" if " not " in text else ""
    future = "will" if " will " in text else ""
    text = re.sub(r" did not | will not be | will not | not | will be | will ", " ", text)
    if match := re.fullmatch(r"it (?:is|was) (.+) who help(?:ed)? (.+)", text):
        return match[1], match[2], no, future
    if match := re.fullmatch(r"it (?:is|was) (.+) that (.+) help(?:ed)?", text):
        return match[2], match[1], no, future
    if match := re.fullmatch(r"(.+?)(?: was)? helped by (.+)", text):
        return match[2], match[1], no, future
    if match := re.fullmatch(r"(.+) help(?:ed)? (.+)", text):
        return match[1], match[2], no, future
    return None


TIMES = [time for pair in paraphrases.WORDS["times"] for time in pair]


def test_comparisons_are_read_back() -> None:
    met = 0
    for pair in drawn(5000):
        if " than " in pair.first or "ompared with" in pair.first:
            first, second, negative = (read_comparison(text) for text in (pair.first, pair.second, pair.negative))
            assert first == second != negative, pair
            assert first is not None
            assert negative is not None
            assert sorted(first) == sorted(negative), pair
            met += 1
    assert met > 200


def test_lending_and_borrowing_are_read_back() -> None:
    met = 0
    for pair in drawn(8000):
        if re.search(r"\b(lent|lend|borrow|borrowed)\b", pair.first):
            meanings = [read_transfer(text) for text in (pair.first, pair.second, pair.negative)]
            cut = [_without_time(meaning) for meaning in meanings]
            assert cut[0] == cut[1] != cut[2], (pair, meanings)
            assert sorted(cut[0]) == sorted(cut[2])
            met += 1
    assert met > 100


def _without_time(meaning: Meaning | None) -> Meaning:
    assert meaning is not None
    return tuple(re.sub(f" ({'|'.join(TIMES)})$", "", part) for part in meaning)


def test_actives_passives_and_clefts_are_read_back() -> None:
    met = collections.Counter[str]()
    dice = Dice("help")
    for drawn_set in (PATTERNS[0](dice) for _ in range(12_000)):
        if not drawn_set.key.startswith("deed help"):
            continue
        meanings = {read_help(_timeless(text)) for text in drawn_set.same}
        others = {read_help(_timeless(text)) for text in drawn_set.other}
        assert len(meanings) == len(others) == 1, drawn_set
        (one,), (other,) = meanings, others
        assert one != other
        assert one is not None
        assert other is not None
        met["swapped" if one[:2] == other[1::-1] else "negated" if one[2] != other[2] else "later"] += 1
    assert set(met) == {"swapped", "negated", "later"}
    assert min(met.values()) > 15


def _timeless(text: str) -> str:
    """A sentence without the time, finished with capital and full stop."""
    times = "|".join(TIMES)
    text = re.sub(rf"^({times}), | ({times})$", "", text)
    return text[0].upper() + text[1:] + "."


def test_the_negative_is_never_a_paraphrase_and_looks_like_one() -> None:
    dice = Dice("matters")
    for pattern in dict.fromkeys(PATTERNS):
        overlap = 0.0
        for _ in range(400):
            found = pattern(dice)
            assert not set(found.same) & set(found.other), found
            assert len(set(found.same)) >= 2
            words, others = set(found.same[0].split()), set(found.other[0].split())
            overlap += len(words & others) / len(words | others) / 400
        assert overlap > 0.4, pattern.__name__


def test_pairs_are_pairs() -> None:
    for pair in drawn(3000):
        assert len({pair.first, pair.second, pair.negative}) == 3, pair
        assert pair.score == 1.0
