"""Formulas that can be read twice: as plain text in a terminal, as MathML in a browser."""

from __future__ import annotations

from html import escape
from typing import NamedTuple


class Formula(NamedTuple):
    """One formula, written twice."""

    text: str
    mathml: str  # what stands inside <math>

    def math(self) -> str:
        """A whole <math> element."""
        return f'<math display="block"><mrow>{self.mathml}</mrow></math>'


def symbol(name: str, lower: str = "") -> Formula:
    """A letter or a word, perhaps with a small letter below: W_Q."""
    letter = f"<mi>{escape(name)}</mi>"
    if not lower:
        return Formula(name, letter)
    return Formula(f"{name}_{lower}", f"<msub>{letter}<mi>{escape(lower)}</mi></msub>")


def spell(text: str) -> Formula:
    """Words inside a formula, with room around them."""
    return Formula(text, f"<mtext>\N{NO-BREAK SPACE}{escape(text)}\N{NO-BREAK SPACE}</mtext>")


def at(base: Formula, *indices: str) -> Formula:
    """One element: x[i, c]."""
    inside = ", ".join(indices)
    return Formula(f"{base.text}[{inside}]", f"<msub><mrow>{base.mathml}</mrow><mtext>{escape(inside)}</mtext></msub>")


def number(value: float, digits: int = 4) -> Formula:
    """A number with some digits that count."""
    text = f"{value:.{digits}g}".replace("-", "−")
    return Formula(text, f"<mn>{text}</mn>")


def row(*parts: Formula | str) -> Formula:
    """Parts side by side; strings are operators."""
    both = [Formula(part, f"<mo>{escape(part)}</mo>") if isinstance(part, str) else part for part in parts]
    text = " ".join(part.text for part in both).replace(" ,", ",")
    return Formula(text, f"<mrow>{''.join(part.mathml for part in both)}</mrow>")


def brackets(inside: Formula) -> Formula:
    """Something in brackets."""
    return Formula(f"({inside.text})", f"<mrow><mo>(</mo>{inside.mathml}<mo>)</mo></mrow>")


def signed(value: float, digits: int = 4) -> Formula:
    """A number as a factor or a later term: a negative one in brackets."""
    return brackets(number(value, digits)) if value < 0 else number(value, digits)


def grouped(formula: Formula) -> str:
    """The text of a formula as part of a larger one: in brackets, if it has several parts that are not yet in some."""
    depth = 0
    for letter in formula.text:
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(letter, 0)
        if letter == " " and not depth:
            return f"({formula.text})"
    return formula.text


def fraction(above: Formula, below: Formula) -> Formula:
    """One thing over another."""
    mathml = f"<mfrac><mrow>{above.mathml}</mrow><mrow>{below.mathml}</mrow></mfrac>"
    return Formula(f"{grouped(above)} / {grouped(below)}", mathml)


def root(inside: Formula) -> Formula:
    """A square root."""
    return Formula(f"√{grouped(inside)}", f"<msqrt>{inside.mathml}</msqrt>")


def power(base: Formula, exponent: Formula) -> Formula:
    """One thing to the power of another."""
    return Formula(
        f"{grouped(base)}^{grouped(exponent)}", f"<msup><mrow>{base.mathml}</mrow><mrow>{exponent.mathml}</mrow></msup>"
    )


def call(name: str, inside: Formula) -> Formula:
    """A function of something."""
    return Formula(f"{name}({inside.text})", f"<mi>{escape(name)}</mi><mo>&#x2061;</mo>{brackets(inside).mathml}")


def total(index: str, inside: Formula) -> Formula:
    """The sum over an index."""
    return Formula(
        f"Σ_{index} {inside.text}",
        f"<munder><mo>∑</mo><mi>{escape(index)}</mi></munder>{inside.mathml}",
    )


def equals(left: Formula, *steps: Formula) -> Formula:
    """An equation, or several in a row."""
    parts: list[Formula | str] = [left]
    for step in steps:
        parts += ["=", step]
    return row(*parts)
