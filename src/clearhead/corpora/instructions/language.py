"""Questions about language: English word forms, opposites and categories."""

from __future__ import annotations

from collections import Counter
from functools import cache, partial
from typing import NamedTuple

from clearhead.corpora.dice import Dice
from clearhead.corpora.grammar.lexicon import ENGLISH, expand_kinds, read_lexicon
from clearhead.corpora.grammar.templates import articles, fill
from clearhead.corpora.instructions.turns import MEMORISED, Turn

CATEGORIES: dict[str, str] = read_lexicon("instructions")["categories"]
MIN_WORDS_OF_A_RULE = 6  # words of a table that must change in the same way to count as a rule


class AnswerTable(NamedTuple):
    """A kind of question with a table of its answers; those of the words in `memorised` follow no rule."""

    name: str
    ask: str
    answers: dict[str, str]
    memorised: frozenset[str] = frozenset()


@cache
def answer_tables() -> tuple[AnswerTable, ...]:
    """All tables of answers."""
    nouns = {forms[0]: forms[1] for forms in ENGLISH["noun"].values() if len(forms) == 2}
    verbs = {forms[0]: forms for forms in ENGLISH["verb"].values() if len(forms) == 4 and forms[0] != "be"}
    pairs = read_lexicon("instructions")["opposites"]
    one_way = read_lexicon("instructions")["one_way"]
    given = dict(pairs) | dict(one_way)  # the other direction follows from these
    opposites = given | {second: first for first, second in pairs}
    return (
        _of_forms("plural", "[What is the plural of '{word}'?|Give the plural of '{word}'.]", nouns),
        _of_forms("singular", "[What is the singular of '{word}'?|Give the singular of '{word}'.]", _inverted(nouns)),
        _of_forms("past", "[What is the past tense of '{word}'?|Put '{word}' in the past.]", _column(verbs, 2)),
        _of_forms(
            "-ing form", "[What is the -ing form of '{word}'?|Give the -ing form of '{word}'.]", _column(verbs, 3)
        ),
        _of_forms("third person", "What does '{word}' become after 'she' in the present?", _column(verbs, 1)),
        AnswerTable(
            "opposite",
            "[What is the opposite of '{word}'?|Give the opposite of '{word}'.]",
            opposites,
            frozenset(given),
        ),
    )


def _of_forms(name: str, ask: str, answers: dict[str, str]) -> AnswerTable:
    """A table of word forms; a word is memorised if too few others change in the same way."""
    changes = {word: _change(word, form) for word, form in answers.items()}
    count = Counter(changes.values())
    return AnswerTable(
        name, ask, answers, frozenset(word for word in answers if count[changes[word]] < MIN_WORDS_OF_A_RULE)
    )


def _change(word: str, form: str) -> str:
    """How a word changes, independent of the word: "~s" for cat, "more ~" for famous, "-y +ies" for baby."""
    if word in form:
        return form.replace(word, "~")
    same = next((i for i, (a, b) in enumerate(zip(word, form, strict=False)) if a != b), len(form))
    return f"-{word[same:]} +{form[same:]}"


def _inverted(table: dict[str, str]) -> dict[str, str]:
    """The table in the other direction, without words that would have two answers or do not change."""
    values = list(table.values())
    return {value: key for key, value in table.items() if values.count(value) == 1 and key != value}


def _column(table: dict[str, list[str]], index: int) -> dict[str, str]:
    """One form of each word."""
    return {word: forms[index] for word, forms in table.items()}


def about_form(dice: Dice) -> Turn:
    """A question from a table; the follow-up asks the same about another word."""
    question = dice.choice(answer_tables())
    word = dice.choice(tuple(question.answers))
    return _answered(question, word, fill(question.ask, dice, {"word": word}))


def _another(question: AnswerTable, before: str, dice: Dice) -> Turn:
    """Ask the question again, about another word."""
    word = dice.choice([word for word in question.answers if word != before])
    return _answered(question, word, fill("[And '{word}'?|What about '{word}'?]", dice, {"word": word}))


def _answered(question: AnswerTable, word: str, ask: str) -> Turn:
    """A question about a word with its answer; the follow-up asks about another word."""
    group = MEMORISED if word in question.memorised else ""
    following = partial(_another, question, word)
    return Turn(ask, question.answers[word], f"{question.name} of {word}", (following,), group=group)


@cache
def _members(category: str) -> tuple[str, ...]:
    """The countable English nouns of a category."""
    return tuple(ENGLISH["noun"][noun][0] for noun in expand_kinds(category) if len(ENGLISH["noun"][noun]) == 2)


def about_member(dice: Dice) -> Turn:
    """Which of several nouns belongs to a category."""
    category, *others = dice.sample(tuple(CATEGORIES), 4)
    noun = dice.choice(_members(category))
    wrong = [dice.choice([n for n in _members(other) if n not in _members(category)]) for other in others]
    listed = ", ".join(dice.sample([noun, *wrong], 4))
    key = " ".join((category, noun, *sorted(wrong)))  # independent of the order in which they are listed
    return Turn(articles(f"Which of these is a {CATEGORIES[category]}? {listed}"), noun, key)


ABOUT_LANGUAGE = (about_form, about_member)
