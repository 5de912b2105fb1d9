"""English sentences and their French: one meaning is drawn, then put into words twice.

The French is a function of the English: "you" is "tu"; I, you and we are masculine; "they" without a name before it is
"ils"; the past is the passé composé, of states ("was", "had", "loved") and of what was going on ("was reading") the
imperfect. Most sentences are lower-case, without a final period; names keep their capital. Three of ten are written as
people do: with a capital at the beginning, a period at the end, or both; the French then is, too.
"""

from __future__ import annotations

from collections.abc import Callable

from clearhead.corpora.dice import Dice, hash_of
from clearhead.corpora.generated import Draft, GeneratedCorpus
from clearhead.corpora.grammar import english, french
from clearhead.corpora.grammar.clauses import (
    ACTION_FRAMES,
    FLAGS,
    FRAMES,
    GENERIC_FRAMES,
    GIVING,
    MODAL_FRAMES,
    PUTTING,
    STATE_FRAMES,
    When,
    action,
    giving,
    motion,
    patient_of,
    person_object,
    putting,
    when,
)
from clearhead.corpora.grammar.compound import (
    all_of,
    and_therefore,
    because_of_feeling,
    because_of_thing,
    but_also,
    but_tastes_differ,
    if_it_rains,
    when_interrupted,
    when_it_happens,
)
from clearhead.corpora.grammar.meaning import (
    Clause,
    Name,
    NounPhrase,
    Place,
    Pronoun,
    Question,
    Sentence,
    There,
    combinations,
)
from clearhead.corpora.grammar.noun_phrases import (
    CITIES,
    COUNTRIES,
    KINDS,
    USUALLY_ONE,
    adjectives,
    definite,
    indefinite,
    location,
    place_of,
)
from clearhead.corpora.grammar.people import PERSON, somebody
from clearhead.corpora.grammar.qualities import (
    AGED,
    LOCATED,
    age,
    comparison,
    presentation,
    profession,
    quality,
    quality_of_agent,
    there_is,
    weather,
    where_it_is,
)
from clearhead.corpora.grammar.templates import capital
from clearhead.data.examples import Pair

SHORTEST, LONGEST = 3, 20  # words of a sentence in either language
COLOURED = tuple(noun for noun, kinds in KINDS.items() if "coloured" in kinds)
COUNTED = tuple(noun for noun in LOCATED if not KINDS[noun] & {"kin", "stuff", "royal"})
PLANNED_FRAMES = tuple(frame for frame in ACTION_FRAMES if "sense" not in FLAGS[frame.verb])
ASKED_WHAT = (
    "eat",
    "drink",
    "read",
    "buy",
    "look_for",
    "make",
    "draw",
    "plant",
    "write",
    "see",
    "find",
    "choose",
    "wear",
)


def acting(dice: Dice) -> Clause:
    """Somebody does something."""
    frame = dice.choice(ACTION_FRAMES)
    at = when(dice, frame.verb)
    if not frame.human and at.tense in ("future", "going"):  # animals make no plans
        at = When("past", at.polarity)
    return action(dice, frame, somebody(dice, frame.who, frame.human), at)


def moving(dice: Dice) -> Clause:
    """Somebody goes somewhere."""
    verb = dice.choice(("go", "go", "come", "arrive"))
    if verb == "come" and dice.random() < 0.4:
        origin = Name(dice.choice(CITIES + COUNTRIES))
        return Clause(
            somebody(dice, PERSON, True),
            "come",
            "present",
            "not" if dice.random() < 0.2 else "",
            places=(Place("from", origin),),
        )
    return motion(dice, verb, somebody(dice, PERSON, True), when(dice, verb))


def meeting(dice: Dice) -> Clause:
    """Somebody does something to somebody who is a pronoun."""
    return person_object(dice, somebody(dice, PERSON, True))


def handing(dice: Dice) -> Clause:
    """Somebody gives somebody something."""
    frame = FRAMES[dice.choice(GIVING)][0]
    at = when(dice, frame.verb)
    if at.habitual:
        at = When("present", frequency="often") if frame.verb in ("give", "bring", "send", "write") else When("past")
    return giving(dice, frame, somebody(dice, frame.who, True), at)


def placing(dice: Dice) -> Clause:
    """Somebody puts something somewhere."""
    verb = dice.choice(PUTTING)
    return putting(dice, verb, somebody(dice, PERSON, True), when(dice, verb))


def having(dice: Dice) -> Clause:
    """Somebody loves, knows, has or wants; lives somewhere."""
    frame = dice.choice(STATE_FRAMES)
    subject = somebody(dice, frame.who, True)
    at = When("past" if dice.random() < 0.3 else "present", "not" if dice.random() < 0.25 else "")
    c = Clause(subject, frame.verb, at.tense, at.polarity)
    if frame.verb == "live":
        return c._replace(places=(place_of(dice, dice.choice(frame.where)),))
    if frame.verb not in ("have", "want"):
        return c._replace(object=patient_of(dice, frame, subject, at._replace(tense="past")))
    noun = dice.choice(frame.what)
    kin = "kin" in KINDS[noun]
    described = 0.0 if kin else 0.4
    if frame.verb == "have" and not at.polarity and noun not in USUALLY_ONE and dice.random() < 0.3:
        few = ("few", "many") if not kin else ()
        count = dice.choice(("two", "three", "four", "five", *few))
        return c._replace(object=NounPhrase(noun, count, True, adjectives(dice, noun, described)))
    return c._replace(object=indefinite(dice, noun, described, 0.0 if kin or noun in USUALLY_ONE else 0.25))


