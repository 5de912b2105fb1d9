"""Short English stories in which what happens is true: who has what, and where, follows from what went before."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from clearhead.corpora.dice import Dice
from clearhead.corpora.generated import Draft, GeneratedCorpus
from clearhead.corpora.stories import adventures, plots
from clearhead.corpora.stories.world import Event, Narration, Place, Thing, draw_cast
from clearhead.data.examples import Document

# each plot with the roles that it needs
PLOTS: Mapping[Callable[[Narration], None], str] = {
    plots.lost: "hfxpq",
    plots.borrowed: "hfexp",
    plots.swaps: "hfexyzpq",
    plots.present: "hfxq",
    plots.doorstep: "hfnx",
    plots.storm: "hfkxp",
    plots.quarrel: "hfxpq",
    adventures.rescue: "hfnapq",
    adventures.race: "hfexp",
    adventures.garden: "hfesb",
    adventures.secret_note: "hfexq",
    adventures.lost_child: "hkxp",
    adventures.mix_up: "hfexypq",
    adventures.thief: "hfexyap",
}


@dataclass(frozen=True, slots=True)
class Story:
    """A story, what changed in its world, and who has which thing when it ends."""

    text: str
    plot: str
    cast: tuple[str, ...]
    events: tuple[Event, ...]
    holder: Mapping[str, str]


def tell(dice: Dice) -> Story:
    """A story about somebody."""
    return _told(dice)[0]


def draw(dice: Dice) -> Draft:
    """A story; its key is the plot and its cast, so that two wordings of one story share a split."""
    story, combinations = _told(dice)
    return Draft(Document(story.text), " ".join((story.plot, *story.cast)), combinations)


def _told(dice: Dice) -> tuple[Story, tuple[str, ...]]:
    """A story, and the word combinations in it."""
    plot = dice.choice(tuple(PLOTS))
    cast = draw_cast(PLOTS[plot], dice)
    things = [thing.full for thing in cast.values() if isinstance(thing, Thing)]
    spots = [f"{cast['h']} {place}" for place in cast.values() if isinstance(place, Place)]
    names = tuple(getattr(cast[role], "full", str(cast[role])) for role in PLOTS[plot])
    narration = Narration(dice, cast)
    plot(narration)
    story = Story(narration.text(), plot.__name__, names, tuple(narration.events), dict(narration.holder))
    return story, (*things, *spots)


CORPUS = GeneratedCorpus("stories", "language", "short English stories with people, places and consistent events", draw)
