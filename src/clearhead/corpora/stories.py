"""Short English stories that are consistent: who has what, and where, follows from the events before.

The plots are in `stories.toml`; the narration checks each of their events against the state of the world.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from clearhead.corpora.dice import Dice
from clearhead.corpora.generated import Draft, GeneratedCorpus
from clearhead.corpora.grammar.lexicon import read_lexicon
from clearhead.corpora.grammar.templates import articles, fill
from clearhead.data.examples import Document

WORDS = read_lexicon("stories")
PLOTS: Mapping[str, Mapping[str, str]] = WORDS["plots"]
LINE = re.compile(r"(?:([12]) )?(?:(have|lie|go|leave|take|give|let) ([a-z ]+): )?(.+)")  # version, event, roles, text
KIN = ("female_kin", "male_kin")
NEIGHBOURS = ("female_neighbours", "male_neighbours")


@dataclass(frozen=True, slots=True)
class CastMember:
    """A member of the cast, written as its name."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Person(CastMember):
    """A person with the matching pronouns."""

    he: str
    him: str
    his: str


@dataclass(frozen=True, slots=True)
class Thing(CastMember):
    """A thing to carry: its noun, its full name, what people do with it, how it breaks and how it is repaired."""

    full: str
    do: str  # "fly it"
    did: str  # "flew it"
    harm: str
    mend: str

    @property
    def did_so(self) -> str:
        """What somebody did with it, with the noun: "flew the kite"."""
        return self.did.replace(" it", f" the {self.name}")


@dataclass(frozen=True, slots=True)
class StoryPlace(CastMember):
    """A place to go to: its name, "at the market", and a spot where a thing can lie."""

    at: str
    spot: str


@dataclass(frozen=True, slots=True)
class Animal(CastMember):
    """An animal: its noun, the sound it makes and what it likes to eat."""

    called: str
    food: str


@dataclass(frozen=True, slots=True)
class Plant(CastMember):
    """A plant that grows from a seed, and its harvest."""

    harvest: str


@dataclass(frozen=True, slots=True)
class StoryEvent:
    """A change in the world (have, lie, go, leave, take or give), and the sentence that tells it."""

    kind: str
    who: str  # the person; for `lie`, the place
    what: str  # the thing; for `go`, the place
    to: str  # who has the thing afterwards
    sentence: str


@cache
def parse_plot(plot: str) -> list[tuple[str, str, list[str]]]:
    """For each line of a plot: its version ("" for both), a method of `Narration`, and the arguments of the method."""
    parsed = []
    for line in plot.splitlines():
        found = LINE.fullmatch(line)
        version, event, roles, template = found.groups(default="") if found else ("", "new_paragraph", "", "")
        parsed.append((version, event or "say", [*roles.split(), *filter(None, [template])]))
    return parsed


@dataclass(slots=True)
class Narration:
    """A story being written: each event is checked against the state of the world before it is told."""

    dice: Dice
    cast: dict[str, Any]  # role -> person, thing, place, animal or phrase
    holder: dict[str, str] = field(default_factory=dict)  # thing -> who has it
    lying_at: dict[str, str] = field(default_factory=dict)  # thing -> the place where it was left
    where: dict[str, str] = field(default_factory=dict)  # person -> place
    events: list[StoryEvent] = field(default_factory=list)
    paragraphs: list[list[str]] = field(default_factory=lambda: [[]])

    def tell(self, plot: str) -> None:
        """Tell a plot line by line; the version is drawn at the first line that depends on it."""
        version = ""
        for of_version, event, arguments in parse_plot(plot):
            if of_version and not version:
                version = "1" if self.dice.chance(0.5) else "2"
            if of_version in ("", version):
                getattr(self, event)(*arguments)

    def new_paragraph(self) -> None:
        """Start a new paragraph."""
        self.paragraphs.append([])

    def say(self, template: str) -> str:
        """Add a sentence or two to the current paragraph."""
        sentence = articles(fill(template, self.dice, self.cast))
        self.paragraphs[-1].append(sentence)
        return sentence

    def let(self, role: str, template: str) -> None:
        """Keep a text for later sentences."""
        self.cast[role] = fill(template, self.dice, self.cast)

    def have(self, who: str, thing: str, template: str) -> None:
        """Somebody has a thing when the story begins, or makes or buys it."""
        self._assert_new(thing)
        self.holder[self._name(thing)] = self._name(who)
        self._tell_event("have", who, thing, who, template)

    def lie(self, thing: str, place: str, template: str) -> None:
        """A thing that nobody has lies somewhere when the story begins."""
        self._assert_new(thing)
        self.lying_at[self._name(thing)] = self._name(place)
        self._tell_event("lie", place, thing, place, template)

    def go(self, who: str, place: str, template: str) -> None:
        """Somebody goes to another place."""
        assert self.where.get(self._name(who)) != self._name(place)
        self.where[self._name(who)] = self._name(place)
        self._tell_event("go", who, place, place, template)

    def leave(self, who: str, thing: str, template: str) -> None:
        """Somebody puts down a thing where they are."""
        assert self.holder.pop(self._name(thing)) == self._name(who)
        self.lying_at[self._name(thing)] = self.where[self._name(who)]
        self._tell_event("leave", who, thing, who, template)

    def take(self, who: str, thing: str, template: str) -> None:
        """Somebody takes a thing that lies where they are."""
        assert self.lying_at.pop(self._name(thing)) == self.where[self._name(who)]
        self.holder[self._name(thing)] = self._name(who)
        self._tell_event("take", who, thing, who, template)

    def give(self, giver: str, receiver: str, thing: str, template: str) -> None:
        """Somebody gives away a thing that they have."""
        assert self.holder[self._name(thing)] == self._name(giver)
        self.holder[self._name(thing)] = self._name(receiver)
        self._tell_event("give", giver, thing, receiver, template)

    def text(self) -> str:
        """The story so far, with an empty line between paragraphs."""
        return "\n\n".join(" ".join(paragraph) for paragraph in self.paragraphs if paragraph)

    def _name(self, role: str) -> str:
        """The name of the person, thing or place in a role."""
        return str(self.cast[role])

    def _assert_new(self, thing: str) -> None:
        """Check that the thing has not been mentioned yet."""
        assert self._name(thing) not in self.holder
        assert self._name(thing) not in self.lying_at

    def _tell_event(self, kind: str, who: str, what: str, to: str, template: str) -> None:
        """Tell an event and note it."""
        sentence = self.say(template)
        self.events.append(StoryEvent(kind, self._name(who), self._name(what), self._name(to), sentence))


