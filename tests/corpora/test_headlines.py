"""Headlines are correct: each is worked out again from its paragraph."""

from __future__ import annotations

import collections
import re
from collections.abc import Callable

from clearhead.corpora import headlines
from clearhead.corpora.dice import Dice
from clearhead.data.examples import Pair

MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
NUMBERS = ["none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]


def best_of(pairs: list[tuple[str, str]], choose: Callable[[list[int]], int]) -> tuple[str, int]:
    """The name that goes with the largest or smallest number."""
    numbers = [int(number.replace(",", "")) for _, number in pairs]
    return pairs[numbers.index(choose(numbers))][0], choose(numbers)


def check_headline(text: str, headline: str) -> str:
    """Check a headline that takes a calculation against its paragraph; return the kind of news, or ""."""
    count = {word: n for n, word in enumerate(NUMBERS)} | {"no": 0}
    if half := re.search(r"At half-time, (.+?) had (\w+) goals? and (.+?) (\w+)\.", text):
        home, away = half[1], half[3]
        added = re.search(rf"{home} added (\w+) and {away} (\w+)\.", text)
        assert added is not None
        goals = count[half[2]] + count[added[1]], count[half[4]] + count[added[2]]
        expected = f"{home} beat {away}" if goals[0] > goals[1] else f"{away} beat {home}"
        expected = f"{home} and {away} draw" if goals[0] == goals[1] else expected
        assert headline == f"{expected} {max(goals)}-{min(goals)}"
        return "match"
    if votes := re.search(r"(\w+) councillors were (in favour|against) and (\w+) (in favour|against)", text):
        one, other = count[votes[1].lower()], count[votes[3].lower()]
        approved = (one > other) == (votes[2] == "in favour")
        assert f"council {'approves' if approved else 'rejects'} " in headline
        return "vote"
    if prices := re.search(r"for (\w+) pounds.* the [a-zé ]+ (?:asks|takes|has asked) (\w+)\.", text):
        verb = "raises" if count[prices[2]] > count[prices[1]] else "cuts"
        assert re.search(rf"{verb} price of \w+ to {count[prices[2]]} pounds$", headline)
        return "price"
    if planted := re.search(r"planted (\d+) .* planted (?:another )?(\d+)", text):
        assert f"plant {int(planted[1]) + int(planted[2])} " in headline
        return "planting"
    if months := re.search(rf"(?:for|in) ({'|'.join(MONTHS)})\..* in ({'|'.join(MONTHS)})[. ]", text):
        gap = MONTHS.index(months[2]) - MONTHS.index(months[1])
        unit = "month" if abs(gap) == 1 else "months"
        assert headline.endswith(f"opens {NUMBERS[abs(gap)]} {unit} {'late' if gap > 0 else 'early'}")
        return "opening"
    if runners := re.search(r"(\w+ \w+) needed (\d+) minutes[,;].*? (\w+ \w+) (?:took|needed) (\d+)\.", text):
        third = re.search(r"(\w+ \w+) (?:arrived after|finished in) (\d+) minutes", text)
        assert third is not None
        times = [(runners[1], runners[2]), (runners[3].removeprefix("while "), runners[4]), (third[1], third[2])]
        assert headline.startswith(f"{best_of(times, min)[0]} wins")
        return "race"
    if "mayor" in headline:
        votes_of = re.findall(r"(\w+ \w+) (?:got |received )?(\d{3})(?: votes|\.)", text)
        assert headline.startswith(f"{best_of(votes_of, max)[0]} elected")
        return "mayor"
    if "degrees" in headline:
        degrees = re.findall(r"(\w+)(?: measured| reported|, people measured| it was)? (\d+)(?: degrees|\.)", text)
        places = [(name, n) for name, n in degrees if name in headlines.WORDS["towns"]]
        name, number = best_of(places, min if "coldest" in text else max)
        assert headline == f"{name} {'coldest' if 'coldest' in text else 'hottest'} at {number} degrees"
        return "weather"
    if "pounds" in headline:
        bids = [int(bid) for bid in re.findall(r"\b(\d+)(?: pounds|\.| and)", text) if int(bid) % 10 == 0]
        assert headline.endswith(f"for {max(bids)} pounds")
        return "auction"
    if "visitors at" in headline or "crowd at" in headline:
        this, last, older = (int(n.replace(",", "")) for n in re.findall(r"\d,\d00", text))
        verdict = "Record crowd" if this > max(last, older) else "More visitors" if this > last else "Fewer visitors"
        assert headline.startswith(verdict)
        return "fair"
    return ""


def test_headlines_follow_from_their_paragraphs() -> None:
    dice = Dice("tests of headlines")
    met = collections.Counter[str]()
    for _ in range(5000):
        news = headlines.draw(dice).example
        assert isinstance(news, Pair)
        met[check_headline(news.source, news.target)] += 1
        assert 3 <= len(re.findall(r'[.!?]"?(?= ["A-Z0-9]|$)', news.source)) <= 6, news.source
        for name in re.findall(r"[A-Z]\w+", news.target)[1:]:
            assert name in news.source
    assert set(met) - {""} == {kind.__name__ for kind in headlines.COMPARISONS} - {"crop"} | {"planting", "opening"}
    assert min(met.values()) > 200
