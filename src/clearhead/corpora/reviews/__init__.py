"""Reviews whose sentiment follows from their structure: "anything but dull", "I wanted to like it, but".

A judgement is an adjective with an operator that keeps or inverts its polarity; a review is several judgements in a
shape that says which of them count. Positive words occur in negative reviews and negative words in positive ones, so
counting words does not give the label.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from clearhead.corpora.dice import Dice
from clearhead.corpora.generated import Draft, GeneratedCorpus
from clearhead.corpora.grammar.lexicon import ENGLISH
from clearhead.corpora.grammar.templates import fill
from clearhead.corpora.reviews.phrases import CLAUSES, SENTENCES, SHAPES, STRONG_CLAUSES, TOTALS, VERDICTS
from clearhead.data.examples import LabelledText

INVERTED = 0.45  # how often the operator of a judgement inverts its adjective
STRONG = 0.15  # how often a clause has a strong adjective ("superb", "awful"), which fits every aspect


@dataclass(frozen=True, slots=True)
class Aspect:
    """Something to judge: its words, its verb, and its negative and positive adjectives."""

    words: str
    was: str
    adjectives: tuple[tuple[str, ...], tuple[str, ...]]  # negative, positive: indexed by a bool

    def __str__(self) -> str:
        return self.words


@dataclass(frozen=True, slots=True)
class Subject:
    """A kind of thing to review, such as a film or a hotel."""

    noun: str
    opening: str
    again: str
    aspects: tuple[Aspect, ...]


@cache
def subjects() -> tuple[Subject, ...]:
    """All kinds of things to review."""
    return tuple(
        Subject(
            row["noun"],
            row["opening"] + " [last week|last month|last winter|in May|in the holidays].",
            row["again"],
            tuple(Aspect(words, was, (tuple(bad), tuple(good))) for words, was, good, bad in row["aspects"]),
        )
        for row in ENGLISH["reviews"]["subjects"]
    )


class Judgements(dict[str, object]):
    """The slots of a review; a judgement is drawn when its slot is reached, each about another aspect."""

    def __init__(self, subject: Subject, positive: bool, dice: Dice) -> None:
        super().__init__(noun=subject.noun, again=subject.again, wish="dislike" if positive else "like")
        self.subject = subject
        self.positive = positive
        self.dice = dice
        self.aspects = iter(dice.sample(subject.aspects, 3))
        self.combinations: list[str] = []

    def __missing__(self, slot: str) -> str:
        if slot in ("verdict", "total"):
            verdicts = VERDICTS if slot == "verdict" else TOTALS
            return fill(self.dice.choice(verdicts[self.positive]), self.dice, self)
        if slot == "thing":
            aspect, adjective = self._adjective(not self.positive)
            return f"the {adjective} {aspect.words.removeprefix('the ')}"
        if slot == "say":
            return self._judgement(self.positive, SENTENCES)
        assert slot in ("pro", "con"), f"no such slot: {slot}"
        positive = self.positive == (slot == "pro")
        return self._strong_clause(positive) if self.dice.chance(STRONG) else self._judgement(positive, CLAUSES)

    def _adjective(self, positive: bool) -> tuple[Aspect, str]:
        """The next aspect, and a positive or negative adjective for it."""
        aspect = next(self.aspects)
        adjective = self.dice.choice(aspect.adjectives[positive])
        self.combinations.append(f"{aspect} {adjective}")
        return aspect, adjective

    def _judgement(self, positive: bool, operators: tuple[tuple[str, ...], ...]) -> str:
        """Draw a judgement: an adjective of this polarity, or one of the other polarity that is inverted."""
        inverted = self.dice.chance(INVERTED)
        adjective_positive = positive != inverted
        aspect, adjective = self._adjective(adjective_positive)
        slots = {"it": aspect, "was": aspect.was, "adjective": adjective, **_EXPECTATION[adjective_positive]}
        return fill(self.dice.choice(operators[inverted]), self.dice, slots)

    def _strong_clause(self, positive: bool) -> str:
        """Draw a judgement with a strong adjective, which only some operators can invert."""
        inverted = self.dice.chance(INVERTED)
        aspect = next(self.aspects)
        adjective = self.dice.choice(ENGLISH["reviews"]["superb" if positive != inverted else "awful"])
        slots = {"it": aspect, "was": aspect.was, "adjective": adjective}
        return fill(self.dice.choice(STRONG_CLAUSES[inverted]), self.dice, slots)


_EXPECTATION = (  # of a negative adjective, of a positive one
    {"hoped": "feared", "promised": "warned"},
    {"hoped": "hoped", "promised": "promised"},
)


def draw(dice: Dice) -> Draft:
    """Draw a review and its label; the key is the text without the opening."""
    subject = dice.choice(subjects())
    positive = dice.chance(0.5)
    judgements = Judgements(subject, positive, dice)
    opinion = fill(dice.choice(SHAPES), dice, judgements)
    text = f"{fill(subject.opening, dice, {})} {opinion}"
    return Draft(LabelledText(text, "positive" if positive else "negative"), opinion, tuple(judgements.combinations))


CORPUS = GeneratedCorpus("reviews", "classification", "reviews with negation, contrast and others' opinions", draw)
