"""Every answer is correct: questions are parsed and answered without the corpus. No question is in two splits."""

from __future__ import annotations

import collections
import re
from collections.abc import Callable, Iterator

from clearhead.corpora import instructions
from clearhead.corpora.catalogue import built_in_corpus
from clearhead.corpora.dice import Dice
from clearhead.corpora.instructions.language import AnswerTable, answer_tables
from clearhead.data.examples import Example
from clearhead.text.dialogue import Dialogue

Calculation = Callable[[int, int], int]

SUMS: tuple[tuple[str, Calculation], ...] = (
    (r"(?:What|How much) is (\d+) plus (\d+)\?|Add (\d+) and (\d+)\.|(\d+) \+ (\d+) = \?", lambda a, b: a + b),
    (r"(?:What|How much) is (\d+) minus (\d+)\?|(\d+) - (\d+) = \?", lambda a, b: a - b),
    (r"Take (\d+) away from (\d+)\.", lambda a, b: b - a),
    (r"(?:What|How much) is (\d+) times (\d+)\?|Multiply (\d+) by (\d+)\.|(\d+) x (\d+) = \?", lambda a, b: a * b),
)
ON_LISTS: tuple[tuple[str, str, Callable[[list[str]], list[str]]], ...] = (  # question, answer, what it says
    (r"Repeat|Say after me|Copy|Say that again|Once more", "You said: {}", lambda w: w),
    (r"reverse order|backwards|other way round", "In reverse order: {}", lambda w: w[::-1]),
    (r"How many|Count", "There are {} words.", lambda w: [str(len(w))]),
    (r"Leave out the first|without the first", "Without the first word: {}", lambda w: w[1:]),
    (r"Leave out the last|without the last", "Without the last word: {}", lambda w: w[:-1]),
    (r"first", "The first word is {}.", lambda w: w[:1]),
    (r"second", "The second word is {}.", lambda w: w[1:2]),
    (r"last", "The last word is {}.", lambda w: w[-1:]),
)
AGAIN = re.compile(r"(Now|And|Say that|Once|Leave out the \w+ one|How many words|Which one)[^']*$")


def exchanges(count: int) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """The system message and the questions with their answers, of so many conversations."""
    dice = Dice("tests of instructions")
    for _ in range(count):
        yield exchanged(instructions.draw(dice).example)


