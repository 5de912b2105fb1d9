"""Calculations, and word problems that contain one."""

from __future__ import annotations

from functools import partial

from clearhead.corpora.dice import Dice
from clearhead.corpora.grammar.lexicon import CONCEPTS, ENGLISH, expand_kinds
from clearhead.corpora.grammar.templates import fill
from clearhead.corpora.instructions.turns import Turn

LARGEST = 150  # largest result
THINGS = tuple(n for n in expand_kinds("fruit portion tableware handy") if len(ENGLISH["noun"][n]) == 2)
CONTAINERS = ("box", "basket", "bag", "drawer")
PEOPLE = tuple(CONCEPTS["name"])

SUMS = {
    "plus": "[What is {a} plus {b}?|Add {a} and {b}.|{a} + {b} = ?|How much is {a} plus {b}?]",
    "minus": "[What is {a} minus {b}?|Take {b} away from {a}.|{a} - {b} = ?|How much is {a} minus {b}?]",
    "times": "[What is {a} times {b}?|Multiply {a} by {b}.|{a} x {b} = ?|How much is {a} times {b}?]",
}
STEPS = {
    "plus": "[Now add {b}.|And {b} more?|Plus {b}?]",
    "minus": "[Now take away {b}.|And {b} less?|Minus {b}?]",
    "times": "[Now times {b}.|Multiply that by {b}.]",
}


def _calculate(sign: str, a: int, b: int) -> int:
    return a + b if sign == "plus" else a - b if sign == "minus" else a * b


def about_sum(dice: Dice) -> Turn:
    """Addition and subtraction up to a hundred, multiplication up to ten times ten."""
    sign = dice.choice(tuple(SUMS))
    a, b = (dice.between(2, 10), dice.between(2, 10)) if sign == "times" else (dice.between(1, 50), dice.between(1, 50))
    if sign == "minus":
        a, b = max(a, b), min(a, b)
    return _answered(fill(SUMS[sign], dice, {"a": a, "b": b}), sign, a, b)


def _sum_of(sign: str, a: int, b: int) -> str:
    """A key for a calculation that does not depend on the order of its numbers."""
    return f"{min(a, b)} {sign} {max(a, b)}"


def _answered(ask: str, sign: str, a: int, b: int) -> Turn:
    """A calculation with its result; follow-ups calculate on from the result."""
    result = _calculate(sign, a, b)
    key = _sum_of(sign, a, b)
    return Turn(ask, str(result), key, tuple(partial(_step, result, sign) for sign in STEPS), (key,))


def _step(number: int, sign: str, dice: Dice) -> Turn:
    """Calculate on from a number; if the result would leave 0 to LARGEST, add or subtract instead."""
    b = dice.between(2, 5) if sign == "times" else dice.between(1, 20)
    if not 0 <= _calculate(sign, number, b) <= LARGEST:
        sign, b = ("plus", b) if number < b else ("minus", dice.between(1, 20))
    return _answered(fill(STEPS[sign], dice, {"b": b}), sign, number, b)


def about_comparison(dice: Dice) -> Turn:
    """The largest, the smallest, or all in order."""
    numbers = dice.sample(range(1, 100), dice.between(3, 5))
    ask, answers = dice.choice(
        (
            ("Which number is the [largest|biggest]", [max(numbers)]),
            ("Which number is the smallest", [min(numbers)]),
            ("Can you sort these numbers from small to large", sorted(numbers)),
            ("Can you sort these numbers from large to small", sorted(numbers, reverse=True)),
        )
    )
    listed = ", ".join(map(str, numbers))
    answer = ", ".join(map(str, answers))
    return Turn(f"{fill(ask, dice, {})}? {listed}", answer, f"{ask} {sorted(numbers)}")


def _things(noun: str, n: int) -> str:
    """A number of things: "1 apple", "2 apples"."""
    return f"{n} {ENGLISH['noun'][noun][n != 1]}"


def about_gain(dice: Dice) -> Turn:
    """Somebody gets more."""
    who = dice.choice(PEOPLE)
    noun = dice.choice(THINGS)
    a = dice.between(2, 30)
    b = dice.between(2, 20)
    slots = {"who": who, "he": _he(who), "a": _things(noun, a), "b": b, "things": ENGLISH["noun"][noun][1]}
    ask = "{who} has {a} and [finds|buys|gets] {b} more. How many {things} does {he} have now?"
    key = f"gain {who} {noun} {a} {b}"
    following = partial(_lose, who, noun, a + b)
    return Turn(
        fill(ask, dice, slots), f"{who} has {_things(noun, a + b)}.", key, (following,), (_sum_of("plus", a, b),)
    )


def about_loss(dice: Dice) -> Turn:
    """Somebody gives some away."""
    who, other = dice.sample(PEOPLE, 2)
    noun = dice.choice(THINGS)
    a = dice.between(5, 40)
    b = dice.between(1, a - 1)
    slots = {"who": who, "other": other, "a": _things(noun, a), "b": b}
    ask = "{who} has {a}, [but|and] gives {b} to {other}. How many does {who} have left?"
    key = f"loss {who} {other} {noun} {a} {b}"
    return Turn(fill(ask, dice, slots), f"{who} has {_things(noun, a - b)} left.", key, (), (_sum_of("minus", a, b),))


def _lose(who: str, noun: str, number: int, dice: Dice) -> Turn:
    """The same person gives some away."""
    b = dice.between(1, number - 1)
    ask = fill("[Then|Now] {he} [loses|gives away|sells] {b}. How many are left?", dice, {"he": _he(who), "b": b})
    key = _sum_of("minus", number, b)
    return Turn(ask, f"{who} has {_things(noun, number - b)} left.", key, (), (key,))


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
    a, b = dice.sample(range(2, 60), 2)
    slots = {"who": who, "other": other, "a": _things(noun, a), "b": b, "things": ENGLISH["noun"][noun][1]}
    richer = who if a > b else other
    ask = "{who} has {a}, and {other} has {b}. Who has more {things}?"
    difference = _sum_of("minus", a, b)
    key = f"more {who} {other} {noun} {a} {b}"
    how_many = Turn("How many more?", f"{_things(noun, abs(a - b))} more.", key, (), (difference,))
    return Turn(fill(ask, dice, slots), f"{richer} has more.", key, (lambda _: how_many,))


def _he(name: str) -> str:
    return "she" if CONCEPTS["name"][name] == "female" else "he"


ABOUT_NUMBERS = (about_sum, about_sum, about_comparison, about_gain, about_loss, about_boxes, about_who_has_more)
