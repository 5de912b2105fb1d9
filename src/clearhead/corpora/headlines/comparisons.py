"""News whose headline follows from numbers: goals, votes, minutes, degrees, visitors, kilos, pounds."""

from __future__ import annotations

from clearhead.corpora.dice import Dice
from clearhead.corpora.grammar.lexicon import read_lexicon
from clearhead.corpora.headlines.news import NUMBER_WORDS, News, draw_people, draw_word, without_article


def match(dice: Dice) -> News:
    """A football match: the goals of both halves add up to the result."""
    words = read_lexicon("headlines")
    a, b = dice.sample(words["towns"], 2)
    clubs = dice.sample(words["clubs"], 2)
    home, away = f"{a} {clubs[0]}", f"{b} {clubs[1]}"
    first, second = [dice.between(0, 3), dice.between(0, 3)], [dice.between(0, 3), dice.between(0, 3)]
    goals = [first[0] + second[0], first[1] + second[1]]
    winner, loser = (home, away) if goals[0] > goals[1] else (away, home)
    facts = {
        "home": home,
        "away": away,
        "h1": ("no goals", "one goal", "two goals", "three goals")[first[0]],
        "a1": NUMBER_WORDS[first[1]],
        "h2": NUMBER_WORDS[second[0]],
        "a2": NUMBER_WORDS[second[1]],
        "winner": winner,
        "loser": loser,
        "high": max(goals),
        "low": min(goals),
    }
    body = (
        "[{home} met {away}|{home} played {away}|It was {home} against {away}] [on Saturday|on Sunday|last night].",
        "At half-time, {home} had {h1} and {away} {a1}.",
        "[After the break|In the second half], {home} added {h2} and {away} {a2}.",
    )
    drawn = goals[0] == goals[1]
    headline = "{home} and {away} draw {high}-{low}" if drawn else "{winner} beat {loser} {high}-{low}"
    return News("match", facts, body, headline, (home, away))


def vote(dice: Dice) -> News:
    """A council votes for or against a plan."""
    town = draw_word("towns", dice)
    plan = draw_word("plans", dice)
    votes = dice.sample(range(3, 13), 2)
    facts = {
        "town": town,
        "plan": plan,
        "bare": without_article(plan),
        "yes": NUMBER_WORDS[votes[0]],
        "no": NUMBER_WORDS[votes[1]],
        "decides": "approves" if votes[0] > votes[1] else "rejects",
    }
    body = (
        "[Does {town} need {plan}?|{town} has talked about {plan} for years.|Some people in {town} want {plan}.]",
        "[On Monday|On Thursday|Last night] the council [met to decide|had to decide|took a vote].",
        "[{Yes} councillors were in favour and {no} against|{No} councillors were against and {yes} in favour].",
    )
    return News("vote", facts, body, "{town} council {decides} {bare}", (f"{town} {plan}",))


def race(dice: Dice) -> News:
    """A race: the shortest time wins."""
    town = draw_word("towns", dice)
    race = draw_word("races", dice)
    people = draw_people(dice)
    times = dice.sample(range(31, 90), 3)
    facts = {
        **dict(zip("abc", people, strict=True)),
        **dict(zip(("ta", "tb", "tc"), times, strict=True)),
        "town": town,
        "race": race,
        "winner": people[times.index(min(times))],
    }
    body = (
        "[The {race} of {town} took place [on Sunday|on Saturday]|[On Sunday|On Saturday], {town} held its {race}].",
        "{a} needed {ta} minutes[, while|;] {b} [took|needed] {tb}.",
        "{c} [arrived after|finished in] {tc} minutes.",
    )
    return News("race", facts, body, "{winner} wins {town} {race}", (f"{town} {race}",))


def weather(dice: Dice) -> News:
    """The coldest place of a cold night, or the hottest of a hot day."""
    towns = dice.sample(read_lexicon("headlines")["towns"], 3)
    cold = dice.chance(0.5)
    degrees = dice.sample(range(2, 15) if cold else range(24, 39), 3)
    extreme = (min if cold else max)(degrees)
    facts = {
        **dict(zip("abc", towns, strict=True)),
        **dict(zip(("ta", "tb", "tc"), degrees, strict=True)),
        "extreme": extreme,
        "place": towns[degrees.index(extreme)],
        "night": "the coldest night" if cold else "the hottest day",
        "coldest": "coldest" if cold else "hottest",
    }
    body = (
        "It was {night} of the [year|season|month][ so far|].",
        "[{a} measured {ta} degrees, and {b} {tb}|In {a} it was {ta} degrees, in {b} {tb}].",
        "[In {c} it was {tc} degrees|{c} reported {tc} degrees].",
    )
    return News("weather", facts, body, "{place} {coldest} at {extreme} degrees", (f"{towns[0]} {towns[1]}",))