def exchanged(dialogue: Example) -> tuple[str, list[tuple[str, str]]]:
    """The system message and the questions with their answers."""
    assert isinstance(dialogue, Dialogue)
    messages = list(dialogue.messages)
    system = messages.pop(0).content if messages[0].role == "system" else ""
    assert [m.role for m in messages] == ["user", "assistant"] * (len(messages) // 2)
    return system, [(a.content, b.content) for a, b in zip(messages[::2], messages[1::2], strict=True)]


def plain_exchanges(count: int) -> Iterator[list[tuple[str, str]]]:
    """Conversations whose answers are not changed by a system message."""
    return (turns for system, turns in exchanges(count) if "every answer" not in system)


def test_sums_are_right() -> None:
    met = collections.Counter[int]()
    for turns in plain_exchanges(4000):
        for ask, answer in turns:
            for n, (pattern, calculate) in enumerate(SUMS):
                if match := re.fullmatch(pattern, ask):
                    a, b = (int(group) for group in match.groups() if group)
                    assert answer == str(calculate(a, b)), turns
                    assert min(a, b) <= 10 or calculate(a, b) <= 10
                    met[n] += 1
    assert len(met) == 4
    assert min(met.values()) > 25


def test_numbers_are_compared_and_sorted() -> None:
    met = collections.Counter[str]()
    for turns in plain_exchanges(4000):
        for ask, answer in turns:
            if match := re.search(r"(largest|biggest|smallest|small to large|large to small)\? ([\d, ]+)$", ask):
                falling = match[1] in ("largest", "biggest", "large to small")
                numbers = sorted(map(int, match[2].split(", ")), reverse=falling)
                listed = ", ".join(map(str, numbers))
                assert answer == (f"In order: {listed}" if " to " in match[1] else f"It is {numbers[0]}"), turns
                met[match[1]] += 1
    assert len(met) == 5
    assert min(met.values()) > 25


def test_lists_are_copied_turned_and_shortened() -> None:
    met = collections.Counter[str]()
    for turns in plain_exchanges(6000):
        words: list[str] = []
        for ask, answer in turns:
            if listed := re.fullmatch(r"([A-Z][^:?]+)[:?] ([a-z]+(?:, [a-z]+){2,4})", ask):
                words = listed[2].split(", ") if not ask.startswith("Which of these is") else []
                task = listed[1]
            elif words and AGAIN.match(ask):
                task = ask
            else:
                words = []
            if words:
                pattern, said, apply = next(each for each in ON_LISTS if re.search(each[0], task))
                result = apply(words)
                assert answer == said.format(", ".join(result)), turns
                words = result if len(result) == len(words) else words
                met[pattern] += 1
    assert set(met) == {pattern for pattern, *_ in ON_LISTS}
    assert min(met.values()) > 100


def test_problems_are_solved() -> None:
    met = collections.Counter[str]()
    for turns in plain_exchanges(6000):
        left = 0
        for ask, answer in turns:
            numbers = [int(n) for n in re.findall(r"\d+", ask)]
            said = [int(n) for n in re.findall(r"\d+", answer)]
            if "does" in ask and "now?" in ask:
                assert said == [sum(numbers)]
                left, kind = said[0], "gain"
            elif "are left?" in ask:
                assert said == [left - numbers[0]]
                left, kind = said[0], "then"
            elif "have left?" in ask:
                assert said == [numbers[0] - numbers[1]]
                kind = "loss"
            elif ask.startswith("There are"):
                assert said == [numbers[0] * numbers[1]]
                kind = "boxes"
            elif richer := re.match(r"(\w+) has .*, and (\w+) has .*Who", ask):
                assert answer == f"{richer[1] if numbers[0] > numbers[1] else richer[2]} has more."
                left, kind = abs(numbers[0] - numbers[1]), "more"
            elif ask == "How many more?":
                assert said == [left]
                kind = "how many more"
            else:
                continue
            met[kind] += 1
            if said == [1]:
                assert not re.search(r"\b1 \w+s\b", answer.replace("glass", "")), answer
    assert len(met) == 6
    assert min(met.values()) > 25


def test_system_messages_are_obeyed() -> None:
    met = collections.Counter[str]()
    for system, turns in exchanges(4000):
        met[system] += 1
        for _, answer in turns:
            assert ("quotation marks" in system) == (answer[0] == answer[-1] == '"')
    assert met[""] > 2000
    assert len(met) == 5


KNOWN = {
    "plural": {"mouse": "mice", "child": "children", "knife": "knives", "baby": "babies", "man": "men", "box": "boxes"},
    "singular": {"women": "woman", "wolves": "wolf", "cities": ""},
    "past": {"see": "saw", "eat": "ate", "go": "went", "buy": "bought", "put": "put", "carry": "carried"},
    "-ing form": {"run": "running", "write": "writing", "swim": "swimming", "play": "playing"},
    "third person": {"go": "goes", "carry": "carries", "watch": "watches", "have": "has"},
    "opposite": {"big": "small", "small": "big", "heavy": "light", "old": "", "light": "", "night": "day"},
}


def test_the_lexicon_is_asked_about_rightly() -> None:
    assert {question.name for question in answer_tables()} == set(KNOWN)
    for question in answer_tables():
        for word, answer in KNOWN[question.name].items():
            assert question.answers.get(word, "") == answer, (question.name, word)


TABLES = {
    re.sub(r"\W*'?\{word\}'?\W*", "'", text): q for q in answer_tables() for text in re.findall(r"[^\[|\]]+", q.ask)
}


def form_asked(ask: str) -> tuple[str, AnswerTable | None]:
    """The word that a question is about, and which table answers it."""
    quoted = [word for word in re.findall(r"(?<!\w)'((?:[^']|'(?=\w))+)'", ask) if word not in ("the", "she")]
    word = quoted[0] if quoted else ""
    return word, TABLES.get(re.sub(rf"\W*'{re.escape(word)}'\W*", "'", ask))


def test_questions_about_words_are_answered_from_their_table() -> None:
    met = collections.Counter[str]()
    for turns in plain_exchanges(5000):
        question = None
        for ask, answer in turns:
            word, asked = form_asked(ask)
            question = question if re.match(r"And '|What about '", ask) else asked
            if question:
                assert answer == question.answers[word], turns
                met[question.name] += 1
    assert set(met) == set(KNOWN)


def test_only_one_of_the_things_is_an_animal() -> None:
    animals = {"fox", "cat", "horse", "elephant", "owl", "bee", "wolf"}
    others = {"chair", "piano", "apple", "car", "school", "baker", "queen", "sofa"}
    met = 0
    for turns in plain_exchanges(4000):
        for ask, answer in turns:
            if ask.startswith("Which of these is an animal?"):
                assert answer not in others
                assert sum(word in animals for word in re.findall(r"[a-z]+", ask)) <= 1
                met += 1
    assert met > 20


def alone(ask: str, before: tuple[str, ...]) -> tuple[str, ...]:
    """A follow-up question in a normal form that does not depend on wording or on earlier turns."""
    if another := re.fullmatch(r"(?:And|What about) '(.+)'\?", ask):
        return before[0], another[1]
    word, form = form_asked(ask)
    if form:
        return form.name, word
    for sign, (pattern, _) in zip("+--x", SUMS, strict=True):
        if match := re.fullmatch(pattern, ask):
            return sign, *sorted(number for number in match.groups() if number)
    if listed := re.search(r"[:?] ([a-z]+(?:, [a-z]+){2,5})$", ask):
        return "list", *sorted(listed[1].split(", ")), *re.findall(r"Which of these is.*\?", ask)
    if before[:1] == ("list",) and AGAIN.match(ask):
        return before
    if re.match(r"Then|Now|How many more", ask):
        return *before, ask
    return (ask.split(": ")[-1].lower(),)


def questions_of(split: str, size: int) -> collections.Counter[tuple[str, ...]]:
    """All questions of a split."""
    met = collections.Counter[tuple[str, ...]]()
    for _, turns in map(exchanged, built_in_corpus("instructions", size=size).read(split)):
        question: tuple[str, ...] = ()
        for ask, _ in turns:
            question = alone(ask, question)
            met[question] += 1
    return met


def test_no_question_is_in_two_splits_and_what_must_be_memorised_is_in_train() -> None:
    train = questions_of("train", 8000)
    assert sum(question[0] in KNOWN for question in train) > 400  # of 900 that there are
    memorised = {(question.name, word) for question in answer_tables() for word in question.memorised}
    assert {("plural", "mouse"), ("past", "go"), ("opposite", "big"), ("-ing form", "run")} <= memorised
    assert not {("plural", "cat"), ("plural", "baby"), ("opposite", "small")} & memorised
    for split in ("valid", "test", "compositional"):
        held_out = questions_of(split, 8000).keys()
        assert len(held_out) > 600
        assert not held_out & (train.keys() | memorised), split