def liking(dice: Dice) -> Clause:
    """Somebody likes, hates or prefers things of a kind."""
    frame = dice.choice(GENERIC_FRAMES)
    polarity = "not" if frame.verb == "like" and dice.random() < 0.35 else ""
    subject = somebody(dice, frame.who, True)
    return Clause(
        subject,
        frame.verb,
        "past" if dice.random() < 0.2 else "present",
        polarity,
        object=all_of(dice.choice(frame.what)),
    )


def wishing(dice: Dice) -> Clause:
    """Somebody wants to, can or must do something."""
    modal = dice.choice(("want", "want", "can", "must"))
    frame = dice.choice(MODAL_FRAMES[modal])
    subject = somebody(dice, frame.who, True)
    if frame.verb in ("go", "come"):
        c = motion(dice, frame.verb, subject, When("future"))
    else:
        c = action(dice, frame, subject, When("future", polarity="not" if dice.random() < 0.2 else ""))
    return c._replace(modal=modal, tense="past" if modal == "want" and dice.random() < 0.25 else "present", manner="")


def asking(dice: Dice) -> Question:
    """A question; nobody asks what he does himself."""
    found = dice.choice(QUESTIONS)(dice)
    return asking(dice) if isinstance(found.about, Clause) and found.about.subject == Pronoun("i") else found


def ask_yes_no(dice: Dice) -> Question:
    """Whether something is so: "did she go to the market?"."""
    c = dice.choice((acting, acting, moving, meeting, handing, having, quality, where_it_is, liking))(dice)
    return Question("", c._replace(polarity="", time_first=False))


def ask_circumstance(dice: Dice) -> Question:
    """Where, when or why somebody does something."""
    frame = dice.choice(PLANNED_FRAMES)
    ask = "why" if not frame.human else dice.choice(("where", "when", "why") if frame.where else ("when", "why"))
    tense = dice.choice(("past", "future", "progressive") if ask != "when" else ("past", "future"))
    flags = FLAGS[frame.verb]
    if not frame.human and tense == "future":  # animals make no plans
        tense = "past"
    if "mishap" in flags or ("moment" in flags and tense == "progressive"):
        tense = "past"
    at = When(tense, "not" if ask == "why" and dice.random() < 0.25 else "")
    return Question(ask, action(dice, frame, somebody(dice, frame.who, frame.human), at, full=ask == "why"))


def ask_who(dice: Dice) -> Question:
    """Who does it."""
    frame = dice.choice(ACTION_FRAMES)
    while not frame.human:
        frame = dice.choice(ACTION_FRAMES)
    at = when(dice, frame.verb, denial=0.0)._replace(time_first=False)
    return Question("who", action(dice, frame, Pronoun("who?"), at))


def ask_what(dice: Dice) -> Question:
    """What somebody eats, reads or buys."""
    frame = FRAMES[dice.choice(ASKED_WHAT)][0]
    at = when(dice, frame.verb, denial=0.0)._replace(time_first=False)
    c = action(dice, frame, somebody(dice, frame.who, frame.human), at)
    return Question("what", c._replace(object=None, manner=""))


def ask_about_thing(dice: Dice) -> Question:
    """Where something is, what colour it has, how many there are; how old somebody is."""
    ask = dice.choice(("where", "colour", "how_many", "age"))
    if ask == "how_many":
        noun = dice.choice(COUNTED)
        return Question(ask, There(NounPhrase(noun), location(dice, noun)))
    if ask == "age":
        subject = somebody(dice, AGED, True, 0.0)
        if isinstance(subject, Pronoun):
            subject = definite(dice, dice.choice(AGED), 0.0)
        return Question(ask, Clause(subject, "be"))
    noun = dice.choice(COLOURED if ask == "colour" else LOCATED)
    return Question(ask, Clause(definite(dice, noun, 0.0), "be"))


QUESTIONS = (ask_yes_no,) * 4 + (ask_circumstance,) * 4 + (ask_who,) * 2 + (ask_what,) * 2 + (ask_about_thing,)
PATTERNS: tuple[tuple[Callable[[Dice], Sentence], int], ...] = (  # each with its share
    (acting, 54), (moving, 13), (meeting, 9), (handing, 17), (placing, 12), (having, 12), (liking, 4), (wishing, 16),
    (quality, 20), (quality_of_agent, 7), (comparison, 4), (where_it_is, 9), (there_is, 12), (profession, 2), (age, 1),
    (presentation, 2), (weather, 1), (asking, 30), (because_of_feeling, 5), (because_of_thing, 8), (and_therefore, 8),
    (but_also, 4), (but_tastes_differ, 6), (when_interrupted, 9), (when_it_happens, 9), (if_it_rains, 5),
)  # fmt: skip
DECK = tuple(pattern for pattern, share in PATTERNS for _ in range(share))


def draw(dice: Dice) -> Draft:
    """One sentence in English and French, of 3 to 20 words in both."""
    while True:
        meaning = dice.choice(DECK)(dice)
        source, target = english.sentence(meaning), french.sentence(meaning)
        if fits(source) and fits(target):
            return Draft(written(source, target), target, combinations(meaning))


def written(source: str, target: str) -> Pair:
    """A sentence and its French as people write them: of ten, two have a capital and a period, one either of them."""
    style = hash_of(f"style of {target}") % 10
    period = "." if style in (0, 1, 2) and not source.endswith("?") else ""
    named = source[0].isupper()  # begins with a name or "I": only a period can tell that the French has a capital
    large = bool(period) if named else style in (0, 1, 3)
    return Pair(*((capital(text) if large else text) + period for text in (source, target)))


def fits(sentence: str) -> bool:
    """Whether a sentence has 3 to 20 words."""
    return SHORTEST - 1 <= sentence.count(" ") - sentence.endswith(" ?") < LONGEST


CORPUS = GeneratedCorpus("phrasebook", "translation", "English sentences and their French", draw)
