"""English sentences with their French: a meaning is drawn, then expressed in both languages.

The English sentence determines the French one. "You" is "tu"; I, you and we are masculine; "they" without an antecedent
is "ils". The past is the passé composé, except for states ("was", "had", "loved") and ongoing actions ("was reading"),
which are in the imperfect. Most sentences are lower-case without a final period; names keep their capital. Three in ten
are written with a capital at the beginning, a period at the end, or both, in English and in French alike. One in five
of those that can be is contracted in English ("don't", "I'm"). Some names are invented: they are to be copied.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from clearhead.corpora.dice import Dice
from clearhead.corpora.generated import Draft, GeneratedCorpus
from clearhead.corpora.grammar import compound, english, french, qualities, questions, statements
from clearhead.corpora.grammar.invented import with_invented_names
from clearhead.corpora.grammar.meaning import Sentence, combinations
from clearhead.corpora.grammar.templates import capital
from clearhead.data.examples import Pair

MIN_WORDS, MAX_WORDS = 3, 20  # of a sentence in either language
PATTERNS: tuple[tuple[Callable[[Dice], Sentence], int], ...] = (  # pattern, relative frequency
    (statements.acting, 46), (statements.speaking, 40), (statements.moving, 12), (statements.meeting, 9),
    (statements.handing, 15), (statements.placing, 10), (statements.having, 14), (statements.liking, 4),
    (statements.wishing, 16), (qualities.quality, 18), (qualities.quality_of_agent, 9), (qualities.comparison, 7),
    (qualities.where_it_is, 10), (qualities.there_is, 9), (qualities.profession, 2), (qualities.age, 1),
    (qualities.presentation, 2), (qualities.weather, 2), (questions.asking, 44), (compound.because_of_feeling, 4),
    (compound.because_of_thing, 6), (compound.and_therefore, 7), (compound.but_also, 3),
    (compound.but_tastes_differ, 4), (compound.when_interrupted, 7), (compound.when_it_happens, 7),
    (compound.if_it_rains, 4), (compound.side_by_side, 30), (statements.identity, 10), (statements.agent_acting, 9),
    (statements.knowing, 9), (statements.presenting, 3),
)  # fmt: skip
INVENTED = 0.5  # of the sentences with names whose French does not depend on the gender of the name
CONTRACTIONS = (
    *((f"{verb} not", f"{verb}n't") for verb in ("do", "does", "did", "is", "are", "was", "were")),
    ("cannot", "can't"),
    ("will not", "won't"),
    ("I am", "I'm"),
    *((f"{word} is", f"{word}'s") for word in ("he", "she", "it", "there")),
    *((f"{word} are", f"{word}'re") for word in ("you", "we", "they")),
)
DECK = tuple(pattern for pattern, frequency in PATTERNS for _ in range(frequency))


def draw(dice: Dice, invented: float = INVENTED) -> Draft:
    """Draw a sentence in English and French, of 3 to 20 words in both; `invented`: how often its names are invented."""
    while True:
        meaning = dice.choice(DECK)(dice)
        if dice.chance(invented):
            meaning = with_invented_names(dice, meaning)
        source, target = english.sentence(meaning), french.sentence(meaning)
        if fits(source) and fits(target):
            pair = as_written(dice, source, target)
            return Draft(pair, pair.target, combinations(meaning), target)


def as_written(dice: Dice, source: str, target: str) -> Pair:
    """Add capital and period: both in two of ten sentences, only the period or only the capital in one each.

    One in five has its English contracted ("don't"); where a comma is free, three of ten do without it.
    """
    style = dice.below(10)
    if dice.chance(0.2) and fits(shorter := contracted(source)):
        source = shorter
    if dice.chance(0.3) and not source.startswith(("when ", "if ")):
        source, target = source.replace(",", ""), target.replace(",", "")
    period = "." if style in (0, 1, 2) and not source.endswith("?") else ""
    named = source[0].isupper()  # a name or "I": only the period can show whether the French is capitalised
    capitalised = bool(period) if named else style in (0, 1, 3)
    return Pair(*((capital(text) if capitalised else text) + period for text in (source, target)))


def contracted(source: str) -> str:
    """English as it is spoken: "I'm", "she doesn't", "there's"."""
    for apart, together in CONTRACTIONS:
        source = re.sub(rf"\b{apart}\b", together, source)
    return source


def fits(sentence: str) -> bool:
    """Whether a sentence has 3 to 20 words."""
    return MIN_WORDS - 1 <= sentence.count(" ") - sentence.endswith(" ?") < MAX_WORDS


CORPUS = GeneratedCorpus("phrasebook", "translation", "English sentences and their French", draw)
