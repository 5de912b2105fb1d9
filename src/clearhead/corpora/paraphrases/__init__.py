"""Pairs of sentences of equal meaning, with a hard negative: similar words, another meaning."""

from __future__ import annotations

from clearhead.corpora.dice import Dice
from clearhead.corpora.generated import Draft, GeneratedCorpus
from clearhead.corpora.grammar.templates import articles, capital
from clearhead.corpora.paraphrases.events import EVENTS
from clearhead.corpora.paraphrases.relations import RELATIONS
from clearhead.data.examples import SentencePair

PATTERNS = (*EVENTS, *EVENTS, *RELATIONS)  # events vary most, so they are drawn twice as often


def draw(dice: Dice) -> Draft:
    """Draw two wordings of one meaning and a hard negative; the key covers all three sentences."""
    paraphrases = dice.choice(PATTERNS)(dice)
    chosen = (*dice.sample(paraphrases.same, 2), dice.choice(paraphrases.other))
    first, second, negative = (articles(capital(sentence)) + "." for sentence in chosen)
    return Draft(SentencePair(first, second, 1.0, negative), paraphrases.key, paraphrases.combinations)


CORPUS = GeneratedCorpus("paraphrases", "similarity", "sentence pairs of equal meaning, with hard negatives", draw)
