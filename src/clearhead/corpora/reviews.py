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
from clearhead.corpora.grammar.lexicon import read_lexicon
from clearhead.corpora.grammar.templates import fill
from clearhead.data.examples import LabelledText

WORDS = read_lexicon("reviews")
LABELS = ("negative", "positive")  # indexed by a bool, as are the other pairs
OPERATORS = ("kept", "inverted")
STRONG_ADJECTIVES = ("awful", "superb")
EXPECTATIONS = ({"hoped": "feared", "promised": "warned"}, {"hoped": "hoped", "promised": "promised"})
INVERTED = 0.45  # how often the operator of a judgement inverts its adjective
STRONG = 0.15  # how often a clause has a strong adjective ("superb", "awful"), which fits every aspect


@dataclass(frozen=True, slots=True)
class Aspect:
    """Something to judge: its words, its verb, and its negative and positive adjectives."""

    words: str
    was: str
    adjectives: tuple[list[str], list[str]]  # negative, positive: indexed by a bool

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
            tuple(Aspect(words, was, (bad, good)) for words, was, good, bad in row["aspects"]),
        )
        for row in WORDS["subjects"]
    )


class Judgements(dict[str, object]):
    """The slots of a review; a judgement is drawn when its slot is reached, each about another aspect."""

    def __init__(self, subject: Subject, positive: bool, dice: Dice) -> None:
        super().__init__(noun=subject.noun, again=subject.again, wish="dislike" if positive else "like")
        self.positive = positive
        self.dice = dice
        self.aspects = iter(dice.sample(subject.aspects, 3))
        self.combinations: list[str] = []

    def __missing__(self, slot: str) -> str:
        if slot in ("verdict", "total"):
            return fill(self.dice.choice(WORDS[f"{slot}s"][LABELS[self.positive]]), self.dice, self)
        if slot == "thing":
            aspect, adjective = self._adjective(not self.positive)
            return f"the {adjective} {aspect.words.removeprefix('the ')}"
        if slot == "say":
            return self._judgement(self.positive, "sentences")
        assert slot in ("pro", "con"), f"no such slot: {slot}"
        positive = self.positive == (slot == "pro")
        return self._judgement(positive, "strong_clauses" if self.dice.chance(STRONG) else "clauses")

    def _judgement(self, positive: bool, kind: str) -> str:
        """Draw a judgement: an adjective of this polarity, or one of the other polarity that is inverted."""
        inverted = self.dice.chance(INVERTED)
        of_adjective = positive != inverted
        aspect, adjective = self._adjective(of_adjective, strong=kind == "strong_clauses")
        slots = {"it": aspect, "was": aspect.was, "adjective": adjective, **EXPECTATIONS[of_adjective]}
        return fill(self.dice.choice(WORDS[kind][OPERATORS[inverted]]), self.dice, slots)

    def _adjective(self, positive: bool, strong: bool = False) -> tuple[Aspect, str]:
        """The next aspect, and an adjective for it; a strong one fits every aspect and is no combination with it."""
        aspect = next(self.aspects)
        if strong:
            return aspect, self.dice.choice(WORDS[STRONG_ADJECTIVES[positive]])
        adjective = self.dice.choice(aspect.adjectives[positive])
        self.combinations.append(f"{aspect} {adjective}")
        return aspect, adjective


def draw(dice: Dice) -> Draft:
    """Draw a review and its label; the key is the text without the opening."""
    subject = dice.choice(subjects())
    positive = dice.chance(0.5)
    judgements = Judgements(subject, positive, dice)
    opinion = fill(dice.choice(WORDS["shapes"]), dice, judgements)
    text = f"{fill(subject.opening, dice, {})} {opinion}"
    return Draft(LabelledText(text, LABELS[positive]), opinion, tuple(judgements.combinations))


CORPUS = GeneratedCorpus("reviews", "classification", "reviews with negation, contrast and others' opinions", draw)
