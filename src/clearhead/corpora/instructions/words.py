"""Operations on lists of words: copy, reverse, count, choose, leave out."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from clearhead.corpora.dice import Dice
from clearhead.corpora.grammar.lexicon import ENGLISH
from clearhead.corpora.grammar.templates import fill
from clearhead.corpora.instructions.turns import Turn

Words = tuple[str, ...]

NOUNS: Words = tuple(forms[0] for forms in ENGLISH["noun"].values())
ADJECTIVES: Words = tuple(forms[0] for forms in ENGLISH["adjective"].values())
VERBS: Words = tuple(forms[0] for forms in ENGLISH["verb"].values())
VOCABULARY: Words = tuple(
    dict.fromkeys(word for word in NOUNS + ADJECTIVES + VERBS if word.isalpha() and word.islower())
)


class Operation(NamedTuple):
    """An operation on words: how to ask for it, how to ask as a follow-up, what it does, and the answer.

    In an answer each word comes after a space, as in the question: to copy it is to copy its tokens.
    """

    name: str
    ask: str
    again: str
    apply: Callable[[Words], Words]
    answer: str


OPERATIONS = (
    Operation(
        "copy",
        "[Repeat|Say after me|Copy these words]: {text}",
        "[Say that again.|Once more, please.]",
        tuple,
        "You said: {result}",
    ),
    Operation(
        "reverse",
        "[Write these words in reverse order|Say these words backwards, the last one first]: {text}",
        "[Now in reverse order.|Now the other way round.|And backwards, the last word first?]",
        lambda words: words[::-1],
        "In reverse order: {result}",
    ),
    Operation(
        "count",
        "[How many words are these|Count these words]: {text}",
        "How many words is that?",
        lambda words: (str(len(words)),),
        "There are {result} words.",
    ),
    Operation(
        "first",
        "What is the first word of this list? {text}",
        "[And the first one?|Which one is first?]",
        lambda words: words[:1],
        "The first word is {result}.",
    ),
    Operation(
        "second",
        "What is the second word of this list? {text}",
        "[And the second one?|Which one is second?]",
        lambda words: words[1:2],
        "The second word is {result}.",
    ),
    Operation(
        "last",
        "What is the last word of this list? {text}",
        "[And the last one?|Which one is last?]",
        lambda words: words[-1:],
        "The last word is {result}.",
    ),
    Operation(
        "without the first",
        "Leave out the first word: {text}",
        "[Now without the first one.|Leave out the first one.]",
        lambda words: words[1:],
        "Without the first word: {result}",
    ),
    Operation(
        "without the last",
        "Leave out the last word: {text}",
        "[Now without the last one.|Leave out the last one.]",
        lambda words: words[:-1],
        "Without the last word: {result}",
    ),
)


def about_list(dice: Dice) -> Turn:
    """An operation on a list of three to five words."""
    words = tuple(dice.sample(VOCABULARY, dice.between(3, 5)))
    return _turn(dice.choice(OPERATIONS), words, OPERATIONS, True, dice)


def _turn(operation: Operation, words: Words, known: tuple[Operation, ...], first: bool, dice: Dice) -> Turn:
    """An operation on words; its follow-ups are about the resulting list, if it is as long, or else the same words."""
    result = operation.apply(words)
    listed = result if len(result) == len(words) else words
    unused = tuple(other for other in known if other is not operation)
    following = tuple(
        partial(_turn, other, listed, unused, False) for other in unused if other.name != "copy" or result == listed
    )
    text = ", ".join(words)
    return Turn(
        fill(operation.ask if first else operation.again, dice, {"text": text}),
        operation.answer.format(result=", ".join(result)),
        f"{operation.name}: {text}",
        following,
        tuple(f"{operation.name} {word}" for word in words),
        " ".join(sorted(words)),  # the same for all operations and orders
    )


ABOUT_WORDS = (about_list,)
