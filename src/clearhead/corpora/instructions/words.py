"""Operations on words as strings: copy, reverse, sort, count, spell."""

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
    """An operation on words: how to ask for it, how to ask as a follow-up, and what it does."""

    name: str
    ask: str
    again: str
    apply: Callable[[Words], Words]


ON_LISTS = (
    Operation("copy", "[Repeat|Say after me|Copy these words]: {text}", "[Say that again.|Once more, please.]", tuple),
    Operation(
        "reverse",
        "[Write these words in reverse order|Say these words backwards, the last one first]: {text}",
        "[Now in reverse order.|Now the other way round.|And backwards, the last word first?]",
        lambda words: words[::-1],
    ),
    Operation(
        "sort",
        "[Sort these words from A to Z|Put these words in alphabetical order]: {text}",
        "[Now in alphabetical order.|Sort them from A to Z.]",
        lambda words: tuple(sorted(words)),
    ),
    Operation(
        "capitals",
        "[Write in capital letters|Put this in capitals]: {text}",
        "[Now in capital letters.|And in capitals?]",
        lambda words: tuple(word.upper() for word in words),
    ),
    Operation(
        "count",
        "[How many words are these|Count these words]: {text}",
        "How many words is that?",
        lambda words: (str(len(words)),),
    ),
    Operation(
        "first",
        "What is the first word of this list? {text}",
        "[And the first one?|Which one is first?]",
        lambda words: words[:1],
    ),
    Operation(
        "last",
        "What is the last word of this list? {text}",
        "[And the last one?|Which one is last?]",
        lambda words: words[-1:],
    ),
    Operation(
        "longest",
        "Which of these words is the longest? {text}",
        "[Which one is the longest?|And the longest one?]",
        lambda words: (max(words, key=len),),
    ),
)

ON_LETTERS = (
    Operation(
        "spell", "[Spell '{text}'.|How do you spell '{text}'?]", "Now spell the word.", lambda w: ("-".join(w[0]),)
    ),
    Operation(
        "backwards",
        "[Write '{text}' backwards.|What is '{text}' read from right to left?]",
        "[Now write the word backwards.|And the word backwards?]",
        lambda words: (words[0][::-1],),
    ),
    Operation(
        "letters",
        "[How many letters does '{text}' have?|Count the letters of '{text}'.]",
        "[How many letters does the word have?|And how many letters are there?]",
        lambda words: (str(len(words[0])),),
    ),
    Operation(
        "first letter",
        "[What is the first letter of '{text}'?|Which letter does '{text}' begin with?]",
        "And the first letter?",
        lambda words: (words[0][0],),
    ),
    Operation(
        "last letter",
        "[What is the last letter of '{text}'?|Which letter does '{text}' end with?]",
        "And the last letter?",
        lambda words: (words[0][-1],),
    ),
    Operation(
        "capital word",
        "Write '{text}' in capital letters.",
        "[Now in capital letters.|And in capitals?]",
        lambda words: (words[0].upper(),),
    ),
)


def about_list(dice: Dice) -> Turn:
    """An operation on a list of three to six words."""
    words = tuple(dice.sample(VOCABULARY, dice.between(3, 6)))
    lengths = sorted(len(word) for word in words)
    if lengths[-1] == lengths[-2]:  # the longest word must be unique
        return about_list(dice)
    return _turn(dice.choice(ON_LISTS), words, ON_LISTS, True, dice)


def about_word(dice: Dice) -> Turn:
    """An operation on one word."""
    return _turn(dice.choice(ON_LETTERS), (dice.choice(VOCABULARY),), ON_LETTERS, True, dice)


def _turn(operation: Operation, words: Words, known: tuple[Operation, ...], first: bool, dice: Dice) -> Turn:
    """An operation on words; its follow-ups are about the resulting list, or else about the same words."""
    result = operation.apply(words)
    listed = result if len(words) > 1 and len(result) == len(words) else words
    unused = tuple(other for other in known if other is not operation)
    following = tuple(
        partial(_turn, other, listed, unused, False) for other in unused if other.name != "copy" or result == listed
    )
    text = ", ".join(words)
    group = " ".join(sorted(words)).lower() if len(words) > 1 else ""  # the same for all operations and orders
    return Turn(
        fill(operation.ask if first else operation.again, dice, {"text": text}),
        ", ".join(result),
        f"{operation.name}: {text}",
        following,
        tuple(f"{operation.name} {word.lower()}" for word in words),
        group,
    )


ABOUT_WORDS = (about_list, about_list, about_word)
