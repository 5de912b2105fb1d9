"""The world of a story: people, things and places; who has what, who is where; and the text so far."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from clearhead.corpora.dice import Dice
from clearhead.corpora.grammar.lexicon import ENGLISH
from clearhead.corpora.grammar.templates import articles, fill


@dataclass(frozen=True, slots=True)
class Person:
    """A person with the matching pronouns."""

    name: str
    he: str
    him: str
    his: str
    himself: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Thing:
    """A thing to carry: its noun, its full name, what people do with it, how it breaks and how it is repaired."""

    word: str
    full: str
    do: str  # "fly it"
    did: str  # "flew it"
    harm: str
    mend: str

    @property
    def did_so(self) -> str:
        """What somebody did with it, with the noun: "flew the kite"."""
        return self.did.replace(" it", f" the {self.word}")

    def __str__(self) -> str:
        return self.word


@dataclass(frozen=True, slots=True)
class StoryPlace:
    """A place to go to: its name, "at the market", and a spot where a thing can lie."""

    name: str
    at: str
    spot: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Animal:
    """An animal: its noun, the sound it makes and what it likes to eat."""

    word: str
    called: str
    food: str

    def __str__(self) -> str:
        return self.word


@dataclass(frozen=True, slots=True)
class Plant:
    """A plant that grows from a seed, and its harvest."""

    word: str
    harvest: str

    def __str__(self) -> str:
        return self.word


@dataclass(frozen=True, slots=True)
class StoryEvent:
    """A change in the world (have, lie, go, leave, take or give), and the sentence that tells it."""

    kind: str
    who: str  # the person; for `lie`, the place
    what: str  # the thing; for `go`, the place
    to: str  # who has the thing afterwards
    sentence: str


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

    def say(self, template: str) -> str:
        """Add a sentence or two to the current paragraph."""
        sentence = articles(fill(template, self.dice, self.cast))
        self.paragraphs[-1].append(sentence)
        return sentence

    def new_paragraph(self) -> None:
        """Start a new paragraph."""
        self.paragraphs.append([])

    def have(self, who: str, thing: str, template: str) -> None:
        """Somebody has a thing when the story begins, or makes or buys it."""
        self._assert_new(thing)
        self.holder[self._name(thing)] = self._name(who)
        self._tell("have", who, thing, who, template)

    def lie(self, thing: str, place: str, template: str) -> None:
        """A thing that nobody has lies somewhere when the story begins."""
        self._assert_new(thing)
        self.lying_at[self._name(thing)] = self._name(place)
        self._tell("lie", place, thing, place, template)

    def go(self, who: str, place: str, template: str) -> None:
        """Somebody goes to another place."""
        assert self.where.get(self._name(who)) != self._name(place)
        self.where[self._name(who)] = self._name(place)
        self._tell("go", who, place, place, template)

    def leave(self, who: str, thing: str, template: str) -> None:
        """Somebody puts down a thing where they are."""
        assert self.holder.pop(self._name(thing)) == self._name(who)
        self.lying_at[self._name(thing)] = self.where[self._name(who)]
        self._tell("leave", who, thing, who, template)

    def take(self, who: str, thing: str, template: str) -> None:
        """Somebody takes a thing that lies where they are."""
        assert self.lying_at.pop(self._name(thing)) == self.where[self._name(who)]
        self.holder[self._name(thing)] = self._name(who)
        self._tell("take", who, thing, who, template)

    def give(self, giver: str, receiver: str, thing: str, template: str) -> None:
        """Somebody gives away a thing that they have."""
        assert self.holder[self._name(thing)] == self._name(giver)
        self.holder[self._name(thing)] = self._name(receiver)
        self._tell("give", giver, thing, receiver, template)

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

    def _tell(self, kind: str, who: str, what: str, to: str, template: str) -> None:
        """Tell an event and record it."""
        sentence = self.say(template)
        self.events.append(StoryEvent(kind, self._name(who), self._name(what), self._name(to), sentence))


@cache
def _people(*groups: str) -> tuple[Person, ...]:
    """All people in these groups of the lexicon."""
    she, he = ("she", "her", "her", "herself"), ("he", "him", "his", "himself")
    return tuple(
        Person(name, *(she if group.startswith(("girl", "female")) else he))
        for group in groups
        for name in ENGLISH["stories"][group]
    )


KIN = ("female_kin", "male_kin")
NEIGHBOURS = ("female_neighbours", "male_neighbours")


def draw_cast(roles: str, dice: Dice) -> dict[str, Any]:
    """Draw a person, thing or place for each role letter.

    h: the hero, f: the friend, two children; k: a relative; n: a neighbour; e: a relative or a neighbour; x, y, z:
    things; p, q: places; a: an animal; s: a plant; b: where it is planted. The two children are a girl and a boy, so
    that "she" and "he" are never ambiguous.
    """
    words = ENGLISH["stories"]
    girl, boy = dice.choice(_people("girls")), dice.choice(_people("boys"))
    hero, friend = (girl, boy) if dice.chance(0.5) else (boy, girl)
    things = iter(dice.sample(words["things"], 3))
    places = iter(dice.sample(words["places"], 2))
    drawn: dict[str, Callable[[], Any]] = {
        "h": lambda: hero,
        "f": lambda: friend,
        "k": lambda: dice.choice(_people(*KIN)),
        "n": lambda: dice.choice(_people(*NEIGHBOURS)),
        "e": lambda: dice.choice(_people(*KIN, *NEIGHBOURS)),
        "x": lambda: _thing(next(things), dice),
        "y": lambda: _thing(next(things), dice),
        "z": lambda: _thing(next(things), dice),
        "p": lambda: _place(next(places), dice),
        "q": lambda: _place(next(places), dice),
        "a": lambda: Animal(*dice.choice(words["animals"])),
        "s": lambda: Plant(*dice.choice(words["plants"])),
        "b": lambda: dice.choice(words["beds"]),
    }
    return {"when": _when(dice), "home": "home", **{role: drawn[role]() for role in roles}}


def _thing(row: list[str], dice: Dice) -> Thing:
    """A thing with a random look."""
    look = dice.choice(ENGLISH["stories"]["looks"])
    return Thing(row[0], f"{look} {row[0]}", *row[1:])


def _place(row: list[str], dice: Dice) -> StoryPlace:
    """A place with one of its spots, at random."""
    return StoryPlace(row[0], f"{row[1]} {row[0]}", dice.choice(row[2:]))


def _when(dice: Dice) -> str:
    """Draw the opening of the first sentence."""
    return fill(
        "[One [bright|quiet|windy|cold|warm|misty] [morning|afternoon]|On [the first|the last] day of "
        "[spring|summer|autumn|winter|the holidays]|[Early|Late] one [Monday|Friday|Saturday|Sunday]|"
        "One [morning|afternoon] in [April|May|June|September|October]|The day after the [fair|storm|festival]]",
        dice,
        {},
    )
