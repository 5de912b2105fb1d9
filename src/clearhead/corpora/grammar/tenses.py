"""Draw when something happens: tense, negation, frequency and time, as the verb allows."""

from __future__ import annotations

from typing import NamedTuple

from clearhead.corpora.dice import Dice
from clearhead.corpora.grammar.frames import FLAGS

HABITS = ("every_day", "every_morning", "every_evening", "every_week", "on_saturdays", "on_sundays", "in_the_morning")
PAST_DAYS = ("yesterday", "yesterday_morning", "last_night", "this_morning", "an_hour_ago", "two_days_ago")
FUTURE_DAYS = ("tomorrow", "tomorrow_morning", "tonight", "soon", "in_an_hour", "on_monday")
PAST = (("yesterday", "this_morning"), PAST_DAYS, (*PAST_DAYS, "last_week", "last_month"))
FUTURE = (("tomorrow", "soon"), FUTURE_DAYS, (*FUTURE_DAYS, "next_week", "next_month"))
POINTS = (
    "an_hour_ago",
    "two_days_ago",
    "soon",
    "in_an_hour",
)  # not used with a negation: "she did not arrive an hour ago"
FREQUENCIES = ("often", "always", "sometimes", "rarely")


class When(NamedTuple):
    """The tense of a clause, with negation, frequency and time."""

    tense: str
    polarity: str = ""
    frequency: str = ""
    time: str = ""
    time_first: bool = False

    @property
    def habitual(self) -> bool:
        """Whether the clause describes a habit."""
        return self.tense == "present"


def when(dice: Dice, verb: str, denial: float = 0.2) -> When:
    """Draw a tense with its adverbs, as the verb allows."""
    roll = dice.random()
    flags = FLAGS[verb]
    polarity = "not" if dice.random() < denial else ""
    if roll < 0.35 or "mishap" in flags:
        return past(dice, verb, polarity)
    if "sense" in flags:
        return When("present", polarity)
    if roll > 0.75 and "moment" not in flags:
        return When("progressive", polarity, time="now" if dice.random() < 0.15 else "")
    if roll > 0.55 and "moment" not in flags and "daily" not in flags:
        return habit(dice, polarity)
    return future(dice, verb, polarity)


def past(dice: Dice, verb: str, polarity: str = "") -> When:
    """Draw the past tense, with a day or without."""
    if dice.random() < 0.5:
        return When("past", polarity)
    day = dice.choice(times(PAST, verb))
    return When("past", polarity if day not in POINTS else "", time=day, time_first=dice.random() < 0.4)


def future(dice: Dice, verb: str, polarity: str = "") -> When:
    """Draw a future tense, with a day or without."""
    if dice.random() < 0.3:
        return When("going", polarity)
    if dice.random() < 0.4:
        return When("future", polarity)
    day = dice.choice(times(FUTURE, verb))
    return When("future", polarity if day not in POINTS else "", time=day, time_first=dice.random() < 0.3)


def times(table: tuple[tuple[str, ...], ...], verb: str) -> tuple[str, ...]:
    """The times that go with a verb: what happens daily needs near ones, a remarkable event allows distant ones."""
    flags = FLAGS[verb]
    return table[0] if "daily" in flags else table[2] if "event" in flags else table[1]


def habit(dice: Dice, polarity: str = "") -> When:
    """Draw a habit: every day, often or never."""
    if polarity:
        time = dice.choice(("in_the_morning", "in_the_evening", "on_sundays")) if dice.random() < 0.25 else ""
        return When("present", "never" if dice.random() < 0.5 else "not", time=time)
    if dice.random() < 0.2:
        return When("present")
    if dice.random() < 0.5:
        return When("present", frequency=dice.choice(FREQUENCIES))
    return When("present", time=dice.choice(HABITS), time_first=dice.random() < 0.3)
