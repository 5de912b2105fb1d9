"""Verb frames: who can do something, to what, and where; read from the lexicon."""

from __future__ import annotations

from typing import NamedTuple

from clearhead.corpora.grammar.lexicon import CONCEPTS, expand_kinds
from clearhead.corpora.grammar.noun_phrases import GROUPS
from clearhead.corpora.grammar.people import PERSON


class Frame(NamedTuple):
    """Who can do something, to what, and where."""

    verb: str
    who: tuple[str, ...]
    what: tuple[str, ...]
    where: tuple[str, ...]
    human: bool


def read_frame(verb: str, text: str) -> Frame:
    """A frame from the lexicon: "who > what @ where"."""
    rest, _, where = text.partition("@")
    who, _, what = rest.partition(">")
    subjects = expand_kinds(who)
    human = any(noun in PERSON for noun in subjects)
    return Frame(verb, subjects, expand_kinds(what), tuple(named_places(where)), human)


def named_places(words: str) -> list[str]:
    """The nouns of a frame's places; `city` and `country` stay kinds, since names are drawn for them."""
    return [*expand_kinds(words), *(word for word in words.split() if word in ("city", "country"))]


FLAGS: dict[str, tuple[str, ...]] = {v: tuple(facts.get("flags", "").split()) for v, facts in CONCEPTS["verb"].items()}
MANNERS: dict[str, tuple[str, ...]] = {v: tuple(facts.get("how", "").split()) for v, facts in CONCEPTS["verb"].items()}
FRAMES: dict[str, tuple[Frame, ...]] = {
    verb: tuple(read_frame(verb, text) for text in facts["frames"]) for verb, facts in CONCEPTS["verb"].items()
}


def weighted_frames(verbs: tuple[str, ...]) -> tuple[Frame, ...]:
    """The frames of some verbs, each repeated by the logarithm of how many combinations of nouns it allows."""
    frames = (frame for verb in verbs for frame in FRAMES[verb])
    return tuple(frame for frame in frames for _ in range((len(frame.who) * max(1, len(frame.what))).bit_length()))


def with_flag(flag: str) -> tuple[str, ...]:
    """The verbs that have a flag in the lexicon."""
    return tuple(verb for verb in FRAMES if flag in FLAGS[verb])


STATES = with_flag("state")
GIVING = with_flag("to")
PUTTING = with_flag("put")
MOVING = tuple(verb for verb, facts in CONCEPTS["verb"].items() if "motion" in facts)
ACTIONS = tuple(verb for verb in FRAMES if verb not in STATES + PUTTING + MOVING + ("give", "show", "send", "bring"))
ACTION_FRAMES = weighted_frames(ACTIONS)
STATE_FRAMES = weighted_frames(tuple(verb for verb in STATES if "generic" not in FLAGS[verb]))
GENERIC_FRAMES = weighted_frames(with_flag("generic"))
MODAL_FRAMES = {modal: tuple(f for f in weighted_frames(GROUPS[modal]) if f.human) for modal in ("want", "can", "must")}
DESTINATIONS = GROUPS["destination"]