def fair(dice: Dice) -> News:
    """The number of visitors this year, compared with the years before."""
    town = draw_word("towns", dice)
    fair = draw_word("fairs", dice)
    this, last, older = (100 * n for n in dice.sample(range(11, 99), 3))
    record = this > max(last, older)
    verdict = "record crowd" if record else "more visitors" if this > last else "fewer visitors"
    facts = {
        "town": town,
        "fair": fair,
        "this": f"{this:,}",
        "last": f"{last:,}",
        "older": f"{older:,}",
        "verdict": verdict,
    }
    body = (
        "[{this} people came to|{this} visitors were counted at] the {fair} in {town} this year.",
        "Last year there were {last}.",
        "The year before, there had been {older}." if last > older else "The record so far was {older}.",
    )
    return News("fair", facts, body, "{verdict} at {town} {fair}", (f"{town} {fair}",))


def crop(dice: Dice) -> News:
    """A competition: the heaviest vegetable wins."""
    crop = draw_word("crops", dice)
    town = draw_word("towns", dice)
    people = draw_people(dice)
    kilos = dice.sample(range(21, 99), 3)
    facts = {
        **dict(zip("abc", people, strict=True)),
        **dict(zip(("ka", "kb", "kc"), kilos, strict=True)),
        "crop": crop,
        "town": town,
        "winner": people[kilos.index(max(kilos))],
        "kilos": max(kilos),
    }
    body = (
        "[Who has grown the biggest {crop} in {town}?|{town} was looking for its heaviest {crop}.]",
        "The {crop} of {a} weighed {ka} kilos, and that of {b} {kb}.",
        "{c} [brought one of|came with one of] {kc} kilos.",
    )
    return News("crop", facts, body, "{winner} wins in {town} with {kilos}-kilo {crop}", (f"{town} {crop}",))


def auction(dice: Dice) -> News:
    """An auction by secret bids: the highest wins (spoken bids could only rise)."""
    lot = draw_word("lots", dice)
    town = draw_word("towns", dice)
    buyers = dice.sample(read_lexicon("headlines")["buyers"], 3)
    bids = [10 * n for n in dice.sample(range(11, 99), 3)]
    winner = buyers[bids.index(max(bids))]
    facts = {
        **dict(zip("abc", buyers, strict=True)),
        **dict(zip(("ba", "bb", "bc"), bids, strict=True)),
        "lot": lot,
        "town": town,
        "winner": without_article(winner),
        "paid": max(bids),
    }
    body = (
        "A {lot} was sold [to the highest bidder|by secret bids] in {town} [on Friday|last week|yesterday].",
        "[{A} offered {ba} pounds|The first envelope held a bid of {ba} pounds from {a}].",
        "[{B} and {c} wanted the {lot}, too, and offered {bb} and {bc} pounds|{B} offered {bb} pounds, and {c} {bc}].",
    )
    return News("auction", facts, body, "{winner} buys {lot} for {paid} pounds", (f"{winner} {lot}",))


def price(dice: Dice) -> News:
    """A price is raised or cut."""
    shop, good = dice.choice(read_lexicon("headlines")["goods"])
    town = draw_word("towns", dice)
    before, now = dice.sample(range(2, 10), 2)
    facts = {
        "shop": shop,
        "good": good,
        "town": town,
        "before": NUMBER_WORDS[before],
        "now": NUMBER_WORDS[now],
        "pounds": now,
        "raises": "raises" if now > before else "cuts",
    }
    body = (
        "[There is news for customers of the {shop} in {town}|People in {town} are talking about the {shop}].",
        "[Until last week|Until May|For years] the {shop} [sold|offered] {good} for {before} pounds.",
        "[[Since Monday|Since yesterday] the {shop} has asked|From now on the {shop} [asks|takes]] {now}.",
    )
    return News("price", facts, body, "{town} {shop} {raises} price of {good} to {pounds} pounds", (f"{town} {shop}",))


def mayor(dice: Dice) -> News:
    """An election: the most votes win."""
    town = draw_word("towns", dice)
    people = draw_people(dice)
    votes = dice.sample(range(201, 999), 3)
    facts = {
        **dict(zip("abc", people, strict=True)),
        **dict(zip(("va", "vb", "vc"), votes, strict=True)),
        "town": town,
        "winner": people[votes.index(max(votes))],
    }
    body = (
        "[The people of {town} have chosen a new mayor|{town} has voted for a new mayor].",
        "{a} [got|received] {va} votes, {b} {vb}.",
        "{c} [received|got] {vc} votes.",
    )
    return News("mayor", facts, body, "{winner} elected mayor of {town}", (f"{town} {people[0]}",))


COMPARISONS = (match, vote, race, weather, fair, crop, auction, price, mayor)
