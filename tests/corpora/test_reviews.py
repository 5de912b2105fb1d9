"""Reviews mean what their label says, and counting their words does not give the label."""

from __future__ import annotations

import collections
import dataclasses
import math
import re
from collections.abc import Iterator

from clearhead.corpora import reviews
from clearhead.corpora.catalogue import built_in_corpus
from clearhead.corpora.dice import Dice
from clearhead.data.examples import LabelledText


def drawn_reviews(count: int) -> Iterator[LabelledText]:
    dice = Dice("tests of reviews")
    for _ in range(count):
        example = reviews.draw(dice).example
        assert isinstance(example, LabelledText)
        yield example


# the sentiment of sentences, labelled by hand
READINGS = {
    r"I would gladly [a-z ]+\.": "positive",
    r"I would [a-z ]+ any time\.": "positive",
    r"I would never [a-z ]+\.": "negative",
    r"I would rather wait ten years": "negative",
    r"I cannot wait to": "positive",
    r"I cannot recommend this [a-z]+ enough": "positive",
    r"I cannot recommend this [a-z]+\.": "negative",
    r"I recommend this [a-z]+ to nobody": "negative",
    r"I recommend this [a-z]+ to anybody": "positive",
    r"worth every penny": "positive",
    r"not worth a penny": "negative",
    r"I regret every minute": "negative",
    r"I do not regret a minute": "positive",
    r"I wish I had never heard of it": "negative",
    r"I wish I had heard of it sooner": "positive",
    r"I was disappointed": "negative",
    r"I was not disappointed": "positive",
    r"I was not happy": "negative",
    r"much better than I had feared": "positive",
    r"much worse than I had hoped": "negative",
    r"no better than I had feared": "negative",
    r"no worse than the best": "positive",
    r"\? (Never|I doubt it|Certainly not)\.": "negative",
    r"\? (Any time|No doubt|Certainly)\.": "positive",
    r"I expected little and got a lot": "positive",
    r"I expected a lot and got little": "negative",
    r"I wanted to like this [a-z]+, but": "negative",
    r"I wanted to dislike this [a-z]+, but": "positive",
    r"never known a better": "positive",
    r"never known a worse": "negative",
    r"nothing but praise": "positive",
    r"nothing but complaints": "negative",
    r"nothing to complain about": "positive",
    r"nothing to praise": "negative",
    r"I do not want my money back": "positive",
    r"I want my money back": "negative",
    r"Everybody else likes": "negative",
    r"Everybody else dislikes": "positive",
    r"No other [a-z]+ would have been better": "positive",
    r"Any other [a-z]+ would have been better": "negative",
}


def test_reviews_mean_what_their_label_says() -> None:
    met = collections.Counter[str]()
    for review in drawn_reviews(8000):
        for reading, label in READINGS.items():
            if re.search(reading, review.text):
                assert review.label == label, review.text
                met[reading] += 1
    assert set(met) == set(READINGS)


def opinion_of(clause: str) -> bool:
    """Whether a clause is positive: the polarity of its adjective, inverted by a negation."""
    good, bad = set(reviews.WORDS["superb"]), set(reviews.WORDS["awful"])
    for subject in reviews.WORDS["subjects"]:
        for words, _, pleasant, unpleasant in subject["aspects"]:
            if words in clause.lower():
                good |= set(pleasant)
                bad |= set(unpleasant)
    found = [word for word in re.findall(r"[a-z]+", clause.lower()) if word in good | bad]
    assert len(found) == 1, clause
    plain = re.sub(r"nothing if not|nobody could deny", "", clause, flags=re.IGNORECASE)
    negative = r"anything but|far from|\bnot\b|by no means|nowhere near|nobody could call"
    return (found[0] in good) != bool(re.search(negative, plain, re.IGNORECASE))


def test_what_counts_in_a_review_decides_its_label() -> None:
    met = collections.Counter[str]()
    for review in drawn_reviews(6000):
        counts = re.search(
            r"\. ([^.]+), (?:but|and) ([^.]+), and (?:that is (?:what counts|all that matters)|nothing else matters)",
            review.text,
        )
        if counts and not counts[1].startswith(("Although", "Even though", "While")):
            assert opinion_of(counts[2]) == (review.label == "positive") != opinion_of(counts[1]), review.text
            met[review.label] += 1
        despite = re.search(r"Despite (?:[^,]+), ([^.]+)\.", review.text)
        if despite:
            assert opinion_of(despite[1]) == (review.label == "positive"), review.text
            met["despite"] += 1
    assert min(met.values()) > 80


def test_a_bag_of_words_cannot_tell_the_labels() -> None:
    corpus = dataclasses.replace(built_in_corpus("reviews"), size=4000)
    counts = {label: collections.Counter[str]() for label in ("positive", "negative")}
    sizes = collections.Counter[str]()
    for review in corpus.read("train"):
        assert isinstance(review, LabelledText)
        counts[review.label].update(set(review.text.lower().split()))
        sizes[review.label] += 1
    assert 0.45 < sizes["positive"] / 4000 < 0.55

    def guess(text: str) -> str:
        def evidence(label: str) -> float:
            words = set(text.lower().split())
            return sum(math.log((counts[label][word] + 0.5) / (sizes[label] + 1)) for word in words)

        return max(counts, key=evidence)

    tests = [review for review in corpus.read("test") if isinstance(review, LabelledText)]
    accuracy = sum(guess(review.text) == review.label for review in tests) / len(tests)
    assert 0.5 < accuracy < 0.85
