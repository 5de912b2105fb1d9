"""Short English stories that are consistent: who has what, and where, follows from the events before."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from clearhead.corpora.dice import Dice
from clearhead.corpora.generated import Draft, GeneratedCorpus
from clearhead.corpora.stories import adventures, plots
from clearhead.corpora.stories.world import Narration, StoryEvent, StoryPlace, Thing, draw_cast
from clearhead.data.examples import Document

# plot -> the roles of its cast, see `draw_cast`; the function names are part of the keys that decide the splits
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
    cast = draw_cast(PLOTS[plot], dice)
    things = [thing.full for thing in cast.values() if isinstance(thing, Thing)]
    visits = [f"{cast['h']} {place}" for place in cast.values() if isinstance(place, StoryPlace)]
    names = tuple(getattr(cast[role], "full", str(cast[role])) for role in PLOTS[plot])
    narration = Narration(dice, cast)
    plot(narration)
    return Story(
        narration.text(),
        plot.__name__,
        names,
        tuple(narration.events),
        dict(narration.holder),
        (*things, *visits),
    )


def draw(dice: Dice) -> Draft:
    """Draw a story; the key is its plot and cast, so that two wordings of one story share a split."""
    story = draw_story(dice)
    return Draft(Document(story.text), " ".join((story.plot, *story.cast)), story.combinations)


CORPUS = GeneratedCorpus("stories", "language", "short English stories with people, places and consistent events", draw)
