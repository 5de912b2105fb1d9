"""A second solution of an exercise, in another style, with mistakes to plant in it."""

from __future__ import annotations

from typing import NamedTuple


class OtherSolution(NamedTuple):
    """Code that is right, and for each mistake the edit (old, new) that makes it."""

    code: str
    mistakes: dict[str, tuple[str, str]]
