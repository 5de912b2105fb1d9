"""Calls to the engine: equal ones share a batch, long ones take turns with others."""

from __future__ import annotations

import queue
import threading
from typing import Any

import pytest
import torch

from clearhead.config import UserError
from clearhead.decode.translate import SearchSettings, translate
from clearhead.runs import Run
from clearhead.serve.tickets import Call, CallTicket, End, Steps, at_once
from patience import PATIENCE
from running_engine import Asked, Called, hold, running
from tiny_runs import tiny_run


def test_calls_with_equal_keys_share_one_and_each_gets_its_own_results(writer: Run) -> None:
    calls: list[list[int]] = []

    def double(inputs: list[int]) -> list[int]:
        calls.append(inputs)
        if -1 in inputs:
            raise UserError("not -1")
        return [2 * each for each in inputs]

    with running(writer) as engine:
        released = hold(engine)
        results: list[queue.Queue[Any]] = [queue.Queue() for _ in range(4)]
        for given, result in zip([[1, 2], [3], [], [4, 5]], results, strict=True):
            engine.submit(CallTicket(result.put, Call("double", at_once(double)), given))
        released.set()
        assert [result.get(timeout=PATIENCE).result for result in results] == [[2, 4], [6], [], [8, 10]]
        assert calls == [[1, 2, 3, 4, 5]]
        released = hold(engine)
        for given, result in zip([[1], [-1]], results, strict=False):
            engine.submit(CallTicket(result.put, Call("double", at_once(double)), given))
        released.set()
        assert results[0].get(timeout=PATIENCE).result == [2]
        assert isinstance(results[1].get(timeout=PATIENCE).error, UserError)


def test_a_long_call_does_not_hold_up_others(writer: Run) -> None:
    ended = threading.Event()

    def endless(inputs: list[Any]) -> Steps:
        while not ended.is_set():
            yield None
        return inputs

    with running(writer) as engine:
        long = Called(engine, Call("long", endless), ["long"])
        assert Called(engine, Call("short", at_once(list)), ["short"]).end().result == ["short"]
        assert len(Asked(engine, [5], 2).ids()[0]) == 2
        ended.set()
        assert long.end().result == ["long"]


def test_a_call_with_many_inputs_takes_turns_with_others(writer: Run) -> None:
    groups: list[list[str]] = []

    def computed(inputs: list[str]) -> list[str]:
        groups.append(inputs)
        return [text.upper() for text in inputs]

    call = Call("upper", at_once(computed), rows=2)
    with running(writer, batch=4) as engine:
        released = hold(engine)
        many = Called(engine, call, list("abcde"))
        few = Called(engine, call, ["x"])
        released.set()
        assert (few.end().result, many.end().result) == (["X"], list("ABCDE"))
    assert groups == [["a", "b"], ["x", "c"], ["d", "e"]]


def test_a_call_with_many_inputs_has_one_group_at_a_time(writer: Run) -> None:
    ended = threading.Event()
    groups: list[list[int]] = []

    def endless(inputs: list[int]) -> Steps:
        groups.append(inputs)
        while not ended.is_set():
            yield None
        return inputs

    with running(writer, batch=1) as engine:
        many = Called(engine, Call("many", endless), list(range(9)))
        for number in range(3):
            assert Called(engine, Call("few", at_once(list)), [number]).end().result == [number]
        assert groups == [[0]]
        ended.set()
        assert many.end().result == list(range(9))


def test_a_call_that_nobody_waits_for_is_not_continued(writer: Run) -> None:
    begun = threading.Event()
    steps = []

    def endless(_: list[Any]) -> Steps:
        begun.set()
        while True:
            steps.append(1)
            yield None

    with running(writer, seconds=0.3) as engine:
        slow = Called(engine, Call("slow", endless), [1])
        assert slow.end() == End("time")
    begun.clear()
    with running(writer) as engine:
        left = Called(engine, Call("slow", endless), [1])
        assert begun.wait(PATIENCE)
        left.ticket.cancel()
    assert steps  # and the engine has stopped


def test_translations_of_all_settings_take_turns_and_are_those_of_the_library() -> None:
    pytest.importorskip("fastapi", reason="fastapi is not installed: pip install 'clearhead[serve]'")
    from clearhead.serve.api import translation_call

    torch.manual_seed(1)
    run = tiny_run()
    texts = ["the red car is fast", "a cat", "the dog sees the red house", "la voiture rouge"]
    ways = [SearchSettings(beam=beam, nbest=nbest, longest=9) for beam, nbest in ((1, 1), (2, 1), (4, 2))]
    with running(run, batch=4) as engine:
        asked = [(how, Called(engine, translation_call(run, how), texts)) for how in ways for _ in range(3)]
        found = [(how, called.end().result) for how, called in asked]
    for how, translations in found:
        for ours, expected in zip(translations, translate(run, texts, how), strict=True):
            assert [each.text for each in ours] == [each.text for each in expected]