@cache
def _people(*groups: str) -> tuple[Person, ...]:
    """All people in these groups of the lexicon."""
    she, he = ("she", "her", "her"), ("he", "him", "his")
    return tuple(
        Person(name, *(she if group.startswith(("girl", "female")) else he))
        for group in groups
        for name in WORDS[group]
    )


def draw_cast(roles: str, dice: Dice) -> dict[str, Any]:
    """Draw a person, thing or place for each role letter.

    h: the hero, f: the friend, two children; k: a relative; n: a neighbour; e: a relative or a neighbour; x, y, z:
    things; p, q: places; a: an animal; s: a plant; b: where it is planted. The two children are a girl and a boy, so
    that "she" and "he" are never ambiguous.
    """
    girl, boy = dice.choice(_people("girls")), dice.choice(_people("boys"))
    hero, friend = (girl, boy) if dice.chance(0.5) else (boy, girl)
    things = iter(dice.sample(WORDS["things"], 3))
    places = iter(dice.sample(WORDS["places"], 2))
    drawn: dict[str, Callable[[], Any]] = {
        "h": lambda: hero,
        "f": lambda: friend,
        "k": lambda: dice.choice(_people(*KIN)),
        "n": lambda: dice.choice(_people(*NEIGHBOURS)),
        "e": lambda: dice.choice(_people(*KIN, *NEIGHBOURS)),
        **dict.fromkeys("xyz", lambda: _thing(next(things), dice)),
        **dict.fromkeys("pq", lambda: _place(next(places), dice)),
        "a": lambda: Animal(*dice.choice(WORDS["animals"])),
        "s": lambda: Plant(*dice.choice(WORDS["plants"])),
        "b": lambda: dice.choice(WORDS["beds"]),
    }
    return {"when": fill(WORDS["when"], dice, {}), "home": "home", **{role: drawn[role]() for role in roles}}


def _thing(row: list[str], dice: Dice) -> Thing:
    """A thing with a random look."""
    return Thing(row[0], f"{dice.choice(WORDS['looks'])} {row[0]}", *row[1:])


def _place(row: list[str], dice: Dice) -> StoryPlace:
    """A place with one of its spots, at random."""
    return StoryPlace(row[0], f"{row[1]} {row[0]}", dice.choice(row[2:]))


@dataclass(frozen=True, slots=True)
class Story:
    """A story, its events, and who has which thing at the end."""

    text: str
    plot: str
    cast: tuple[str, ...]
    events: tuple[StoryEvent, ...]
    holder: Mapping[str, str]  # thing -> person
    combinations: tuple[str, ...]  # word combinations that may be held out


def draw_story(dice: Dice) -> Story:
    """Draw a plot and a cast, and write the story."""
    plot = dice.choice(tuple(PLOTS))
    roles = PLOTS[plot]["roles"]
    cast = draw_cast(roles, dice)
    names = tuple(getattr(cast[role], "full", str(cast[role])) for role in roles)
    things = [thing.full for thing in cast.values() if isinstance(thing, Thing)]
    visits = [f"{cast['h']} {place}" for place in cast.values() if isinstance(place, StoryPlace)]
    narration = Narration(dice, cast)
    narration.tell(PLOTS[plot]["told"])
    return Story(narration.text(), plot, names, tuple(narration.events), narration.holder, (*things, *visits))


def draw(dice: Dice) -> Draft:
    """Draw a story; the key is its plot and cast, so that two wordings of one story share a split."""
    story = draw_story(dice)
    return Draft(Document(story.text), " ".join((story.plot, *story.cast)), story.combinations)


CORPUS = GeneratedCorpus("stories", "language", "short English stories with people, places and consistent events", draw)
