"""Charts in the terminal."""

from __future__ import annotations

from clearhead.terminal.chart import Curve, draw
from properties import given, st


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=300), st.integers(40, 120))
def test_a_chart_fits_and_has_no_gaps(values: list[float], room: int) -> None:
    lines = draw([Curve("loss", range(len(values)), values)], "step", room).plain.splitlines()
    assert max(len(line.rstrip()) for line in lines) <= room
    body = [line.partition("│")[2] for line in lines if "│" in line]
    columns = ["".join(line.ljust(room)[column] for line in body).strip() for column in range(len(body[0]))]
    filled = [bool(column) for column in columns]
    assert any(filled)
    if len(values) > 1:
        assert all(filled)
