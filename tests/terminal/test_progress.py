"""Progress bars: on a terminal only, and never in the way of what they count."""

from __future__ import annotations

import time

import pytest

from clearhead.terminal.progress import progress_bar, track
from command_line import Terminal
from patience import PATIENCE


def test_items_pass_unchanged_and_are_counted() -> None:
    items = [["a"] * 1000, ["b"] * 234]
    with Terminal() as terminal:
        assert list(track(items, "reading [bold]odd", total=1234, unit="texts", size=len)) == items
    assert "reading [bold]odd" in terminal.getvalue()
    assert "1,234/1,234 texts" in terminal.getvalue()


def test_a_bar_may_count_without_a_total_and_change_its_title() -> None:
    with Terminal() as terminal, progress_bar("reading", unit="tokens") as bar:
        bar.advance(5000)
        bar.rename("learning")
    assert "learning" in terminal.getvalue()
    assert "5,000 tokens" in terminal.getvalue()


def test_what_cannot_be_counted_has_a_title_and_a_time_alone() -> None:
    with Terminal() as terminal, progress_bar("writing"):
        pass
    assert "writing" in terminal.getvalue()
    assert "0:00:00" in terminal.getvalue()
    assert "0 " not in terminal.getvalue().replace("0:00:00", "")


def test_nothing_is_drawn_quietly_or_where_nobody_looks(capsys: pytest.CaptureFixture[str]) -> None:
    with Terminal() as terminal:
        assert list(track("abc", "reading", quiet=True)) == ["a", "b", "c"]
    assert terminal.getvalue() == ""
    with progress_bar("reading", 3) as bar:
        bar.advance()
        bar.rename("learning")
    assert capsys.readouterr() == ("", "")


def test_a_bar_with_a_delay_is_drawn_for_long_work_only() -> None:
    with Terminal() as terminal:
        with progress_bar("quick", 3, delay=3600):
            pass
        assert terminal.getvalue() == ""
        with progress_bar("slow", 3, delay=0.01):
            end = time.monotonic() + PATIENCE
            while "slow" not in terminal.getvalue() and time.monotonic() < end:
                time.sleep(0.01)
    assert "slow" in terminal.getvalue()
