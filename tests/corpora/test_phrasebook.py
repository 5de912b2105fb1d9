"""The phrasebook: one French sentence for each English one, separate splits, no misspelling, the same for a seed."""

import itertools
import re
from collections import Counter
from pathlib import Path

import pytest

from clearhead.corpora.dice import Dice
from clearhead.corpora.generated import Draft, split_of
from clearhead.corpora.grammar import english, french
from clearhead.corpora.grammar.invented import with_invented_names
from clearhead.corpora.grammar.lexicon import FRENCH
from clearhead.corpora.grammar.meaning import Clause, Name, Quality
from clearhead.corpora.grammar.noun_phrases import NAMES
from clearhead.corpora.grammar.statements import placing
from clearhead.corpora.phrasebook import CORPUS, contracted, draw
from clearhead.data.examples import Pair

SAMPLE = Path(__file__).parents[2] / "docs" / "phrasebook-sample.md"
BY_HAND = Path(__file__).parent / "by_hand.tsv"
FRENCH_PLACES = {*FRENCH["city"].values(), *(name for entry in FRENCH["country"].values() for name in entry.values())}
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
    (
        "The boat that the girls sold is big but it's slow.",
        "Le bateau que les filles ont vendu est grand mais il est lent.",
    ),
    ("the king did not sell a car to his friend.", "le roi n'a pas vendu de voiture à son ami."),
    ("the queen who sees Triprong is Jigaten's sister.", "la reine qui voit Triprong est la sœur de Jigaten."),
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
    allowed = re.compile(r"I|I'm|[A-Z][a-zè]+('s)?")
    for pair in map(pair_of, drafts):
        for word in re.findall(r"[^\s,?.]+", pair.source)[1:]:
            assert word.islower() or allowed.fullmatch(word), pair.source


def test_no_forbidden_sequence_in_french(drafts: list[Draft]) -> None:
    pattern = re.compile("|".join(FORBIDDEN))
    about = re.compile(r"parl\w+ pas des")  # "il ne parle pas des idées": of the ideas
    targets = [about.sub("", uncapitalised(pair.target)) for pair in map(pair_of, drafts)]
    assert [target for target in targets if pattern.search(target)] == []


def uncapitalised(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]


def test_the_phrasebook_has_an_before_vowels_only(drafts: list[Draft]) -> None:
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
    splits = {split: {pair.target for pair in read(split, 500)} for split in CORPUS.splits}
    assert all(len(sentences) == 500 for sentences in splits.values())
    for one, other in itertools.combinations(splits.values(), 2):
        assert not one & other


def test_held_out_combinations_stay_out_of_training_but_their_words_do_not(drafts: list[Draft]) -> None:
    dice = Dice("compositional")
    words: dict[str, set[str]] = {"train": set(), "compositional": set()}
    pairs: dict[str, set[str]] = {"train": set(), "compositional": set()}
    concepts: dict[str, set[str]] = {"train": set(), "compositional": set()}
    for draft in itertools.chain(drafts, (draw(dice) for _ in range(DRAWS))):
        split = split_of(draft)
        if split not in words:
            continue
        words[split].update(known_words(draft))
        pairs[split].update(draft.combinations)
        concepts[split].update(word for combination in draft.combinations for word in combination.split())
    assert len(pairs["compositional"] - pairs["train"]) > 50
    assert concepts["compositional"] <= concepts["train"]
    assert words["compositional"] <= words["train"]


def known_words(draft: Draft) -> set[str]:
    """The English words of a sentence, without invented names (capitals of the group, which has no others)."""
    invented = set(re.findall(r"[A-Z]\w*", draft.group)) - {*NAMES, *FRENCH_PLACES}
    words = [word.removesuffix("'s") for word in re.findall(r"[^\s,?.]+", pair_of(draft).source)]
    return {uncapitalised(word) for word in words if word not in invented}


