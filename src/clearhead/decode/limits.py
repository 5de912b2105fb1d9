"""How many tokens a run can read and write; warnings about texts that are unlike its training data."""

from __future__ import annotations

import re
import sys
from functools import cache
from pathlib import Path

from clearhead.config import ModelConfig, Recipe, require
from clearhead.runs import Run
from clearhead.text.words import WORDS_FILE, read_words, words_of

SHOWN_WORDS = 5
NUMBER = re.compile(r"\d+(?:[.,]\d+)?")
THOUSANDS = re.compile(r"(?<=\d)[.,'’\s](?=\d{3}(?!\d))")  # what separates groups of three digits, in any language
QUOTED = 40  # characters of a text, or of a word, in a warning about it
LONGEST_PROMPT = 16  # times data.max_length; attention to more takes minutes, and the output is noise


def tokens_left(model: ModelConfig, read: int) -> int:
    """How many tokens a model can write after it has read `read` tokens; only learned positions have a limit."""
    return sys.maxsize if model.position_limit is None else model.position_limit - read


def check_prompt_length(recipe: Recipe, read: int) -> None:
    """Refuse a prompt that is far longer than any text that the model was trained on."""
    longest = recipe.data.max_length
    require(
        read <= LONGEST_PROMPT * longest,
        f"a prompt of {read:,} tokens is more than {LONGEST_PROMPT} times as long as the texts that the model was "
        f"trained on (data.max_length = {longest}); shorten it",
    )


def check_tokens(model: ModelConfig, read: int, tokens: int) -> None:
    """Refuse to write no tokens, or more than there are learned positions."""
    require(1 <= tokens < 2**31, f"tokens = {tokens}: must be at least 1, and less than 2^31")
    require(
        tokens <= tokens_left(model, read),
        f"a prompt of {read:,} tokens and {tokens:,} new ones are more than model.max_length = {model.max_length} "
        "learned positions; shorten the prompt, or ask for fewer tokens",
    )


def warnings_about(run: Run, text: str, named: set[str] | None = None) -> list[str]:
    """Return why the output for a text may be poor: it is too long, or has words that were not in the training data.

    Words in `named` are not reported again; newly reported words are added to it.
    """
    tokenizer = run.tokenizers.source
    if tokenizer.has("mask"):
        text = text.replace(tokenizer.piece(tokenizer.mask), " ")  # the place of a word, for `clearhead fill`
    ids = tokenizer.encode(text)
    longest = run.longest or run.recipe.data.max_length
    found = []
    if len(ids) > longest:
        found.append(f"it has {len(ids):,} tokens; the longest text in the training data had {longest:,}")
    if tokenizer.has("unknown") and (unknown := ids.count(tokenizer.unknown)):
        found.append(f"{unknown:,} of its words or characters have no token and are read as <unknown>")
    named = set() if named is None else named
    unseen = [word for word in unseen_words(run, text) if word not in named]
    named.update(unseen)
    if unseen:
        more = f" and {len(unseen) - SHOWN_WORDS:,} more" if len(unseen) > SHOWN_WORDS else ""
        shown = ", ".join(map(shortened, unseen[:SHOWN_WORDS]))
        found.append(f"words that do not occur in the training data: {shown}{more}")
    return found


def shortened(text: str) -> str:
    """Return the beginning of a text, for a warning."""
    return text if len(text) <= QUOTED else f"{text[:QUOTED]}…"


def unseen_words(run: Run, text: str) -> list[str]:
    """Return the words of a text that do not occur in the training data; none if its words are not known."""
    known = known_words(run.folder)
    return [word for word in dict.fromkeys(words_of(text)) if word not in known] if known else []


@cache
def known_words(folder: Path) -> frozenset[str]:
    """Return the words of the data that a run was trained on, if it has a list of them."""
    return read_words(folder / WORDS_FILE)


def has_other_numbers(text: str, translation: str) -> bool:
    """Whether the numbers of a translation, in digits, are not those of its text."""
    return numbers_in(text) != numbers_in(translation)


def numbers_in(text: str) -> list[str]:
    """Return the numbers of a text in order of size, written in one way: 2,500,000 and 2 500 000; 4.5 and 4,5."""
    return sorted(number.replace(",", ".") for number in NUMBER.findall(THOUSANDS.sub("", text)))
