"""Questions about language: English word forms, opposites, categories, French words, and translation."""

from __future__ import annotations

from collections import Counter
from functools import cache, partial
from typing import NamedTuple

from clearhead.corpora import phrasebook
from clearhead.corpora.dice import Dice
from clearhead.corpora.grammar import french
from clearhead.corpora.grammar.french_spelling import spell
from clearhead.corpora.grammar.lexicon import ENGLISH, FRENCH, expand_kinds
from clearhead.corpora.grammar.meaning import NounPhrase
from clearhead.corpora.grammar.templates import articles, capital, fill
from clearhead.corpora.instructions.turns import MEMORISED, Turn
from clearhead.data.examples import Pair

CATEGORIES: dict[str, str] = ENGLISH["instructions"]["categories"]
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
    adjectives = {forms[0]: forms[1] for forms in ENGLISH["adjective"].values() if len(forms) == 2}
    pairs = ENGLISH["instructions"]["opposites"]
    one_way = ENGLISH["instructions"]["one_way"]
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
        _of_forms(
            "comparative", "[What is the comparative of '{word}'?|Give the comparative of '{word}'.]", adjectives
        ),
        AnswerTable(
            "opposite",
            "[What is the opposite of '{word}'?|Give the opposite of '{word}'.]",
            opposites,
            frozenset(given),
        ),
        *_french_tables(),
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


def _french_tables() -> tuple[AnswerTable, ...]:
    """Tables about French nouns that have one gender and one meaning."""
    entries = {
        concept: entry for concept, entry in FRENCH["noun"].items() if ("masculine" in entry) != ("feminine" in entry)
    }
    genders = {c: "masculine" if "masculine" in entry else "feminine" for c, entry in entries.items()}
    forms = {concept: entry[genders[concept]] for concept, entry in entries.items()}
    words = {concept: form[0] for concept, form in forms.items()}
    clear = [concept for concept, word in words.items() if list(words.values()).count(word) == 1]
    english = {concept: ENGLISH["noun"][concept][0] for concept in clear}
    return (
        AnswerTable(
            "French",
            "[What is the French word for '{word}'?|How do you say '{word}' in French?]",
            {english[c]: words[c] for c in clear},
        ),
        AnswerTable(
            "English",
            "[What does the French word '{word}' mean?|What is '{word}' in English?]",
            {words[c]: english[c] for c in clear},
        ),
        AnswerTable(
            "gender",
            "[Is the French noun '{word}' masculine or feminine?|What gender does the French noun '{word}' have?]",
            {words[c]: genders[c] for c in clear},
        ),
        AnswerTable(
            "French article",
            "[Put the French word for 'the' in front of '{word}'.|Le, la or l'? The noun is '{word}'.]",
            {words[c]: spell(french.noun_phrase(NounPhrase(c))) for c in clear if ENGLISH["noun"][c][-1] != "cards"},
        ),
        _of_forms(
            "French plural",
            "What is the plural of the French noun '{word}'?",
            {form[0]: form[1] for c, form in forms.items() if c in clear and len(form) == 2},
        ),
    )


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
    """The same question about another word."""
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


def about_kind(dice: Dice) -> Turn:
    """Whether a noun belongs to a category."""
    asked, real = dice.choice(tuple(CATEGORIES)), dice.choice(tuple(CATEGORIES))
    asked = real if dice.chance(0.5) else asked
    noun = dice.choice(_members(real))
    name = CATEGORIES[asked]
    yes = noun in _members(asked)
    answer = f"Yes, a {noun} is a {name}." if yes else f"No, a {noun} is not a {name}."
    ask = fill("[Is a {noun} a {name}?|Tell me: is a {noun} a {name}?]", dice, {"noun": noun, "name": name})
    return Turn(articles(ask), articles(answer), f"is {noun} {asked}")


def about_member(dice: Dice) -> Turn:
    """Which of several nouns belongs to a category."""
    category, *others = dice.sample(tuple(CATEGORIES), 4)
    noun = dice.choice(_members(category))
    wrong = [dice.choice([n for n in _members(other) if n not in _members(category)]) for other in others]
    listed = ", ".join(dice.sample([noun, *wrong], 4))
    key = " ".join((category, noun, *sorted(wrong)))  # independent of the order in which they are listed
    return Turn(articles(f"Which of these is a {CATEGORIES[category]}? {listed}"), noun, key)


def about_translation(dice: Dice) -> Turn:
    """A sentence of the phrasebook, English to French: the other direction would have several correct answers."""
    draft = phrasebook.draw(dice, invented=0.0)
    assert isinstance(draft.example, Pair)
    ask = fill("[Translate into French|Say this in French|In French, please]: ", dice, {})
    source, target = _punctuated(draft.example.source), _punctuated(draft.example.target)
    return Turn(ask + source, target, draft.group, (), draft.combinations)


def _punctuated(sentence: str) -> str:
    """The sentence with a capital and a full stop, if it has none yet."""
    return capital(sentence) + ("" if sentence.endswith(("?", ".")) else ".")


ABOUT_LANGUAGE = (about_form, about_form, about_form, about_kind, about_member, about_translation, about_translation)
