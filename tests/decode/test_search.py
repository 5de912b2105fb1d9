"""Search: each way of decoding against its slow, honest twin, which runs the whole model again for each token."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from clearhead.config import UserError
from clearhead.decode.beam import beam
from clearhead.decode.sampling import Sampler, SamplingSettings
from clearhead.decode.search import Hypothesis, greedy, sample, stream
from clearhead.decode.steps import StopCriteria
from slow_search import END, PAD, VOCAB, Rows, beam_slowly, enumerated, written_slowly
from tiny_models import decoder_only, encoder_decoder


@pytest.fixture(scope="module", params=["sinusoidal", "learned", "rotary"])
def position(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module", params=[encoder_decoder, decoder_only])
def rows(request: pytest.FixtureRequest, position: str) -> Rows:
    torch.manual_seed(0)
    return Rows(request.param(vocab=VOCAB, position=position, layers=1, d_model=8, heads=2))


def assert_same_texts(actual: list[Hypothesis], expected: list[Hypothesis]) -> None:
    assert [(h.ids, h.ended) for h in actual] == [(h.ids, h.ended) for h in expected]
    for name in ("score", "log_probability"):
        numbers = [[getattr(h, name) for h in hypotheses] for hypotheses in (actual, expected)]
        assert numbers[0] == pytest.approx(numbers[1], abs=1e-9)


def test_greedy_is_the_likeliest_token_of_the_whole_model_in_each_row_alone(rows: Rows) -> None:
    longest = [9, 4, 12, 7, 1]
    batch = greedy(rows.model, rows.start(), StopCriteria((END,), PAD, torch.tensor(longest)))
    slowly = [written_slowly(row, n, lambda logits, *_: logits.argmax()) for row, n in zip(rows, longest, strict=True)]
    assert_same_texts(batch, slowly)


@pytest.mark.parametrize("longest", [1, 12])
def test_a_beam_of_one_is_greedy(rows: Rows, longest: int) -> None:
    ending = StopCriteria((END,), PAD, longest)
    best = [hypotheses[0] for hypotheses in beam(rows.model, rows.start(), ending, width=1, length_penalty=0.0)]
    assert_same_texts(best, greedy(rows.model, rows.start(), ending))
    ranked = beam(rows.model, rows.start(), ending, width=1, length_penalty=0.6)
    assert [h[0].ids for h in ranked] == [h.ids for h in best]


@pytest.mark.parametrize(("width", "power"), [(2, 0.6), (3, 0.0), (3, 3.0), (VOCAB + 2, 0.6)])
def test_a_beam_is_its_slow_twin_for_each_row_alone(rows: Rows, width: int, power: float) -> None:
    """The twin never stops early and knows no batch: so neither stopping nor leaving the batch changes anything."""
    longest = [9, 4, 12, 7, 1]
    ending = StopCriteria((END,), PAD, torch.tensor(longest))
    slowly = [beam_slowly(row, n, width, power) for row, n in zip(rows, longest, strict=True)]
    for nbest, capacity in ((1, None), (1, 32), (width, None)):
        found = beam(rows.model, rows.start(capacity), ending, width, power, nbest)
        for hypotheses, expected in zip(found, slowly, strict=True):
            assert_same_texts(hypotheses, expected[:nbest])


@pytest.mark.parametrize("power", [0.0, 0.6, 2.0])
def test_a_beam_that_holds_everything_finds_the_best_there_is(rows: Rows, power: float) -> None:
    ending = StopCriteria((END,), PAD, 3)
    found = beam(rows.model, rows.start(), ending, VOCAB**3, power)
    for row, [best] in zip(rows, found, strict=True):
        assert_same_texts([best], enumerated(row, 3, power)[:1])


def test_nbest_are_the_best_there_are_and_all_different(rows: Rows) -> None:
    row = rows.alone(0)
    [found] = beam(row.model, row.start(), StopCriteria((END,), PAD, 3), VOCAB**3, 0.6, nbest=20)
    assert_same_texts(found, enumerated(row, 3, 0.6)[:20])
    assert len({(tuple(h.ids), h.ended) for h in found}) == 20
    assert [h.score for h in found] == sorted((h.score for h in found), reverse=True)


def test_several_tokens_may_end_a_row(rows: Rows) -> None:
    end = (END, 2)
    ending = StopCriteria(end, PAD, 8)
    slowly = [written_slowly(row, 8, lambda logits, *_: logits.argmax(), end) for row in rows]
    assert_same_texts(greedy(rows.model, rows.start(), ending), slowly)
    for row, hypotheses in zip(rows, beam(rows.model, rows.start(), ending, 3, 0.6, 3), strict=True):
        assert_same_texts(hypotheses, beam_slowly(row, 8, 3, 0.6, end))


def test_the_end_may_be_the_padding(rows: Rows) -> None:
    """As in GPT-2: what counts is where a row first says it."""
    ending = StopCriteria((END,), END, 8)
    assert_same_texts(
        greedy(rows.model, rows.start(), ending), greedy(rows.model, rows.start(), replace(ending, pad=PAD))
    )


@pytest.mark.parametrize("penalty", [1.0, 1.5])
def test_a_sampled_row_is_what_it_is_alone(rows: Rows, penalty: float) -> None:
    choice, seeds, longest = SamplingSettings(1.3, top_k=5, top_p=0.95, repetition_penalty=penalty), [3, 1, 4, 1, 5], 70
    ending = StopCriteria((END,), PAD, min(longest, 40) if rows.model.config.position == "learned" else longest)
    batch = sample(rows.model, rows.start(), ending, choice, seeds, rows.prompts)
    for row, seed, hypothesis in zip(rows, seeds, batch, strict=True):
        sampler = Sampler(choice, [seed], torch.empty(1, VOCAB), longest, row.prompts)
        assert isinstance(ending.max_tokens, int)
        assert_same_texts([hypothesis], [written_slowly(row, ending.max_tokens, sampler)])


def test_the_same_seed_is_the_same_text_and_another_is_another(rows: Rows) -> None:
    ending, choice = StopCriteria((END,), PAD, 20), SamplingSettings()
    first, again, other = (sample(rows.model, rows.start(), ending, choice, seed) for seed in (7, 7, 8))
    assert first == again
    assert [h.ids for h in first] != [h.ids for h in other]
    unseeded = [sample(rows.model, rows.start(), ending, choice) for _ in range(2)]
    assert unseeded[0] != unseeded[1]


def test_rows_with_the_same_prompt_differ_and_do_not_depend_on_how_many_there_are() -> None:
    model = decoder_only(vocab=50)
    many, few = (
        sample(
            model,
            model.start(torch.ones(rows, 2, dtype=torch.long)),
            StopCriteria((), PAD, 12),
            SamplingSettings(),
            seed=1,
        )
        for rows in (8, 3)
    )
    assert len({tuple(h.ids) for h in many}) == 8
    assert [h.ids for h in many[:3]] == [h.ids for h in few]


@pytest.mark.parametrize("choice", [None, SamplingSettings(1.2, top_p=0.9)])
def test_a_stream_is_the_whole_text(rows: Rows, choice: SamplingSettings | None) -> None:
    longest = torch.tensor([9, 4, 12, 7, 1])
    ending = StopCriteria((END,), PAD, longest)
    steps = list(stream(rows.model, rows.start(), ending, choice, seed=5))
    whole = (
        greedy(rows.model, rows.start(), ending)
        if choice is None
        else sample(rows.model, rows.start(), ending, choice, 5)
    )
    for column, text in zip(torch.stack(steps, dim=1).tolist(), whole, strict=True):
        said = text.ids + [END] * text.ended
        assert column == said + [PAD] * (len(steps) - len(said))
    assert len(steps) == max(len(h.ids) + h.ended for h in whole)


def test_a_cold_draw_is_greedy(rows: Rows) -> None:
    ending = StopCriteria((END,), PAD, 12)
    assert_same_texts(
        sample(rows.model, rows.start(), ending, SamplingSettings(1e-6), 0), greedy(rows.model, rows.start(), ending)
    )


def test_rows_that_have_ended_leave_and_nothing_changes(rows: Rows) -> None:
    """A state of fixed shape keeps all its rows: the results are the same."""
    ending = StopCriteria((END,), PAD, torch.tensor([1, 2, 20, 3, 1]))
    searches: list[Any] = [greedy, lambda model, begun, ending: [h[0] for h in beam(model, begun, ending, width=2)]]
    for search in searches:
        shrinking, fixed = rows.start(), rows.start(capacity=32)
        assert_same_texts(search(rows.model, shrinking, ending), search(rows.model, fixed, ending))
        assert len(shrinking[1].count) < len(fixed[1].count)


@torch.inference_mode()
def test_moving_rows_leaves_what_a_hook_has_seen_alone(rows: Rows) -> None:
    block, seen = rows.model.decoder.blocks[0], list[Tensor]()
    hook = block.attention.keys.register_forward_hook(lambda _module, _inputs, output: seen.append(output))
    _, state = rows.start()
    hook.remove()
    before = seen[0].clone()
    state.select(torch.tensor([1, 0, 2, 4, 3]))
    assert torch.equal(seen[0], before)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"width": 0}, "beam = 0: must be at least 1"),
        ({"nbest": 5}, "nbest = 5: must be at least 1 and at most the beam's width, 4"),
        ({"length_penalty": -1.0}, "length_penalty = -1.0: must not be negative"),
    ],
)
def test_what_no_beam_can_do_is_refused(settings: dict[str, Any], message: str) -> None:
    rows = Rows(decoder_only(vocab=VOCAB))
    with pytest.raises(UserError, match=message):
        beam(rows.model, rows.start(), StopCriteria((END,), PAD, 3), **settings)


def test_there_must_be_room_to_write() -> None:
    with pytest.raises(UserError, match="max_tokens = 0: must be at least 1"):
        StopCriteria((END,), PAD, torch.tensor([3, 0]))


def test_scores_are_sums_of_log_probabilities() -> None:
    rows = Rows(decoder_only(vocab=VOCAB)).alone(0)
    [[best]] = beam(rows.model, rows.start(), StopCriteria((END,), PAD, 5), 4, 0.6)
    ids = best.ids + [END] * best.ended
    assert best.log_probability == pytest.approx(sum(rows.log_probability(ids[:t], ids[t]) for t in range(len(ids))))
    assert best.score == pytest.approx(best.log_probability / ((5 + len(ids)) / 6) ** 0.6)
    assert best.log_probability < 0 < math.exp(best.log_probability)
