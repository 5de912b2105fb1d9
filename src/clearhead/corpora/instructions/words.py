"""Operations on lists of words: copy, reverse, count, choose, leave out."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from clearhead.corpora.dice import Dice
from clearhead.corpora.grammar.lexicon import ENGLISH, read_lexicon
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
    """An operation on words: how to ask for it, how to ask as a follow-up, the answer, and what it does.

    In an answer each word comes after a space, as in the question: to copy it is to copy its tokens.
    """

    name: str
    ask: str
    again: str
    answer: str
    apply: Callable[[Words], Words]


APPLY: dict[str, Callable[[Words], Words]] = {
    "copy": tuple,
    "reverse": lambda words: words[::-1],
    "count": lambda words: (str(len(words)),),
    "first": lambda words: words[:1],
    "second": lambda words: words[1:2],
    "last": lambda words: words[-1:],
    "without the first": lambda words: words[1:],
    "without the last": lambda words: words[:-1],
}
OPERATIONS = tuple(Operation(**row, apply=APPLY[row["name"]]) for row in read_lexicon("instructions")["operations"])


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
