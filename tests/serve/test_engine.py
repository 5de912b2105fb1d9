"""Continuous batching: whatever else runs, each request gets what it would get alone."""

from __future__ import annotations

import queue
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch

from clearhead.config import UserError
from clearhead.decode.generate import document_prompt, generate
from clearhead.decode.sampling import Choice
from clearhead.decode.translate import Searching, translate
from clearhead.model import DecoderOnly
from clearhead.runs import Run
from clearhead.serve.api import translation_call
from clearhead.serve.engine import Engine
from clearhead.serve.limits import Limits
from clearhead.serve.rows import Row, RunningBatch, Token
from clearhead.serve.tickets import BusyError, Call, CallTicket, End, Event, Steps, StoppedError, TextTicket, at_once
from tiny_runs import tiny_run

PROMPTS = ["the red car", "", "a cat runs", "the dog sees the red house and the red car is fast", "la voiture"]
CHOICES = [None, Choice(), Choice(0.7, top_k=20), Choice(top_p=0.9, repetition_penalty=1.3)]


@pytest.fixture(params=["rotary", "learned", "sinusoidal", "window"])
def run(request: pytest.FixtureRequest) -> Run:
    torch.manual_seed(1)
    if request.param == "window":
        return tiny_run("decoder-only", position="rotary", window=4)
    return tiny_run("decoder-only", position=request.param)


@pytest.fixture
def writer() -> Run:
    torch.manual_seed(1)
    return tiny_run("decoder-only", position="rotary")


@contextmanager
def running(run: Run, **limits: Any) -> Iterator[Engine]:
    engine = Engine(run, Limits(**limits))
    engine.start()
    try:
        yield engine
    finally:
        engine.stop(30)
        assert not engine.thread.is_alive()


class Asked:
    """A request and its events so far."""

    def __init__(self, engine: Engine, prompt: list[int], tokens: int = 20, **options: Any) -> None:
        self.events: queue.Queue[Event] = queue.Queue()
        self.ticket = TextTicket(self.events.put, Row(prompt, tokens, **options))
        engine.submit(self.ticket)

    def ids(self) -> tuple[list[int], End]:
        ids = []
        while isinstance(event := self.events.get(timeout=30), Token):
            ids.append(event.id)
        return ids, event


def test_every_text_is_the_offline_one_whoever_joins_and_leaves(run: Run) -> None:
    dice = random.Random(0)
    limit = run.recipe.model.position_limit or 64
    with running(run, batch=5) as engine:
        asked = []
        for number in range(40):
            prompt = document_prompt(run, dice.choice(PROMPTS))
            tokens = min(dice.choice([1, 3, 20, 45]), limit - len(prompt))
            choice = dice.choice(CHOICES)
            asked.append((prompt, tokens, choice, number, Asked(engine, prompt, tokens, choice=choice, seed=number)))
            if number % 7 == 0:
                time.sleep(0.01)
        for prompt, tokens, choice, seed, request in asked:
            ids, end = request.ids()
            assert (ids, end.reason == "stop") == alone(run, prompt, tokens, choice, seed)


def alone(run: Run, prompt: list[int], tokens: int, choice: Choice | None, seed: int) -> tuple[list[int], bool]:
    from clearhead.decode.search import greedy, sample
    from clearhead.decode.steps import Ending

    assert isinstance(run.model, DecoderOnly)
    tokenizer = run.tokenizers.target
    ending = Ending((tokenizer.end,), tokenizer.pad, tokens)
    with torch.inference_mode():
        prefill = run.model.start(torch.tensor([prompt]))
    if choice is None:
        [found] = greedy(run.model, prefill, ending)
    else:
        [found] = sample(run.model, prefill, ending, choice, [seed], [prompt])
    return found.ids, found.ended


def test_a_place_is_taken_again_and_the_state_shrinks_to_its_rows(run: Run) -> None:
    assert isinstance(run.model, DecoderOnly)
    batch = RunningBatch(run.model, 0)
    long, *short = Row(list(range(5, 35)), 50), *(Row([5, number], 50) for number in range(6, 12))
    with torch.inference_mode():
        batch.advance([long, *short[:4]])
        batch.keep(short[:4])
        batch.advance([short[4]])
        assert batch.state is not None
        assert batch.places == [short[4], *short[:4]]
        assert batch.state.length == 31
        batch.keep(short[:2])
        batch.advance([])
        assert (batch.state.length, batch.places) == (4, short[:2])
        batch.keep([])
    assert batch.state is None
    for row in short[:2]:
        ids, _ = alone(run, row.prompt, 3, None, 0)
        assert row.newest == ids[-1]


def test_a_row_that_left_does_not_use_up_the_learned_positions_of_others() -> None:
    run = tiny_run("decoder-only", position="learned")
    limit = run.recipe.model.position_limit
    assert isinstance(run.model, DecoderOnly)
    assert limit is not None
    batch = RunningBatch(run.model, 0)
    long, *short = Row([5] * (limit - 1), 1), *(Row([5, number], 9) for number in range(6, 12))
    with torch.inference_mode():
        batch.advance([long, *short])
        batch.keep(short)
        for _ in range(5):
            batch.advance([])
    assert [row.newest for row in short] == [alone(run, row.prompt, 6, None, 0)[0][-1] for row in short]


