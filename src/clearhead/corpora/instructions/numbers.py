"""Calculations, and word problems that contain one."""

from __future__ import annotations

from functools import partial

from clearhead.corpora.dice import Dice
from clearhead.corpora.grammar.lexicon import CONCEPTS, ENGLISH, expand_kinds
from clearhead.corpora.grammar.templates import fill
from clearhead.corpora.instructions.turns import MEMORISED, Turn

MAX_OPERAND = 10  # number that is added, taken away or multiplied
MAX_COMPARED = 40
THINGS = tuple(n for n in expand_kinds("fruit portion tableware handy") if len(ENGLISH["noun"][n]) == 2)
CONTAINERS = ("box", "basket", "bag", "drawer")
PEOPLE = tuple(CONCEPTS["name"])

SUMS = {
    "plus": "[What is {a} plus {b}?|Add {a} and {b}.|{a} + {b} = ?|How much is {a} plus {b}?]",
    "minus": "[What is {a} minus {b}?|Take {b} away from {a}.|{a} - {b} = ?|How much is {a} minus {b}?]",
    "times": "[What is {a} times {b}?|Multiply {a} by {b}.|{a} x {b} = ?|How much is {a} times {b}?]",
}


def _calculate(sign: str, a: int, b: int) -> int:
    return a + b if sign == "plus" else a - b if sign == "minus" else a * b


def about_sum(dice: Dice) -> Turn:
    """A calculation with numbers up to ten. Each is in train, since what has to be known are the sums themselves."""
    sign = dice.choice(tuple(SUMS))
    a = dice.between(1, MAX_OPERAND)
    b = dice.between(1, MAX_OPERAND)
    if sign == "minus":
        a += b
    ask = fill(SUMS[sign], dice, {"a": a, "b": b})
    return Turn(ask, str(_calculate(sign, a, b)), ask, group=MEMORISED)


def _sum_of(sign: str, a: int, b: int) -> str:
    """A key for a calculation that does not depend on the order of its numbers."""
    return f"{min(a, b)} {sign} {max(a, b)}"


def about_comparison(dice: Dice) -> Turn:
    """The largest, the smallest, or all in order."""
    numbers = dice.sample(range(1, MAX_COMPARED + 1), dice.between(3, 4))
    ask, answers = dice.choice(
        (
            ("Which number is the [largest|biggest]", [max(numbers)]),
            ("Which number is the smallest", [min(numbers)]),
            ("Can you sort these numbers from small to large", sorted(numbers)),
            ("Can you sort these numbers from large to small", sorted(numbers, reverse=True)),
        )
    )
    listed = ", ".join(map(str, numbers))
    answer = ("In order: " if len(answers) > 1 else "It is ") + ", ".join(map(str, answers))
    return Turn(f"{fill(ask, dice, {})}? {listed}", answer, f"{ask} {sorted(numbers)}")


def _things(noun: str, n: int) -> str:
    """A number of things: "1 apple", "2 apples"."""
    return f"{n} {ENGLISH['noun'][noun][n != 1]}"


def about_gain(dice: Dice) -> Turn:
    """Somebody gets more."""
    who = dice.choice(PEOPLE)
    noun = dice.choice(THINGS)
    a = dice.between(1, MAX_OPERAND)
    b = dice.between(1, MAX_OPERAND)
    slots = {"who": who, "he": _he(who), "a": _things(noun, a), "b": b, "things": ENGLISH["noun"][noun][1]}
    ask = "{who} has {a} and [finds|buys|gets] {b} more. How many {things} does {he} have now?"
    key = f"gain {who} {noun} {a} {b}"
    following = partial(_lose, who, noun, a + b, key)
    return Turn(
        fill(ask, dice, slots), f"{who} has {_things(noun, a + b)}.", key, (following,), (_sum_of("plus", a, b),)
    )


def about_loss(dice: Dice) -> Turn:
    """Somebody gives some away."""
    who, other = dice.sample(PEOPLE, 2)
    noun = dice.choice(THINGS)
    b = dice.between(1, MAX_OPERAND)
    a = b + dice.between(1, MAX_OPERAND)
    slots = {"who": who, "other": other, "a": _things(noun, a), "b": b}
    ask = "{who} has {a}, [but|and] gives {b} to {other}. How many does {who} have left?"
    key = f"loss {who} {other} {noun} {a} {b}"
    return Turn(fill(ask, dice, slots), f"{who} has {_things(noun, a - b)} left.", key, (), (_sum_of("minus", a, b),))


def _lose(who: str, noun: str, number: int, before: str, dice: Dice) -> Turn:
    """Let the person of the last question give some away."""
    b = dice.between(max(1, number - MAX_OPERAND), min(MAX_OPERAND, number - 1))
    ask = fill("[Then|Now] {he} [loses|gives away|sells] {b}. How many are left?", dice, {"he": _he(who), "b": b})
    taken = _sum_of("minus", number, b)
    return Turn(ask, f"{who} has {_things(noun, number - b)} left.", f"{before} {b}", (), (taken,), before)


def about_boxes(dice: Dice) -> Turn:
    """Several containers with the same number of things each."""
    noun = dice.choice(THINGS)
    box = dice.choice(CONTAINERS)
    a = dice.between(2, 9)
    b = dice.between(2, 9)
    things = ENGLISH["noun"][noun][1]
    boxes = ENGLISH["noun"][box][1]
    slots = {"a": a, "b": b, "boxes": boxes, "things": things}
    ask = "There are {a} {boxes} with {b} {things} [each|in each of them]. How many {things} are there?"
    answer = f"There are {a * b} {things}."
    return Turn(fill(ask, dice, slots), answer, f"boxes {noun} {box} {a} {b}", (), (_sum_of("times", a, b),))


def about_who_has_more(dice: Dice) -> Turn:
    """Two people compare what they have."""
    who, other = dice.sample(PEOPLE, 2)
    noun = dice.choice(THINGS)
    less = dice.between(1, MAX_OPERAND)
    more = less + dice.between(1, MAX_OPERAND)
    a, b = dice.sample((less, more), 2)
    slots = {"who": who, "other": other, "a": _things(noun, a), "b": b, "things": ENGLISH["noun"][noun][1]}
    richer = who if a > b else other
    ask = "{who} has {a}, and {other} has {b}. Who has more {things}?"
    difference = _sum_of("minus", a, b)
    key = f"more {who} {other} {noun} {a} {b}"
    how_many = Turn("How many more?", f"{_things(noun, more - less)} more.", key, (), (difference,))
    return Turn(fill(ask, dice, slots), f"{richer} has more.", key, (lambda _: how_many,))


def _he(name: str) -> str:
    return "she" if CONCEPTS["name"][name] == "female" else "he"


ABOUT_NUMBERS = (about_sum, about_sum, about_comparison, about_gain, about_loss, about_boxes, about_who_has_more)
