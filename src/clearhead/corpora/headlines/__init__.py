"""Local news: a paragraph, and its headline.

The headline has to be worked out from the facts: goals are added, bids compared, votes counted. Unrelated sentences are
mixed into the paragraph.
"""

from __future__ import annotations

from clearhead.corpora.dice import Dice
from clearhead.corpora.generated import Draft, GeneratedCorpus
from clearhead.corpora.grammar.lexicon import read_lexicon
from clearhead.corpora.grammar.templates import articles, capital, fill
from clearhead.corpora.headlines.comparisons import COMPARISONS
from clearhead.corpora.headlines.incidents import INCIDENTS
from clearhead.corpora.headlines.news import News, draw_person
from clearhead.data.examples import Pair

UNRELATED = (
    "The weather was [mild|fine|grey|cold for the season|better than expected].",
    "Photographs can be seen in the window of our office.",
    "Next week we shall report on the {fair} in {elsewhere}.",
    '"[What a day|I have never seen anything like it|Nobody will believe me]!" said {witness}, {age}.',
    "{witness} of {elsewhere} [had come by bicycle|heard of it on the radio|happened to be there].",
    "[Tea and cake were served|The town band played] [at noon|in the afternoon].",
    "A similar story reached us from {elsewhere} {years} years ago.",
    "{witness}, {age}, [wrote a poem about it|was not impressed|took {count} photographs].",
)


def draw(dice: Dice) -> Draft:
    """Draw a paragraph and its headline; the key is the facts, without the wording and the unrelated sentences."""
    news = dice.choice((*COMPARISONS, *INCIDENTS))(dice)
    sentences = [fill(template, dice, news.facts) for template in news.body]
    fitting = UNRELATED[1:] if news.topic == "weather" else UNRELATED
    for template in dice.sample(fitting, dice.between(0, 3)):
        sentences.insert(dice.between(1, len(sentences)), fill(template, dice, _unrelated_facts(news, dice)))
    paragraph = articles(" ".join(capital(sentence) for sentence in sentences))
    headline = capital(fill(news.headline, dice, news.facts))
    key = " ".join((news.topic, *(str(fact) for fact in news.facts.values())))
    return Draft(Pair(paragraph, headline), key, news.combinations)


def _unrelated_facts(news: News, dice: Dice) -> dict[str, object]:
    """Draw people, places and numbers for the unrelated sentences."""
    words = read_lexicon("headlines")
    near = " ".join(str(fact) for fact in news.facts.values())
    return {
        "witness": draw_person(dice),
        "elsewhere": dice.choice([town for town in words["towns"] if town not in near]),
        "fair": dice.choice(words["fairs"]),
        "age": dice.between(7, 93),
        "years": dice.choice(("two", "three", "four", "ten")),
        "count": dice.between(13, 99),
    }


CORPUS = GeneratedCorpus("headlines", "translation", "a paragraph of local news -> its headline", draw)
