"""Conversations on words, numbers, grammar and French: later turns lean on earlier ones, and every answer is right.

A question is asked in one split only, however it is worded and wherever in a conversation it stands: the first question
decides the split, and each later one is drawn from the same split. A question that leans on an earlier one ("and
backwards?") is the question it stands for ("write 'house' backwards"). What is asked in valid and test can be worked
out: by calculating, by a rule ("cat", "cats"), from the opposite asked the other way round, or from other questions on
the same word (its letters; its French in the sentences to translate). What nothing else tells ("mouse", "mice") is
asked in train only: holding it out would test luck.
"""

from __future__ import annotations

from clearhead.corpora.dice import Dice
from clearhead.corpora.generated import Draft, GeneratedCorpus
from clearhead.corpora.instructions.language import ABOUT_LANGUAGE
from clearhead.corpora.instructions.numbers import ABOUT_NUMBERS
from clearhead.corpora.instructions.turns import Turn
from clearhead.corpora.instructions.words import ABOUT_WORDS
from clearhead.text.dialogue import Dialogue, Message

TOPICS = (ABOUT_WORDS, ABOUT_NUMBERS, ABOUT_LANGUAGE, ABOUT_LANGUAGE)
GOES_ON = 0.35  # how often a turn is followed by another
LONGEST = 4  # turns
TRIES = 20  # to find a next question of the same split, before the conversation ends
NEUTRAL = ("You are a careful assistant.", "You are a friendly teacher.", "Answer briefly.")
CAPITALS = "Write every answer in capital letters."
QUOTES = "Put every answer in quotation marks."


def draw(dice: Dice) -> Draft:
    """A conversation; its key is the style of the answers and what is asked in each turn."""
    turns = _draw_turns(dice)
    system = _draw_system(dice)
    messages = [Message("system", system)] if system else []
    for turn in turns:
        messages += [Message("user", turn.ask), Message("assistant", _styled(turn.answer, system))]
    key = " | ".join((system if system in (CAPITALS, QUOTES) else "", *(turn.key for turn in turns)))
    combinations = tuple(combination for turn in turns for combination in turn.combinations)
    return Draft(Dialogue(tuple(messages)), key, combinations, turns[0].group or turns[0].key)


def _draw_turns(dice: Dice) -> list[Turn]:
    """One to four turns of one split."""
    turns = [_draw_turn(dice)]
    split = turns[0].split
    while len(turns) < LONGEST and dice.chance(GOES_ON):
        following = _draw_next(turns[-1], split, dice)
        if following is None:
            break
        turns.append(following)
    return turns


def _draw_next(before: Turn, split: str, dice: Dice) -> Turn | None:
    """Another question of the split, which mostly leans on the one before where it can; None if there is hardly one."""
    leaning = before.next and dice.chance(0.8)
    for _ in range(TRIES):
        turn = dice.choice(before.next)(dice) if leaning else _draw_turn(dice)
        if turn.split == split:
            return turn
    return None


def _draw_turn(dice: Dice) -> Turn:
    """A question that stands for itself."""
    return dice.choice(dice.choice(TOPICS))(dice)


def _draw_system(dice: Dice) -> str:
    """No system message, one that changes nothing, or one that changes how answers are written."""
    if dice.chance(0.7):
        return ""
    return dice.choice((dice.choice(NEUTRAL), CAPITALS, QUOTES))


def _styled(answer: str, system: str) -> str:
    """The answer as the system message wants it."""
    if system == CAPITALS:
        return answer.upper()
    return f'"{answer}"' if system == QUOTES else answer


CORPUS = GeneratedCorpus(
    "instructions", "chat", "questions on words, numbers, grammar and French, with right answers", draw
)
