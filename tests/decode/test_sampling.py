"""Drawing tokens: each rule keeps exactly the tokens that its slow definition keeps, and chance is fair."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from clearhead.config import UserError
from clearhead.decode.sampling import Sampler, SamplingSettings, draw, row_seeds
from properties import assume, given, st

# few different values, so that tokens are often equally likely
DISTRIBUTIONS = st.lists(st.integers(-6, 6).map(lambda n: n / 2), min_size=1, max_size=12)


def kept(choice: SamplingSettings, logits: list[float]) -> set[int]:
    probabilities = choice.probabilities(torch.tensor([logits], dtype=torch.float64))[0]
    assert probabilities.sum().item() == pytest.approx(1)
    return set(probabilities.nonzero().flatten().tolist())


def softmax(logits: list[float]) -> list[float]:
    weights = [math.exp(x) for x in logits]
    return [w / sum(weights) for w in weights]


@given(DISTRIBUTIONS, st.integers(1, 14))
def test_top_k_keeps_those_that_fewer_than_k_surpass(logits: list[float], k: int) -> None:
    assert kept(SamplingSettings(top_k=k), logits) == {
        token for token, x in enumerate(logits) if sum(other > x for other in logits) < k
    }


@given(DISTRIBUTIONS, st.floats(0.01, 0.99), st.floats(0.5, 2.0))
def test_top_p_keeps_those_whose_betters_do_not_reach_p(logits: list[float], p: float, temperature: float) -> None:
    chances = softmax([x / temperature for x in logits])
    betters = [
        sum(c for c, other in zip(chances, logits, strict=True) if other > x) for x in logits
    ]  # the probability of all likelier tokens together
    assume(all(abs(mass - p) > 1e-9 for mass in betters))
    assert kept(SamplingSettings(temperature, top_p=p), logits) == {
        token for token, mass in enumerate(betters) if mass < p
    }


@given(DISTRIBUTIONS, st.floats(0.01, 1.0))
def test_min_p_keeps_those_near_the_likeliest(logits: list[float], p: float) -> None:
    chances = softmax(logits)
    assume(all(abs(c - p * max(chances)) > 1e-9 or p == 1 for c in chances))
    expected = {token for token, c in enumerate(chances) if c >= p * max(chances) - 1e-12}
    assert kept(SamplingSettings(min_p=p), logits) == expected


@given(DISTRIBUTIONS, st.integers(1, 12), st.floats(0.05, 1.0), st.floats(0.0, 1.0))
def test_rules_follow_each_other(logits: list[float], k: int, top_p: float, min_p: float) -> None:
    """Each sees what the one before it left over."""
    left = sorted(kept(SamplingSettings(top_k=k), logits))
    left = [left[i] for i in kept(SamplingSettings(top_p=top_p), [logits[i] for i in left])]
    left = [left[i] for i in kept(SamplingSettings(min_p=min_p), [logits[i] for i in left])]
    assert kept(SamplingSettings(top_k=k, top_p=top_p, min_p=min_p), logits) == set(left)


@given(DISTRIBUTIONS, st.floats(0.1, 5.0))
def test_temperature_divides_the_logits(logits: list[float], temperature: float) -> None:
    drawn_from = SamplingSettings(temperature).probabilities(torch.tensor([logits], dtype=torch.float64))[0]
    assert drawn_from.tolist() == pytest.approx(softmax([x / temperature for x in logits]))


@pytest.mark.parametrize("temperature", [1e-30, 1e-3])
def test_cold_is_greedy_and_nothing_overflows(temperature: float) -> None:
    logits = torch.tensor([[300.0, -200.0, 299.0], [-5.0, -4.0, -900.0]])
    assert torch.equal(SamplingSettings(temperature).probabilities(logits), torch.tensor([[1.0, 0, 0], [0, 1.0, 0]]))


def test_what_was_said_becomes_less_likely_whatever_its_sign() -> None:
    logits, said = torch.tensor([[2.0, 2.0, -2.0, -2.0]]), torch.tensor([[True, False, True, False]])
    changed = SamplingSettings(repetition_penalty=2.0).probabilities(logits, said)
    assert changed.tolist()[0] == pytest.approx(softmax([1.0, 2.0, -4.0, -2.0]))


def test_the_penalty_counts_the_prompt_and_what_was_written() -> None:
    """So heavy a penalty lets no token come twice."""
    choice, rows = SamplingSettings(1e-6, repetition_penalty=1e6), torch.tensor([0, 1])
    chance = Sampler(choice, 0, torch.empty(2, 4), 3, [[3], [0, 1]])
    logits = torch.tensor([[1.0, 2.0, 3.0, 4.0]] * 2)
    written = [chance(logits, rows, torch.tensor(step)).tolist() for step in range(2)]
    assert written == [[2, 3], [1, 2]]
    assert chance(logits[:1], torch.tensor([0]), torch.tensor(2)).tolist() == [0]  # the other row has left the batch


@given(DISTRIBUTIONS, st.lists(st.booleans(), min_size=12, max_size=12), st.floats(0, 1, exclude_max=True, width=32))
def test_what_is_out_is_never_drawn(logits: list[float], out: list[bool], number: float) -> None:
    weights = torch.tensor(logits).exp() * ~torch.tensor(out[: len(logits)])
    assume(weights.any())
    for probabilities in (weights / weights.sum(), weights):  # a sum that is not exactly 1 does no harm
        token = int(draw(probabilities[None], torch.tensor([number])))
        assert probabilities[token] > 0


def test_the_last_number_below_one_draws_the_last_token_that_can_be() -> None:
    probabilities = torch.full((1, 1000), 1 / 997)
    probabilities[0, 997:] = 0
    assert draw(probabilities, torch.tensor([1 - 2**-24])).item() == 996
    assert draw(probabilities, torch.tensor([0.0])).item() == 0


def test_chance_is_fair() -> None:
    """20,000 draws: each frequency within four deviations of its probability."""
    probabilities = torch.tensor([0.5, 0.25, 0.0, 0.2, 0.05])
    rows, steps = 200, 100
    chance = Sampler(SamplingSettings(), 0, torch.empty(rows, 5), steps)
    logits, everybody = probabilities.log().expand(rows, 5), torch.arange(rows)
    drawn = torch.cat([chance(logits, everybody, step) for step in torch.arange(steps)])
    counts = torch.bincount(drawn, minlength=5)
    deviation = (probabilities * (1 - probabilities) * rows * steps).sqrt()
    assert ((counts - probabilities * rows * steps).abs() <= 4 * deviation).all()


def test_more_tokens_than_fit_into_the_memory_are_refused() -> None:
    with pytest.raises(
        UserError, match=r"^sampling up to 1,000,000,000,000 tokens needs at least 8,000\.0 GB of memory"
    ):
        Sampler(SamplingSettings(), 0, torch.zeros(1, 5), 10**12)


def test_rows_have_different_seeds_whatever_their_number() -> None:
    assert row_seeds(1, 5)[:3] == row_seeds(1, 3)
    assert len(set(row_seeds(1, 100) + row_seeds(2, 100))) == 200
    assert row_seeds([4, 5], 2) == [4, 5]
    with pytest.raises(UserError, match="seed: 2 were given for 3 rows"):
        row_seeds([4, 5], 3)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"temperature": 0.0}, "temperature = 0.0: must be above 0; to always take the most likely token"),
        ({"temperature": math.nan}, "temperature = nan: must be above 0"),
        ({"top_k": -1}, "top_k = -1: must be 1 or more, or 0"),
        ({"top_k": 1.5}, "top_k = 1.5: must be 1 or more, or 0"),
        ({"top_p": 0.0}, "top_p = 0.0: must be above 0 and at most 1"),
        ({"top_p": 1.1}, "top_p = 1.1: must be above 0 and at most 1"),
        ({"min_p": -0.1}, "min_p = -0.1: must be between 0"),
        ({"repetition_penalty": 0.0}, "repetition_penalty = 0.0: must be above 0"),
    ],
)
def test_impossible_choices_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        SamplingSettings(**settings)
