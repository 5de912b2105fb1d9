"""Continuous batching: whatever else runs, each request gets what it would get alone."""

from __future__ import annotations

import random
import time

import pytest
import torch

from clearhead.decode.generate import document_prompt, generate
from clearhead.decode.sampling import SamplingSettings
from clearhead.model import DecoderOnly
from clearhead.runs import Run
from clearhead.serve.rows import Row, RunningBatch, Token
from patience import PATIENCE
from running_engine import Asked, alone, running
from tiny_runs import tiny_run

PROMPTS = ["the red car", "", "a cat runs", "the dog sees the red house and the red car is fast", "la voiture"]
CHOICES = [
    None,
    SamplingSettings(),
    SamplingSettings(0.7, top_k=20),
    SamplingSettings(top_p=0.9, repetition_penalty=1.3),
]


@pytest.fixture(params=["rotary", "learned", "sinusoidal", "window"])
def run(request: pytest.FixtureRequest) -> Run:
    torch.manual_seed(1)
    if request.param == "window":
        return tiny_run("decoder-only", position="rotary", window=4)
    return tiny_run("decoder-only", position=request.param)


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
        texts = writer.tokenizers.target.decode_after(prompts, [each.ids()[0] for each in asked])
    assert texts == generate(writer, PROMPTS, 30)


def test_log_probabilities_are_those_of_the_model(writer: Run) -> None:
    assert isinstance(writer.model, DecoderOnly)
    prompt = document_prompt(writer, "the red car")
    with running(writer) as engine:
        other = Asked(engine, prompt, 10, choice=SamplingSettings(), seed=1)
        request = Asked(engine, prompt, 4, top=3)
        tokens = []
        while isinstance(event := request.events.get(timeout=PATIENCE), Token):
            tokens.append(event)
        other.ids()
    ids = prompt
    for token in tokens:
        expected = writer.model(torch.tensor([ids]))[0, -1].log_softmax(-1)
        assert token.log_probability == pytest.approx(float(expected[token.id]), abs=1e-4)
        assert [number for number, _ in token.top] == expected.topk(3).indices.tolist()
        ids = [*ids, token.id]
