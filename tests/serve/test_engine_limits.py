"""Limits of the engine: a full queue, time, requests that are given up, errors, stopping."""

from __future__ import annotations

import queue

import pytest

from clearhead.decode.generate import document_prompt
from clearhead.decode.sampling import SamplingSettings
from clearhead.runs import Run
from clearhead.serve.rows import Row, RunningBatch, Token
from clearhead.serve.tickets import BusyError, End, Event, StoppedError, TextTicket
from patience import PATIENCE
from running_engine import Asked, alone, hold, running


def test_a_full_queue_refuses_and_says_when_to_come_back(writer: Run) -> None:
    with running(writer, queue=2) as engine:
        released = hold(engine)
        asked = [Asked(engine, [5], 2) for _ in range(2)]
        with pytest.raises(BusyError, match="try again in") as refused:
            Asked(engine, [5], 2)
        assert refused.value.seconds >= 1
        released.set()
        assert [len(request.ids()[0]) for request in asked] == [2, 2]


def test_one_who_gives_up_frees_the_place(writer: Run) -> None:
    with running(writer, batch=1, tokens=10**6) as engine:
        endless = Asked(engine, [5], 10**5, choice=SamplingSettings())
        second = Asked(engine, [5], 2)
        endless.events.get(timeout=PATIENCE)
        endless.ticket.cancel()
        assert len(second.ids()[0]) == 2
        assert endless.ids()[1].reason in ("cancelled", "stop")


def test_time_is_limited_in_the_queue_and_while_writing(writer: Run) -> None:
    with running(writer, seconds=0.2) as engine:
        released = hold(engine)
        waiting = Asked(engine, [5], 2)
        waiting.ticket.started -= 1
        released.set()
        assert waiting.ids() == ([], End("time"))
        row = Row([5], 10**5, choice=SamplingSettings(temperature=1e-3))
        events: queue.Queue[Event] = queue.Queue()
        ticket = TextTicket(events.put, row)
        ticket.started -= 0.15
        engine.submit(ticket)
        while isinstance(event := events.get(timeout=PATIENCE), Token):
            pass
        assert event.reason in ("time", "stop")


def test_stopping_finishes_what_was_accepted(writer: Run) -> None:
    with running(writer, batch=2) as engine:
        released = hold(engine)
        asked = [Asked(engine, [5], 3) for _ in range(5)]
        engine.stop(timeout=0)  # it has been told; its thread goes on
        released.set()
        assert [len(request.ids()[0]) for request in asked] == [3] * 5
        with pytest.raises(StoppedError):
            Asked(engine, [5], 3)


def test_an_error_ends_the_running_texts_and_nothing_else(
    writer: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with running(writer) as engine:
        with monkeypatch.context() as patch:
            patch.setattr(RunningBatch, "step", lambda _: 1 / 0)
            _, end = Asked(engine, [5], 5).ids()
            assert isinstance(end.error, ZeroDivisionError)
        assert len(Asked(engine, [5], 5).ids()[0]) == 5
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_a_row_whose_probabilities_are_not_numbers_does_not_end_the_others(writer: Run) -> None:
    prompt = document_prompt(writer, "the red car")
    with running(writer) as engine:
        released = hold(engine)
        broken = Asked(engine, prompt, 5, choice=SamplingSettings(repetition_penalty=1e-300))
        other = Asked(engine, prompt, 5)
        released.set()
        assert other.ids()[0] == alone(writer, prompt, 5, None, 0)[0]
        assert broken.ids()[1].error is None
