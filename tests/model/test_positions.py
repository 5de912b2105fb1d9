"""What the paper says of positions, and what it means for attention."""

from __future__ import annotations

import math

import pytest
import torch

from clearhead.config import UserError
from clearhead.model.attention import rotate
from clearhead.model.stack import RotaryPosition, SinusoidalPosition, document_positions
from properties import given, st
from tiny_models import TINY, assert_same, decoder_only, encoder_only, random_ids

waves = SinusoidalPosition(TINY)


def test_sinusoids_are_the_papers() -> None:
    table = waves(torch.arange(40), torch.float64)
    for position, channel in ((0, 0), (0, 1), (7, 4), (39, 15)):
        angle = position / 10_000 ** (2 * (channel // 2) / TINY.d_model)
        expected = math.sin(angle) if channel % 2 == 0 else math.cos(angle)
        assert table[position, channel].item() == pytest.approx(expected, abs=1e-12)


@given(position=st.integers(0, 2000), distance=st.integers(-500, 500))
def test_a_shift_is_a_rotation(position: int, distance: int) -> None:
    """PE(pos + k) is a linear function of PE(pos): a block-diagonal rotation that depends on k alone."""
    here, there = waves(torch.tensor([position, position + distance]), torch.float64)
    rotation = torch.zeros(TINY.d_model, TINY.d_model, dtype=torch.float64)
    for pair in range(0, TINY.d_model, 2):
        angle = distance / 10_000 ** (pair / TINY.d_model)
        cos, sin = math.cos(angle), math.sin(angle)
        turn = torch.tensor([[cos, sin], [-sin, cos]], dtype=torch.float64)  # of (sine, cosine)
        rotation[pair : pair + 2, pair : pair + 2] = turn
    torch.testing.assert_close(rotation @ here, there, rtol=1e-9, atol=1e-9)


@given(query=st.integers(0, 1000), key=st.integers(0, 1000), shift=st.integers(0, 1000))
def test_rotary_scores_depend_on_the_distance_alone(query: int, key: int, shift: int) -> None:
    rotary = RotaryPosition(TINY)
    q, k = torch.randn(2, 1, 1, 1, 4, dtype=torch.float64)

    def score(at: int, to: int) -> torch.Tensor:
        turned = [rotate(x, rotary(torch.tensor([p]), torch.float64)) for x, p in ((q, at), (k, to))]
        return (turned[0] * turned[1]).sum()

    torch.testing.assert_close(score(query, key), score(query + shift, key + shift), rtol=1e-9, atol=1e-9)


@torch.inference_mode()
def test_without_positions_attention_is_permutation_equivariant() -> None:
    ids, order = random_ids(2, 8), torch.randperm(8)
    blind = encoder_only(position="none")
    assert_same(blind(ids[:, order]), blind(ids)[:, order])
    for position in ("sinusoidal", "learned", "rotary"):
        sighted = encoder_only(position=position)
        assert not torch.allclose(sighted(ids[:, order]), sighted(ids)[:, order])


def test_documents_count_from_zero() -> None:
    documents = torch.tensor([[3, 3, 3, 1, 1, 3], [0, 0, 0, 0, 0, 0]])
    assert document_positions(documents).tolist() == [[0, 1, 2, 0, 1, 0], [0, 1, 2, 3, 4, 5]]


@torch.inference_mode()
def test_learned_positions_run_out_with_a_sentence() -> None:
    model = decoder_only(position="learned", max_length=8)
    model(random_ids(1, 8))
    with pytest.raises(UserError, match=r"9 tokens is longer than model\.max_length = 8"):
        model(random_ids(1, 9))
    _, state = model.start(random_ids(1, 8))
    with pytest.raises(UserError, match=r"9 tokens is longer than model\.max_length = 8"):
        model.step(random_ids(1, 1), state)


@torch.inference_mode()
def test_a_packed_document_may_not_be_longer_either() -> None:
    model = decoder_only(position="learned", max_length=8)
    documents = torch.arange(12)[None] // 6
    assert model(random_ids(1, 12), documents).shape == (1, 12, 50)
    with pytest.raises(UserError, match=r"9 tokens is longer than model\.max_length = 8"):
        model(random_ids(1, 12), torch.arange(12)[None] // 9)


@pytest.mark.parametrize("position", ["sinusoidal", "rotary", "none"])
@torch.inference_mode()
def test_other_positions_have_no_limit(position: str) -> None:
    assert decoder_only(position=position, max_length=8)(random_ids(1, 20)).shape == (1, 20, 50)