def test_the_text_is_that_of_the_command_line(writer: Run) -> None:
    prompts = [document_prompt(writer, text) for text in PROMPTS]
    with running(writer) as engine:
        asked = [Asked(engine, prompt, 30) for prompt in prompts]
        texts = [writer.tokenizers.target.decode_after(p, a.ids()[0]) for p, a in zip(prompts, asked, strict=True)]
    assert texts == generate(writer, PROMPTS, 30)


def test_log_probabilities_are_those_of_the_model(writer: Run) -> None:
    assert isinstance(writer.model, DecoderOnly)
    prompt = document_prompt(writer, "the red car")
    with running(writer) as engine:
        other = Asked(engine, prompt, 10, choice=Choice(), seed=1)
        request = Asked(engine, prompt, 4, top=3)
        tokens = []
        while isinstance(event := request.events.get(timeout=30), Token):
            tokens.append(event)
        other.ids()
    ids = prompt
    for token in tokens:
        expected = writer.model(torch.tensor([ids]))[0, -1].log_softmax(-1)
        assert token.log_probability == pytest.approx(float(expected[token.id]), abs=1e-4)
        assert [number for number, _ in token.top] == expected.topk(3).indices.tolist()
        ids = [*ids, token.id]


def hold(engine: Engine) -> threading.Event:
    """Keep the engine busy until the event is set."""
    begun, released = threading.Event(), threading.Event()

    def wait(inputs: list[Any]) -> list[Any]:
        begun.set()
        released.wait(30)
        return inputs

    engine.submit(CallTicket(lambda _: None, Call("wait", at_once(wait)), [0]))
    assert begun.wait(30)
    return released


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
        endless = Asked(engine, [5], 10**5, choice=Choice())
        second = Asked(engine, [5], 2)
        endless.events.get(timeout=30)
        endless.ticket.cancel()
        assert len(second.ids()[0]) == 2
        assert endless.ids()[1].reason in ("cancelled", "stop")


def test_time_is_limited_in_the_queue_and_while_writing(writer: Run) -> None:
    with running(writer, seconds=0.2) as engine:
        released = hold(engine)
        waiting = Asked(engine, [5], 2)
        time.sleep(0.3)
        released.set()
        assert waiting.ids() == ([], End("time"))
        row = Row([5], 10**5, choice=Choice(temperature=1e-3))
        events: queue.Queue[Event] = queue.Queue()
        ticket = TextTicket(events.put, row)
        ticket.started -= 0.15
        engine.submit(ticket)
        while isinstance(event := events.get(timeout=30), Token):
            pass
        assert event.reason in ("time", "stop")


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
        assert [result.get(timeout=30).result for result in results] == [[2, 4], [6], [], [8, 10]]
        assert calls == [[1, 2, 3, 4, 5]]
        released = hold(engine)
        for given, result in zip([[1], [-1]], results, strict=False):
            engine.submit(CallTicket(result.put, Call("double", at_once(double)), given))
        released.set()
        assert results[0].get(timeout=30).result == [2]
        assert isinstance(results[1].get(timeout=30).error, UserError)


def test_stopping_finishes_what_was_accepted(writer: Run) -> None:
    with running(writer, batch=2) as engine:
        released = hold(engine)
        asked = [Asked(engine, [5], 3) for _ in range(5)]
        threading.Timer(0.05, released.set).start()
        engine.stop(30)
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
        broken = Asked(engine, prompt, 5, choice=Choice(repetition_penalty=1e-300))
        other = Asked(engine, prompt, 5)
        released.set()
        assert other.ids()[0] == alone(writer, prompt, 5, None, 0)[0]
        assert broken.ids()[1].error is None


# --- calls ------------------------------------------------------------------------------------------------------------


class Called:
    """A request with inputs of a call."""

    def __init__(self, engine: Engine, call: Call, inputs: list[Any]) -> None:
        self.events: queue.Queue[Event] = queue.Queue()
        self.ticket = CallTicket(self.events.put, call, inputs)
        engine.submit(self.ticket)

    def end(self) -> End:
        event = self.events.get(timeout=30)
        assert isinstance(event, End)
        return event


def test_a_long_call_does_not_hold_up_others(writer: Run) -> None:
    ended = threading.Event()

    def endless(inputs: list[Any]) -> Steps:
        while not ended.is_set():
            yield
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
            yield
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
            yield

    with running(writer, seconds=0.3) as engine:
        slow = Called(engine, Call("slow", endless), [1])
        assert slow.end() == End("time")
        begun.clear()
        left = Called(engine, Call("slow", endless), [1])
        assert begun.wait(30)
        left.ticket.cancel()
    assert steps  # and the engine has stopped


def test_translations_of_all_settings_take_turns_and_are_those_of_the_library() -> None:
    torch.manual_seed(1)
    run = tiny_run()
    texts = ["the red car is fast", "a cat", "the dog sees the red house", "la voiture rouge"]
    ways = [Searching(beam=beam, nbest=nbest, longest=9) for beam, nbest in ((1, 1), (2, 1), (4, 2))]
    with running(run, batch=4) as engine:
        asked = [(how, Called(engine, translation_call(run, how), texts)) for how in ways for _ in range(3)]
        found = [(how, called.end().result) for how, called in asked]
    for how, translations in found:
        for ours, expected in zip(translations, translate(run, texts, how), strict=True):
            assert [each.text for each in ours] == [each.text for each in expected]
