"""Local news: a paragraph, and its headline.

The headline has to be worked out from the facts: goals are added, bids compared, votes counted. Unrelated sentences are
mixed into the paragraph. A function for each kind of news draws its facts; the templates are in `headlines.toml`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from clearhead.corpora.dice import Dice
from clearhead.corpora.generated import Draft, GeneratedCorpus
from clearhead.corpora.grammar.lexicon import ENGLISH, read_lexicon
from clearhead.corpora.grammar.templates import articles, capital, fill
from clearhead.data.examples import Pair

WORDS = read_lexicon("headlines")
NUMBER_WORDS = ("none", "one", *ENGLISH["number"].values())  # "none" to "twenty", by number
MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip

Facts = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class News:
    """The facts of a piece of news; their values, in this order, are its key, and so decide its split."""

    facts: Facts
    combinations: tuple[str, ...]  # word combinations that may be held out
    wording: Facts = field(default_factory=dict)  # further slots, which follow from the facts


def draw_words(dice: Dice, *tables: str) -> list[str]:
    """Draw a word from each of these tables of the lexicon."""
    return [dice.choice(WORDS[table]) for table in tables]


def draw_person(dice: Dice) -> str:
    """Draw a first name and a surname."""
    return " ".join(draw_words(dice, "first_names", "surnames"))


def draw_people(dice: Dice) -> list[str]:
    """Draw three people who share no name."""
    firsts, lasts = dice.sample(WORDS["first_names"], 3), dice.sample(WORDS["surnames"], 3)
    return [f"{first} {last}" for first, last in zip(firsts, lasts, strict=True)]


def without_article(phrase: str) -> str:
    """The phrase without its article, as in headlines."""
    return phrase.removeprefix("the ").removeprefix("an ").removeprefix("a ")


def contest(names: Sequence[str], numbers: Sequence[int]) -> dict[str, object]:
    """The facts of three competitors: their names {a}, {b}, {c} and their numbers {na}, {nb}, {nc}."""
    return dict(zip(("a", "b", "c", "na", "nb", "nc"), (*names, *numbers), strict=True))


# ---- comparisons: the headline follows from numbers ----


def match(dice: Dice) -> News:
    """A football match: the goals of both halves add up to the result."""
    towns, clubs = dice.sample(WORDS["towns"], 2), dice.sample(WORDS["clubs"], 2)
    home, away = (f"{town} {club}" for town, club in zip(towns, clubs, strict=True))
    h1, a1, h2, a2 = (dice.between(0, 3) for _ in range(4))
    goals = (h1 + h2, a1 + a2)
    winner, loser = (home, away) if goals[0] > goals[1] else (away, home)
    first_half = ("no goals", "one goal", "two goals", "three goals")[h1]
    facts = {"home": home, "away": away, "h1": first_half, "a1": NUMBER_WORDS[a1], "h2": NUMBER_WORDS[h2]}
    facts |= {"a2": NUMBER_WORDS[a2], "winner": winner, "loser": loser, "high": max(goals), "low": min(goals)}
    result = f"{home} and {away} draw" if goals[0] == goals[1] else f"{winner} beat {loser}"
    return News(facts, (home, away), {"result": result})


def vote(dice: Dice) -> News:
    """A council votes for or against a plan."""
    town, plan = draw_words(dice, "towns", "plans")
    yes, no = dice.sample(range(3, 13), 2)
    decides = "approves" if yes > no else "rejects"
    facts = {"town": town, "plan": plan, "bare": without_article(plan)}
    facts |= {"yes": NUMBER_WORDS[yes], "no": NUMBER_WORDS[no], "decides": decides}
    return News(facts, (f"{town} {plan}",))


def race(dice: Dice) -> News:
    """A race: the shortest time wins."""
    town, race = draw_words(dice, "towns", "races")
    people = draw_people(dice)
    times = dice.sample(range(31, 90), 3)
    winner = people[times.index(min(times))]
    return News(contest(people, times) | {"town": town, "race": race, "winner": winner}, (f"{town} {race}",))


def weather(dice: Dice) -> News:
    """The coldest place of a cold night, or the hottest of a hot day."""
    towns = dice.sample(WORDS["towns"], 3)
    cold = dice.chance(0.5)
    degrees = dice.sample(range(2, 15) if cold else range(24, 39), 3)
    extreme = (min if cold else max)(degrees)
    night, coldest = ("the coldest night", "coldest") if cold else ("the hottest day", "hottest")
    place = towns[degrees.index(extreme)]
    facts = contest(towns, degrees) | {"extreme": extreme, "place": place, "night": night, "coldest": coldest}
    return News(facts, (f"{towns[0]} {towns[1]}",))


def fair(dice: Dice) -> News:
    """The number of visitors this year, compared with the years before."""
    town, fair = draw_words(dice, "towns", "fairs")
    this, last, older = (100 * n for n in dice.sample(range(11, 99), 3))
    verdict = "record crowd" if this > max(last, older) else "more visitors" if this > last else "fewer visitors"
    facts = {"town": town, "fair": fair, "this": f"{this:,}", "last": f"{last:,}", "older": f"{older:,}"}
    before = "The year before, there had been" if last > older else "The record so far was"
    return News(facts | {"verdict": verdict}, (f"{town} {fair}",), {"before": before})


def crop(dice: Dice) -> News:
    """A competition: the heaviest vegetable wins."""
    crop, town = draw_words(dice, "crops", "towns")
    people = draw_people(dice)
    kilos = dice.sample(range(21, 99), 3)
    winner = people[kilos.index(max(kilos))]
    facts = contest(people, kilos) | {"crop": crop, "town": town, "winner": winner, "kilos": max(kilos)}
    return News(facts, (f"{town} {crop}",))


def auction(dice: Dice) -> News:
    """An auction by secret bids: the highest wins (spoken bids could only rise)."""
    lot, town = draw_words(dice, "lots", "towns")
    buyers = dice.sample(WORDS["buyers"], 3)
    bids = [10 * n for n in dice.sample(range(11, 99), 3)]
    winner = buyers[bids.index(max(bids))]
    facts = contest(buyers, bids) | {"lot": lot, "town": town, "winner": without_article(winner), "paid": max(bids)}
    return News(facts, (f"{winner} {lot}",))


def price(dice: Dice) -> News:
    """A price is raised or cut."""
    shop, good = dice.choice(WORDS["goods"])
    town = dice.choice(WORDS["towns"])
    before, now = dice.sample(range(2, 10), 2)
    facts = {"shop": shop, "good": good, "town": town, "before": NUMBER_WORDS[before], "now": NUMBER_WORDS[now]}
    return News(facts | {"pounds": now, "raises": "raises" if now > before else "cuts"}, (f"{town} {shop}",))


def mayor(dice: Dice) -> News:
    """An election: the most votes win."""
    town = dice.choice(WORDS["towns"])
    people = draw_people(dice)
    votes = dice.sample(range(201, 999), 3)
    winner = people[votes.index(max(votes))]
    return News(contest(people, votes) | {"town": town, "winner": winner}, (f"{town} {people[0]}",))


# ---- incidents: escapes and rescues, openings and closings, trees planted, things found ----


def escape(dice: Dice) -> News:
    """An animal escapes, is seen in two places, and is caught in a third."""
    animal, town = draw_words(dice, "animals", "towns")
    seen, again, caught = dice.sample(WORDS["sights"], 3)
    origin = dice.choice(WORDS["escapes"])
    facts = {"animal": animal, "town": town, "origin": origin, "seen": seen, "again": again, "caught": caught}
    return News(facts | {"bare": without_article(caught), "by": draw_person(dice)}, (f"{animal} {caught}",))


def rescue(dice: Dice) -> News:
    """An animal is stuck: one rescuer fails, another succeeds."""
    helpless, helpful = dice.sample(WORDS["rescuers"], 2)
    animal, trap, town = draw_words(dice, "trapped", "traps", "towns")
    facts = {"animal": animal, "trap": trap, "bare": without_article(trap), "town": town}
    return News(facts | {"no": helpless, "yes": helpful}, (f"{animal} {trap}",))


def opening(dice: Dice) -> News:
    """Something opens in another month than planned."""
    project, town = draw_words(dice, "projects", "towns")
    planned = dice.between(0, 11)
    delay = dice.choice((-4, -3, -2, -1, 1, 2, 3, 4))
    delay = delay if 0 <= planned + delay <= 11 else -delay
    gap = f"{NUMBER_WORDS[abs(delay)]} month{'s' if abs(delay) > 1 else ''} {'late' if delay > 0 else 'early'}"
    facts = {"project": project, "town": town, "planned": MONTHS[planned], "real": MONTHS[planned + delay], "gap": gap}
    return News(facts, (f"{town} {project}",))


def planting(dice: Dice) -> News:
    """Two school classes plant trees; the headline has their sum."""
    town = dice.choice(WORDS["towns"])
    morning, afternoon = (10 * dice.between(1, 6) for _ in range(2))
    trees, where = draw_words(dice, "saplings", "plots")
    facts = {"town": town, "am": morning, "pm": afternoon, "all": morning + afternoon, "trees": trees, "where": where}
    return News(facts, (f"{trees} {where}",))


def finding(dice: Dice) -> News:
    """Something lost is found in a strange place."""
    lost, hideout, town = draw_words(dice, "lost", "hideouts", "towns")
    facts = {"lost": lost, "hideout": hideout, "bare": without_article(hideout), "town": town}
    return News(facts | {"years": dice.between(2, 40), "owner": draw_person(dice)}, (f"{lost} {hideout}",))


def closing(dice: Dice) -> News:
    """An old shop closes; only one of the numbers is its age."""
    shop, town = draw_words(dice, "closing", "towns")
    facts = {"shop": shop, "town": town, "years": 10 * dice.between(2, 9), "owner": draw_person(dice)}
    return News(facts | {"age": dice.between(55, 89), "staff": dice.between(13, 48)}, (f"{town} {shop}",))


COMPARISONS = (match, vote, race, weather, fair, crop, auction, price, mayor)
INCIDENTS = (escape, rescue, opening, planting, finding, closing)


def draw(dice: Dice) -> Draft:
    """Draw a paragraph and its headline; the key is the facts, without the wording and the unrelated sentences."""
    draw_news = dice.choice((*COMPARISONS, *INCIDENTS))
    news = draw_news(dice)
    topic = draw_news.__name__
    slots = {**news.facts, **news.wording}
    facts = " ".join(map(str, news.facts.values()))
    sentences = [fill(template, dice, slots) for template in WORDS["news"][topic]["body"]]
    fitting = WORDS["unrelated"][1:] if topic == "weather" else WORDS["unrelated"]
    for template in dice.sample(fitting, dice.between(0, 3)):
        sentences.insert(dice.between(1, len(sentences)), fill(template, dice, _unrelated_slots(facts, dice)))
    paragraph = articles(" ".join(capital(sentence) for sentence in sentences))
    headline = capital(fill(WORDS["news"][topic]["headline"], dice, slots))
    return Draft(Pair(paragraph, headline), f"{topic} {facts}", news.combinations)


def _unrelated_slots(facts: str, dice: Dice) -> dict[str, object]:
    """Draw people, numbers and a town that the facts do not name, for the unrelated sentences."""
    return {
        "witness": draw_person(dice),
        "elsewhere": dice.choice([town for town in WORDS["towns"] if town not in facts]),
        "fair": dice.choice(WORDS["fairs"]),
        "age": dice.between(7, 93),
        "years": dice.choice(("two", "three", "four", "ten")),
        "count": dice.between(13, 99),
    }


CORPUS = GeneratedCorpus("headlines", "translation", "a paragraph of local news -> its headline", draw)
