"""English sentences with their French: a meaning is drawn, then expressed in both languages.

The English sentence determines the French one. "You" is "tu"; I, you and we are masculine; "they" without an antecedent
is "ils". The past is the passé composé, except for states ("was", "had", "loved") and ongoing actions ("was reading"),
which are in the imperfect. Most sentences are lower-case without a final period; names keep their capital. Three in ten
are written with a capital at the beginning, a period at the end, or both, in English and in French alike.
"""

from __future__ import annotations

from collections.abc import Callable

from clearhead.corpora.dice import Dice, hash_of
from clearhead.corpora.generated import Draft, GeneratedCorpus
from clearhead.corpora.grammar import english, french
from clearhead.corpora.grammar.compound import (
    and_therefore,
    because_of_feeling,
    because_of_thing,
    but_also,
    but_tastes_differ,
    if_it_rains,
    when_interrupted,
    when_it_happens,
)
from clearhead.corpora.grammar.meaning import Sentence, combinations
from clearhead.corpora.grammar.qualities import (
    age,
    comparison,
    presentation,
    profession,
    quality,
    quality_of_agent,
    there_is,
    weather,
    where_it_is,
)
from clearhead.corpora.grammar.questions import asking
from clearhead.corpora.grammar.statements import acting, handing, having, liking, meeting, moving, placing, wishing
from clearhead.corpora.grammar.templates import capital
from clearhead.data.examples import Pair

SHORTEST = 3  # words of a sentence in either language
LONGEST = 20
PATTERNS: tuple[tuple[Callable[[Dice], Sentence], int], ...] = (  # pattern, relative frequency
    (acting, 54), (moving, 13), (meeting, 9), (handing, 17), (placing, 12), (having, 12), (liking, 4), (wishing, 16),
    (quality, 20), (quality_of_agent, 7), (comparison, 4), (where_it_is, 9), (there_is, 12), (profession, 2), (age, 1),
    (presentation, 2), (weather, 1), (asking, 30), (because_of_feeling, 5), (because_of_thing, 8), (and_therefore, 8),
    (but_also, 4), (but_tastes_differ, 6), (when_interrupted, 9), (when_it_happens, 9), (if_it_rains, 5),
)  # fmt: skip
DECK = tuple(pattern for pattern, frequency in PATTERNS for _ in range(frequency))


def draw(dice: Dice) -> Draft:
    """Draw a sentence in English and French, of 3 to 20 words in both."""
    while True:
        meaning = dice.choice(DECK)(dice)
        source, target = english.sentence(meaning), french.sentence(meaning)
        if fits(source) and fits(target):
            return Draft(as_written(source, target), target, combinations(meaning))


def as_written(source: str, target: str) -> Pair:
    """Add capital and period: both in two of ten sentences, only the period or only the capital in one each."""
    style = hash_of(f"style of {target}") % 10
    period = "." if style in (0, 1, 2) and not source.endswith("?") else ""
    named = source[0].isupper()  # a name or "I": only the period can show whether the French is capitalised
    capitalised = bool(period) if named else style in (0, 1, 3)
    return Pair(*((capital(text) if capitalised else text) + period for text in (source, target)))


def fits(sentence: str) -> bool:
    """Whether a sentence has 3 to 20 words."""
    return SHORTEST - 1 <= sentence.count(" ") - sentence.endswith(" ?") < LONGEST


CORPUS = GeneratedCorpus("phrasebook", "translation", "English sentences and their French", draw)
