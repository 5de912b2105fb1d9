"""Formulas as plain text for the terminal and as MathML for the browser."""

from __future__ import annotations

from html import escape
from typing import NamedTuple


class Formula(NamedTuple):
    """One formula in two notations."""

    text: str
    mathml: str  # the content of a <math> element

    def math(self) -> str:
        """A whole <math> element."""
        return f'<math display="block"><mrow>{self.mathml}</mrow></math>'


NOTHING = Formula("", "")


def symbol(name: str, lower: str = "") -> Formula:
    """A letter or a word, optionally with a subscript: W_Q."""
    letter = f"<mi>{escape(name)}</mi>"
    if not lower:
        return Formula(name, letter)
    return Formula(f"{name}_{lower}", f"<msub>{letter}<mi>{escape(lower)}</mi></msub>")


def spell(text: str) -> Formula:
    """Words inside a formula, with spaces around them."""
    return Formula(text, f"<mtext>\N{NO-BREAK SPACE}{escape(text)}\N{NO-BREAK SPACE}</mtext>")


def at(base: Formula, *indices: str) -> Formula:
    """One element: x[i, c]."""
    inside = ", ".join(indices)
    return Formula(f"{base.text}[{inside}]", f"<msub><mrow>{base.mathml}</mrow><mtext>{escape(inside)}</mtext></msub>")


def number(value: float, digits: int = 4) -> Formula:
    """A number with `digits` significant digits."""
    text = f"{value:.{digits}g}".replace("-", "−")
    return Formula(text, f"<mn>{text}</mn>")


def row(*parts: Formula | str) -> Formula:
    """Parts in a row; strings are operators."""
    both = [Formula(part, f"<mo>{escape(part)}</mo>") if isinstance(part, str) else part for part in parts]
    text = " ".join(part.text for part in both).replace(" ,", ",")
    return Formula(text, f"<mrow>{''.join(part.mathml for part in both)}</mrow>")


def brackets(inside: Formula) -> Formula:
    """A formula in brackets."""
    return Formula(f"({inside.text})", f"<mrow><mo>(</mo>{inside.mathml}<mo>)</mo></mrow>")


def signed(value: float, digits: int = 4) -> Formula:
    """A number as a factor or as a later term of a sum: in brackets if it is negative."""
    return brackets(number(value, digits)) if value < 0 else number(value, digits)


def grouped(formula: Formula) -> str:
    """The text of a formula as an operand: in brackets, if it has several parts outside of brackets."""
    depth = 0
    for letter in formula.text:
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(letter, 0)
        if letter == " " and not depth:
            return f"({formula.text})"
    return formula.text


def fraction(above: Formula, below: Formula) -> Formula:
    """A fraction."""
    mathml = f"<mfrac><mrow>{above.mathml}</mrow><mrow>{below.mathml}</mrow></mfrac>"
    return Formula(f"{grouped(above)} / {grouped(below)}", mathml)


def root(inside: Formula) -> Formula:
    """A square root."""
    return Formula(f"√{grouped(inside)}", f"<msqrt>{inside.mathml}</msqrt>")


def power(base: Formula, exponent: Formula) -> Formula:
    """A power."""
    return Formula(
        f"{grouped(base)}^{grouped(exponent)}", f"<msup><mrow>{base.mathml}</mrow><mrow>{exponent.mathml}</mrow></msup>"
    )


def call(name: str, inside: Formula) -> Formula:
    """A function applied to a formula."""
    return Formula(f"{name}({inside.text})", f"<mi>{escape(name)}</mi><mo>&#x2061;</mo>{brackets(inside).mathml}")


def total(index: str, inside: Formula) -> Formula:
    """The sum over an index."""
    return Formula(
        f"Σ_{index} {inside.text}",
        f"<munder><mo>∑</mo><mi>{escape(index)}</mi></munder>{inside.mathml}",
    )


def equals(left: Formula, *steps: Formula) -> Formula:
    """An equation, or a chain of equations."""
    parts: list[Formula | str] = [left]
    for step in steps:
        parts += ["=", step]
    return row(*parts)
