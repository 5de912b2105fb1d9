"""The phrasebook: one French sentence for each English one, separate splits, no misspelling, the same for a seed."""

import itertools
import re
from collections import Counter
from pathlib import Path

import pytest

from clearhead.corpora.dice import Dice
from clearhead.corpora.generated import Draft, split_of
from clearhead.corpora.grammar import french
from clearhead.corpora.grammar.statements import placing
from clearhead.corpora.phrasebook import CORPUS, draw
from clearhead.data.examples import Pair

SAMPLE = Path(__file__).parents[2] / "docs" / "phrasebook-sample.md"
DRAWS = 20_000
VOWEL = "[aeiouyâàéèêîôûœAEIOU]"
FORBIDDEN = (
    rf"\b(le|la|je|me|te|se|ne|de|que|ce|ma|ta|sa) {VOWEL}",  # elision, cet, mon
    r"\b(le|la|je|me|te|se|ne|de|que) (homme|horloge|hôtel|hôpital|heure|histoire|habit)",
    r"\b(du|au) (?=[aeiouâéèêîôœ]|homme|hôtel|hôpital)",  # de l'arbre, à l'hôtel
    r"[ld]'(hibou|hérisson)",
    r"\b(à|de) les? (?!onze)",
    r"\bsi ils?\b",
    r"\bde des\b|\bde du\b|(?<!est )(?<!sont )pas (un|une|des) ",  # pas de
    r"\b(un|le|ce|mon|ton|son|notre|leur) (beau|nouveau|vieux) [aeiouâéèêîôœ]",  # bel, nouvel, vieil
)


def pair_of(draft: Draft) -> Pair:
    assert isinstance(draft.example, Pair)
    return draft.example


def read(split: str, count: int) -> list[Pair]:
    return [pair for pair in itertools.islice(CORPUS.read(split), count) if isinstance(pair, Pair)]


@pytest.fixture(scope="module")
def drafts() -> list[Draft]:
    dice = Dice("phrasebook test")
    return [draw(dice) for _ in range(DRAWS)]


def test_the_first_sentences_never_change() -> None:
    first = [(pair.source, pair.target) for pair in read("train", 3)]
    assert first == FIRST


FIRST = [
    ("my grandfather slept well.", "mon grand-père a bien dormi."),
    ("He does not love his brother.", "Il n'aime pas son frère."),
    ("there are some white skirts under the black chair", "il y a des jupes blanches sous la chaise noire"),
]


def test_the_french_is_a_function_of_the_english(drafts: list[Draft]) -> None:
    translations: dict[str, str] = {}
    for pair in map(pair_of, drafts):
        assert translations.setdefault(pair.source, pair.target) == pair.target


def test_sentences_have_3_to_20_words_and_single_spaces(drafts: list[Draft]) -> None:
    for pair in map(pair_of, drafts):
        for sentence in (pair.source, pair.target):
            assert 3 <= len(sentence.removesuffix("?").split()) <= 20, sentence
            assert " ".join(sentence.split()) == sentence


def test_three_in_ten_are_written_with_a_capital_or_a_period_and_so_is_their_french(drafts: list[Draft]) -> None:
    styles: Counter[tuple[bool, bool]] = Counter()
    for pair in map(pair_of, drafts):
        assert pair.source.endswith(".") == pair.target.endswith("."), pair
        assert pair.source[0].isupper() or pair.target[0].islower(), pair
        if pair.source[0].islower() or pair.source.split()[0] in ("The", "My", "She"):
            styles[pair.source[0].isupper(), pair.source.endswith(".")] += 1
    shares = {style: count / styles.total() for style, count in styles.items()}
    assert shares.keys() == {(capital, period) for capital in (False, True) for period in (False, True)}
    assert 0.6 < shares[False, False] < 0.9


def test_within_a_sentence_only_names_have_a_capital(drafts: list[Draft]) -> None:
    allowed = re.compile(r"I|[A-Z][a-zè]+('s)?")
    for pair in map(pair_of, drafts):
        for word in re.findall(r"[^\s,?.]+", pair.source)[1:]:
            assert word.islower() or allowed.fullmatch(word), pair.source


def test_no_forbidden_sequence_in_french(drafts: list[Draft]) -> None:
    pattern = re.compile("|".join(FORBIDDEN))
    assert [pair.target for pair in map(pair_of, drafts) if pattern.search(uncapitalised(pair.target))] == []


def uncapitalised(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]


def test_a_and_an(drafts: list[Draft]) -> None:
    wrong = re.compile(r"\b[Aa] [aeiouAEIOU]|\b[Aa]n (?!hour)[^aeiouAEIOU]")
    assert [pair.source for pair in map(pair_of, drafts) if wrong.search(pair.source)] == []


def test_there_are_millions_of_sentences() -> None:
    """One pattern alone: of n draws from N equally likely ones n²/2N pairs agree; unequal chances only make more."""
    dice = Dice("birthday")
    counts = Counter(french.sentence(placing(dice)) for _ in range(DRAWS))
    agreeing = sum(count * (count - 1) // 2 for count in counts.values())
    assert DRAWS**2 / 2 / max(agreeing, 1) > 2_000_000


def test_few_draws_repeat(drafts: list[Draft]) -> None:
    assert len({draft.key for draft in drafts}) > 0.97 * DRAWS


def test_splits_share_no_sentence() -> None:
    splits = {split: {pair.target for pair in read(split, 1000)} for split in CORPUS.splits}
    assert all(len(sentences) == 1000 for sentences in splits.values())
    for one, other in itertools.combinations(splits.values(), 2):
        assert not one & other


def test_held_out_combinations_stay_out_of_training_but_their_words_do_not() -> None:
    dice = Dice("compositional")
    words: dict[str, set[str]] = {"train": set(), "compositional": set()}
    pairs: dict[str, set[str]] = {"train": set(), "compositional": set()}
    concepts: dict[str, set[str]] = {"train": set(), "compositional": set()}
    for _ in range(2 * DRAWS):
        draft = draw(dice)
        split = split_of(draft)
        if split not in words:
            continue
        words[split].update(re.findall(r"[^\s,?.]+", uncapitalised(pair_of(draft).source)))
        pairs[split].update(draft.combinations)
        concepts[split].update(word for combination in draft.combinations for word in combination.split())
    assert len(pairs["compositional"] - pairs["train"]) > 50
    assert concepts["compositional"] <= concepts["train"]
    assert words["compositional"] <= words["train"]


def test_the_printed_sample_is_what_the_generator_writes() -> None:
    rows = [f"| {pair.source} | {pair.target} |" for pair in read("train", 300)]
    assert [line for line in SAMPLE.read_text(encoding="utf8").splitlines() if line.startswith("| ")][1:] == rows