def test_a_sentence_is_written_in_several_ways_but_all_are_in_one_split(drafts: list[Draft]) -> None:
    ways: dict[str, set[str]] = {}
    splits: dict[str, set[str]] = {}
    for draft in drafts:
        ways.setdefault(draft.group, set()).add(pair_of(draft).target)
        splits.setdefault(draft.group, set()).add(split_of(draft))
    assert {len(each) for each in splits.values()} == {1}
    assert len(ways["quel âge as-tu ?"]) > 1
    assert len({draft.key for draft in drafts}) > len(ways)


@pytest.mark.parametrize(
    "shape",
    [
        r"[Hh]ow old are you\?",
        r"[Ww]here were you\b.*\?",
        r".* (saw|helped|called|met|knows?|likes?) [A-Z][a-z]+\.?",
        r"[Cc]an .+ (help|see|find) (me|you|him|her|us|them)\b.*\?",
        r"[Ww]hen (do|does) .+ arrive\?",
        r"[Ww]hat do you want to \w+\?",
        r"[Ww]here (do|does|can|must) .+ (want to )?(buy|eat|read|sleep)\b.*\?",
        r".* when .+ (called|saw|found) (me|you|him|her|us|them)\.?",
        r".*\b(my|your|our) neighbours\b.*",
        r".* in an? (small |big |old |beautiful )?(restaurant|museum|office|shop|hotel)\b.*",
        r"(I|We|You|we|you) (will|won't) \w+ the \w+\.?",
    ],
)
def test_everyday_shapes_are_not_rare(drafts: list[Draft], shape: str) -> None:
    assert sum(bool(re.fullmatch(shape, pair_of(draft).source)) for draft in drafts) >= 3


def test_invented_names_are_the_same_in_both_languages_and_almost_never_seen_before() -> None:
    def names(split: str, count: int) -> Counter[str]:
        found: Counter[str] = Counter()
        for pair in read(split, count):
            english, french = (set(re.findall(r"[A-Z][a-z]+", text)) for text in (pair.source, pair.target))
            shared = (english & french) - {*NAMES, *FRENCH_PLACES}
            found.update(name for name in shared if not pair.source.startswith(name))
        return found

    seen, new = names("train", 5000), names("test", 1000)
    assert new.total() > 20
    assert len(seen.keys() & new.keys()) < 0.1 * len(new)


def test_a_name_is_invented_only_where_the_french_does_not_depend_on_its_gender() -> None:
    happy, asleep = (Clause(Name("Anna"), "be", predicate=Quality("happy")), Clause(Name("Anna"), "sleep"))
    assert with_invented_names(Dice("names"), happy) == happy
    renamed = with_invented_names(Dice("names"), asleep)
    assert isinstance(renamed, Clause)
    assert isinstance(renamed.subject, Name)
    assert renamed.subject.name not in NAMES
    assert english.sentence(renamed) == f"{renamed.subject.name} sleeps"
    assert french.sentence(renamed) == f"{renamed.subject.name} dort"


def test_contractions_are_those_of_spoken_english() -> None:
    assert contracted("I am not happy and she is not here") == "I'm not happy and she isn't here"
    assert contracted("we are sure that he cannot swim") == "we're sure that he can't swim"
    assert contracted("there is a cat and it will not sleep") == "there's a cat and it won't sleep"


def test_the_sentences_by_hand_have_a_translation_each_and_are_different() -> None:
    rows = [line.split("\t") for line in BY_HAND.read_text(encoding="utf8").splitlines()]
    assert len(rows) >= 100
    assert all(len(row) == 2 and row[1] for row in rows)
    assert len({row[0] for row in rows}) == len(rows)


def test_the_printed_sample_is_what_the_generator_writes() -> None:
    rows = [f"| {pair.source} | {pair.target} |" for pair in read("train", 300)]
    assert [line for line in SAMPLE.read_text(encoding="utf8").splitlines() if line.startswith("| ")][1:] == rows
