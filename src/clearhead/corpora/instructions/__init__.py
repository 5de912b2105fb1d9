"""Conversations about words, numbers and grammar; follow-up questions refer to earlier ones.

Every answer is correct. A question belongs to one split only, however it is worded and wherever in a conversation it is
asked: the first question decides the split, and later ones are drawn from it too. A follow-up ("and backwards?")
counts as the question it stands for ("write 'house' backwards"). Every question of valid and test can be answered from
what train teaches: by a rule ("cat", "cats"), from the reverse question, or from other questions about the same word.
Facts that follow from nothing else ("mouse", "mice"; "7 times 8") are in train only, since a model could only guess
them; word problems of all splits need them. What a small model can hardly learn in minutes (spelling, since tokens hide
the letters; sums of large numbers; translation, which is a corpus of its own) is not asked.
"""

from __future__ import annotations

from clearhead.corpora.dice import Dice
from clearhead.corpora.generated import Draft, GeneratedCorpus
from clearhead.corpora.instructions.language import ABOUT_LANGUAGE
from clearhead.corpora.instructions.numbers import ABOUT_NUMBERS
from clearhead.corpora.instructions.turns import Turn
from clearhead.corpora.instructions.words import ABOUT_WORDS
from clearhead.text.dialogue import Dialogue, Message

TOPICS = (ABOUT_WORDS, ABOUT_NUMBERS, ABOUT_LANGUAGE)
CONTINUES = 0.35  # how often a turn is followed by another
MAX_TURNS = 4  # turns in a conversation
MAX_DRAWS = 20  # draws to find a next question of the same split, before the conversation ends
NEUTRAL = ("You are a careful assistant.", "You are a friendly teacher.", "Answer briefly.")
QUOTES = "Put every answer in quotation marks."


def draw(dice: Dice) -> Draft:
    """Draw a conversation; the key is the style of the answers and what each turn asks."""
    turns = _draw_turns(dice)
    system = _draw_system(dice)
    messages = [Message("system", system)] if system else []
    for turn in turns:
        messages += [Message("user", turn.ask), Message("assistant", _styled(turn.answer, system))]
    key = " | ".join((system if system == QUOTES else "", *(turn.key for turn in turns)))
    combinations = tuple(combination for turn in turns for combination in turn.combinations)
    return Draft(Dialogue(tuple(messages)), key, combinations, turns[0].group or turns[0].key)


def _draw_turns(dice: Dice) -> list[Turn]:
    """Draw one to four turns of one split."""
    turns = [_draw_turn(dice)]
    split = turns[0].split
    while len(turns) < MAX_TURNS and dice.chance(CONTINUES):
        following = _draw_next(turns[-1], split, dice)
        if following is None:
            break
        turns.append(following)
    return turns


def _draw_next(before: Turn, split: str, dice: Dice) -> Turn | None:
    """Draw another question of the split, mostly a follow-up if there is one; None if no draw is of the split."""
    follow_up = before.next and dice.chance(0.8)
    for _ in range(MAX_DRAWS):
        turn = dice.choice(before.next)(dice) if follow_up else _draw_turn(dice)
        if turn.split == split:
            return turn
    return None


def _draw_turn(dice: Dice) -> Turn:
    """Draw a question that does not refer to another."""
    return dice.choice(dice.choice(TOPICS))(dice)


def _draw_system(dice: Dice) -> str:
    """Draw no system message, one without effect, or one that changes how answers are written."""
    if dice.chance(0.7):
        return ""
    return dice.choice((dice.choice(NEUTRAL), QUOTES))


def _styled(answer: str, system: str) -> str:
    """The answer in the style that the system message asks for."""
    return f'"{answer}"' if system == QUOTES else answer


CORPUS = GeneratedCorpus("instructions", "chat", "questions on words, numbers and grammar, with right answers", draw)
