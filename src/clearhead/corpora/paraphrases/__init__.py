"""Pairs of sentences that say the same in other words, and a third that looks the same and says something else."""

from __future__ import annotations

from clearhead.corpora.dice import Dice
from clearhead.corpora.generated import Draft, GeneratedCorpus
from clearhead.corpora.grammar.templates import articles, capital
from clearhead.corpora.paraphrases.events import EVENTS
from clearhead.corpora.paraphrases.relations import RELATIONS
from clearhead.data.examples import SentencePair

PATTERNS = (*EVENTS, *EVENTS, *RELATIONS)  # events are the richest: twice as often


def draw(dice: Dice) -> Draft:
    """Two wordings of one meaning and a hard negative; all that one example says shares a key, the negative too."""
    matter = dice.choice(PATTERNS)(dice)
    chosen = (*dice.sample(matter.same, 2), dice.choice(matter.other))
    first, second, negative = (articles(capital(sentence)) + "." for sentence in chosen)
    return Draft(SentencePair(first, second, 1.0, negative), matter.key, matter.combinations)


CORPUS = GeneratedCorpus("paraphrases", "similarity", "sentence pairs of equal meaning, with hard negatives", draw)
