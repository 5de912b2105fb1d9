"""Stories are consistent: who has what, and where, follows from the events before."""

from __future__ import annotations

import collections
import re
from collections.abc import Iterator

import pytest

from clearhead.corpora.dice import Dice
from clearhead.corpora.stories import PLOTS, Narration, Story, draw_cast, draw_story


def stories(count: int) -> Iterator[Story]:
    dice = Dice("tests of stories")
    return (draw_story(dice) for _ in range(count))


def replay(story: Story) -> dict[str, str]:
    """Replay the events from an empty world and return who has what; a thing must be where it is used."""
    holder: dict[str, str] = {}
    where: dict[str, str] = {}
    for event in story.events:
        if event.kind == "go":
            assert where.get(event.who) != event.what
            where[event.who] = event.what
        elif event.kind == "lie":
            assert event.what not in holder
            where[event.what] = event.who
        elif event.kind == "leave":
            assert holder.pop(event.what) == event.who
            where[event.what] = where[event.who]
        elif event.kind == "take":
            assert where.pop(event.what) == where[event.who]
            holder[event.what] = event.who
        elif event.kind == "give":
            assert holder[event.what] == event.who != event.to
            holder[event.what] = event.to
        else:
            assert event.kind == "have"
            assert event.what not in holder
            holder[event.what] = event.who
    return holder


def test_stories_are_consistent_with_their_world() -> None:
    plots = collections.Counter[str]()
    for story in stories(2000):
        assert replay(story) == story.holder
        plots[story.plot] += 1
    assert len(plots) == len(PLOTS) >= 8
    assert min(plots.values()) > 80


def test_the_text_of_a_story_tells_its_events() -> None:
    for story in stories(1000):
        for event in story.events:
            assert event.sentence in story.text
            assert re.search(rf"\b({event.what}|it|home|there)\b", event.sentence, re.IGNORECASE), event
        ending = story.text.split("\n\n")[-1]
        for thing, person in story.holder.items():
            assert thing in ending, story.text
            assert person.lower() in ending.lower(), story.text


def test_a_lost_thing_is_found_where_it_was_left() -> None:
    found = 0
    for story in stories(1500):
        if story.plot != "lost":
            continue
        left = re.search(
            rf"(?:put|laid) the {story.cast[2].split(' ', 1)[1]} (.+?)(?: and sat down to rest)?\.", story.text
        )
        assert left is not None, story.text
        assert f", {left[1]}, just where" in story.text
        found += 1
    assert found > 50


def test_stories_have_five_to_twelve_sentences_and_paragraphs() -> None:
    for story in stories(2000):
        ends = re.findall(r'[.!?]"?(?= ["A-Z]|\n|$)', story.text)
        assert 5 <= len(ends) <= 12, story.text
        assert 2 <= story.text.count("\n\n") + 1 <= 4


def test_hero_and_friend_never_share_a_pronoun() -> None:
    dice = Dice("casts")
    for _ in range(200):
        cast = draw_cast("hfxyzpq", dice)
        assert cast["h"].he != cast["f"].he
        assert len({cast["x"].name, cast["y"].name, cast["z"].name}) == 3
        assert cast["p"].name != cast["q"].name


def test_an_impossible_event_cannot_be_told() -> None:
    narration = Narration(Dice("impossible"), draw_cast("hfxpq", Dice("cast")))
    narration.have("h", "x", "{h} had a {x}.")
    with pytest.raises(AssertionError):
        narration.give("f", "h", "x", "{f} gave it away.")
    narration.go("h", "p", "{h} went to {p}.")
    narration.leave("h", "x", "{h} left it.")
    narration.go("h", "q", "{h} went to {q}.")
    with pytest.raises(AssertionError):
        narration.take("h", "x", "{h} found it.")
