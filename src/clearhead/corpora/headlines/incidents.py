"""News of incidents: escapes and rescues, openings and closings, trees planted, things found."""

from __future__ import annotations

from clearhead.corpora.dice import Dice
from clearhead.corpora.grammar.lexicon import read_lexicon
from clearhead.corpora.headlines.news import NUMBER_WORDS, News, draw_person, draw_word, without_article

MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip


def escape(dice: Dice) -> News:
    """An animal escapes, is seen in two places, and is caught in a third."""
    animal = draw_word("animals", dice)
    town = draw_word("towns", dice)
    seen, seen_again, caught = dice.sample(read_lexicon("headlines")["sights"], 3)
    facts = {
        "animal": animal,
        "town": town,
        "origin": draw_word("escapes", dice),
        "seen": seen,
        "again": seen_again,
        "caught": caught,
        "bare": without_article(caught),
        "by": draw_person(dice),
    }
    body = (
        "A {animal} [ran away|escaped] from {origin} in {town} on [Monday|Tuesday|Friday].",
        "The {animal} was [first seen|spotted] near {seen}, [then|later|an hour later] near {again}.",
        "[In the end|At last|Towards evening] {by} caught the {animal} in {caught}.",
    )
    return News("escape", facts, body, "Escaped {animal} caught in {town} {bare}", (f"{animal} {caught}",))


def rescue(dice: Dice) -> News:
    """An animal is stuck: one rescuer fails, another succeeds."""
    words = read_lexicon("headlines")
    helpless, helpful = dice.sample(words["rescuers"], 2)
    animal = draw_word("trapped", dice)
    trap = draw_word("traps", dice)
    town = draw_word("towns", dice)
    facts = {
        "animal": animal,
        "trap": trap,
        "bare": without_article(trap),
        "town": town,
        "no": helpless,
        "yes": helpful,
    }
    body = (
        "A {animal} got stuck in {trap} in {town} [on Wednesday|on Sunday|last night].",
        "[{No} came first, but without success|{No} tried for hours, but in vain].",
        "[Later|Finally] {yes} [freed the {animal}|reached the {animal} with a rope|got the {animal} out unharmed].",
    )
    return News("rescue", facts, body, "{yes} rescue {animal} from {bare} in {town}", (f"{animal} {trap}",))


def opening(dice: Dice) -> News:
    """Something opens in another month than planned."""
    project = draw_word("projects", dice)
    town = draw_word("towns", dice)
    planned = dice.between(0, 11)
    delay = dice.choice((-4, -3, -2, -1, 1, 2, 3, 4))
    delay = delay if 0 <= planned + delay <= 11 else -delay
    months = f"{NUMBER_WORDS[abs(delay)]} month{'s' if abs(delay) > 1 else ''}"
    facts = {
        "project": project,
        "town": town,
        "planned": MONTHS[planned],
        "real": MONTHS[planned + delay],
        "gap": f"{months} {'late' if delay > 0 else 'early'}",
    }
    body = (
        "{town} has a new {project}[ at last|, and is proud of it|].",
        "[The opening had been planned for|The builders had promised to finish in] {planned}.",
        "[The first visitors came in {real}|The mayor cut the ribbon in {real}][ of the same year|].",
    )
    return News("opening", facts, body, "New {town} {project} opens {gap}", (f"{town} {project}",))


def planting(dice: Dice) -> News:
    """Two school classes plant trees; the headline has their sum."""
    town = draw_word("towns", dice)
    morning = 10 * dice.between(1, 6)
    afternoon = 10 * dice.between(1, 6)
    trees = draw_word("saplings", dice)
    where = draw_word("plots", dice)
    facts = {"town": town, "am": morning, "pm": afternoon, "all": morning + afternoon, "trees": trees, "where": where}
    body = (
        "[School was different in {town} on Friday|The pupils of {town} left their desks on Friday].",
        "[The younger ones|The first class] planted {am} {trees} {where}.",
        "[The older ones|The sixth class] planted [another {pm}|{pm} more].",
    )
    return News("planting", facts, body, "{town} pupils plant {all} {trees} {where}", (f"{trees} {where}",))


def finding(dice: Dice) -> News:
    """Something lost is found in a strange place."""
    lost = draw_word("lost", dice)
    hideout = draw_word("hideouts", dice)
    town = draw_word("towns", dice)
    years = dice.between(2, 40)
    facts = {
        "lost": lost,
        "hideout": hideout,
        "bare": without_article(hideout),
        "town": town,
        "years": years,
        "owner": draw_person(dice),
    }
    body = (
        "{owner} of {town} lost a {lost} {years} years ago.",
        "[The family searched everywhere|A reward was offered], [but nobody found it|in vain].",
        "[This week|On Tuesday] the {lost} [turned up|came to light] in {hideout}.",
    )
    return News("finding", facts, body, "Lost {lost} found in {bare} after {years} years", (f"{lost} {hideout}",))


def closing(dice: Dice) -> News:
    """An old shop closes; only one of the numbers is its age."""
    shop = draw_word("closing", dice)
    town = draw_word("towns", dice)
    years = 10 * dice.between(2, 9)
    facts = {
        "shop": shop,
        "town": town,
        "years": years,
        "owner": draw_person(dice),
        "age": dice.between(55, 89),
        "staff": dice.between(13, 48),
    }
    body = (
        "[There is sad news from {town}|A piece of {town} is disappearing].",
        "The {shop}, which opened {years} years ago, [will shut its doors|is to close] [in June|in autumn|soon].",
        "[{owner}, the owner, is {age} years old|It gave work to {staff} people|The owner, {owner}, is {age}].",
    )
    return News("closing", facts, body, "{town} {shop} closes after {years} years", (f"{town} {shop}",))


INCIDENTS = (escape, rescue, opening, planting, finding, closing)
