"""The equations that hold for every combination of options: each of them is a bug somewhere else."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import lru_cache
from typing import Any

import pytest
import torch
from torch import Tensor

from clearhead.config import ModelConfig, UserError
from clearhead.model import DecoderOnly, EncoderDecoder, State, attention
from fixed_states import fixed_state
from properties import given, st
from tiny_models import (
    GRID,
    all_real,
    assert_same,
    decoder_only,
    encoder_decoder,
    encoder_only,
    name,
    observed_weights,
    random_ids,
)

# of the scope of the file, so that all tests of a config come one after the other and share its models
over_the_grid = pytest.mark.parametrize("config", GRID, ids=name, scope="module")
# float64 tells any two formulas apart; float32 is what models run in, and takes the same paths but for the kernels
PRECISE = [pytest.param(config, torch.float64, id=f"{name(config)}-float64") for config in GRID]
SINGLE = [pytest.param(config, torch.float32, id=f"{name(config)}-float32") for config in GRID[::11]]
over_the_grid_in_both_precisions = pytest.mark.parametrize(("config", "dtype"), PRECISE + SINGLE, scope="module")
CAPACITIES = (None, 12)  # a state that grows, and one of fixed shape
every_storage = pytest.mark.parametrize("capacity", CAPACITIES, ids=["growing", "fixed"])


def new_state(model: EncoderDecoder | DecoderOnly, prompt: Tensor, capacity: int | None) -> State:
    """A state that grows, or one of fixed shape."""
    return model.new_state(prompt) if capacity is None else fixed_state(model, prompt, capacity)


@lru_cache(maxsize=8)
def shared(build: Callable[..., Any], config: ModelConfig, dtype: torch.dtype) -> Any:
    """A model with the same weights in every test, which leaves it as it is: to build one takes longer than its use."""
    with torch.random.fork_rng(), torch.inference_mode(False):
        torch.manual_seed(0)
        return build(config, dtype)


@contextmanager
def fused() -> Iterator[None]:
    """Torch's kernel for the shortest sentences, too, which a CPU computes by the formula."""
    with pytest.MonkeyPatch.context() as change:
        change.setattr(attention, "SHORT_ATTENTION_PAIRS", 0)
        yield


@over_the_grid_in_both_precisions
@torch.inference_mode()
def test_fused_attention_is_the_explicit_one(config: ModelConfig, dtype: torch.dtype) -> None:
    source, target, real = random_ids(3, 7), random_ids(3, 6), torch.rand(3, 7) < 0.7
    models = [shared(build, config, dtype) for build in (encoder_decoder, decoder_only, encoder_only)]
    inputs = ((source, target, real), (target,), (source, real))
    for model, arguments in zip(models, inputs, strict=True):
        explicit = model(*arguments)
        with fused():
            assert_same(model(*arguments), explicit)
            with observed_weights(model) as seen:
                assert_same(model(*arguments), explicit)
        assert seen


@over_the_grid_in_both_precisions
@torch.inference_mode()
def test_the_future_changes_nothing(config: ModelConfig, dtype: torch.dtype) -> None:
    source, ids = random_ids(2, 5), random_ids(2, 9)
    other = torch.cat([ids[:, :5], (ids[:, 5:] + 1) % config.vocab], dim=1)
    decoder, translator = shared(decoder_only, config, dtype), shared(encoder_decoder, config, dtype)
    assert_same(decoder(other)[:, :5], decoder(ids)[:, :5])
    assert_same(translator(source, other)[:, :5], translator(source, ids)[:, :5])
    assert not torch.allclose(decoder(other)[:, 5:], decoder(ids)[:, 5:])


@over_the_grid_in_both_precisions
@torch.inference_mode()
def test_cached_is_chunked_is_full(config: ModelConfig, dtype: torch.dtype) -> None:
    source, real, ids = random_ids(2, 5), torch.tensor([[True] * 5, [True] * 3 + [False] * 2]), random_ids(2, 10)
    decoder, translator = shared(decoder_only, config, dtype), shared(encoder_decoder, config, dtype)
    cases: list[tuple[Any, Any, Any]] = [(decoder, (), ()), (translator, (source,), (real,))]
    for model, before, after in cases:
        full = model(*before, ids, *after)
        for capacity in CAPACITIES:
            logits, state = model.start(*before, ids[:, :3], *after, None, new_state(model, ids, capacity))
            assert_same(logits, full[:, 2])
            for begin, end in ((3, 4), (4, 8), (8, 9), (9, 10)):  # one token, a chunk, single tokens again
                assert_same(model.step(ids[:, begin:end], state), full[:, end - 1])


@over_the_grid_in_both_precisions
@torch.inference_mode()
def test_a_batch_of_unequal_prompts_is_each_alone(config: ModelConfig, dtype: torch.dtype) -> None:
    decoder, prompts, following = shared(decoder_only, config, dtype), random_ids(3, 6), random_ids(3, 2)
    real = torch.arange(6) >= torch.tensor([[0], [2], [5]])  # padded on the left
    lengths = (6, 4, 1)
    alone = [decoder(torch.cat([prompts[row, 6 - n :], following[row]])[None])[0] for row, n in enumerate(lengths)]
    for capacity in CAPACITIES:
        logits, state = decoder.start(prompts, real, new_state(decoder, prompts, capacity))
        then = decoder.step(following, state)
        for row, (length, full) in enumerate(zip(lengths, alone, strict=True)):
            assert_same(logits[row], full[length - 1])
            assert_same(then[row], full[-1])


@over_the_grid_in_both_precisions
@torch.inference_mode()
def test_padding_changes_nothing(config: ModelConfig, dtype: torch.dtype) -> None:
    source, target = random_ids(3, 7), random_ids(3, 5)
    lengths = (7, 4, 1)
    real = torch.arange(7) < torch.tensor(lengths)[:, None]
    translator = shared(encoder_decoder, config, dtype)
    models = [
        shared(encoder_only, config, dtype),
        encoder_only(config, dtype, head="classes", classes=3, head_dense=True),
        encoder_only(config, dtype, head="embedding", pool="first"),
    ]
    translated = translator(source, target, real)
    outputs = [model(source, real) for model in models]
    for row, length in enumerate(lengths):
        one, ids = slice(row, row + 1), source[row : row + 1, :length]
        assert_same(translated[one], translator(ids, target[one], all_real(ids)))
        assert_same(translated[one], translator(ids, target[one]))
        for model, output in zip(models, outputs, strict=True):
            assert_same(output[one, :length] if output.dim() == 3 else output[one], model(ids))


@over_the_grid_in_both_precisions
@torch.inference_mode()
def test_packed_documents_are_each_alone(config: ModelConfig, dtype: torch.dtype) -> None:
    decoder, ids = shared(decoder_only, config, dtype), random_ids(1, 9)
    documents = torch.tensor([[7, 7, 7, 2, 2, 2, 2, 7, 7]])  # a number that comes again is another document
    packed = decoder(ids, documents)
    for part in (slice(0, 3), slice(3, 7), slice(7, 9)):
        assert_same(packed[:, part], decoder(ids[:, part]))


@over_the_grid_in_both_precisions
@torch.inference_mode()
def test_selected_rows_go_on_as_if_they_had_been_alone(config: ModelConfig, dtype: torch.dtype) -> None:
    translator = shared(encoder_decoder, config, dtype)
    for capacity in CAPACITIES:
        select_fork_and_reorder(translator, capacity)


def select_fork_and_reorder(translator: EncoderDecoder, capacity: int | None) -> None:
    """Change the rows of a state in every way, and compare each next step with a forward pass of the same rows."""
    source, prompt = random_ids(2, 5), random_ids(2, 3)
    real = torch.tensor([[True] * 5, [True] * 2 + [False] * 3])
    _, state = translator.start(source, prompt, real, None, new_state(translator, prompt, capacity))
    rows = torch.tensor([1, 0, 1])
    state.select(rows)  # sentences change places, and multiply
    source, real, sequences = source[rows], real[rows], prompt[rows]

    def go_on() -> None:
        nonlocal sequences
        tokens = random_ids(len(sequences), 1)
        sequences = torch.cat([sequences, tokens], dim=1)
        assert_same(translator.step(tokens, state), translator(source, sequences, real)[:, -1])

    go_on()
    state.fork(2)  # what a beam does first
    source, real, sequences = (t.repeat_interleave(2, 0) for t in (source, real, sequences))
    go_on()
    state.reorder(torch.tensor([[1, 0], [1, 1], [0, 1]]))  # then: hypotheses of one sentence change places
    sequences = sequences[torch.tensor([1, 0, 3, 3, 4, 5])]
    go_on()
    state.select(torch.tensor([2, 1]))  # and last: sentences leave, with all their hypotheses
    kept = torch.tensor([4, 5, 2, 3])
    source, real, sequences = source[kept], real[kept], sequences[kept]
    go_on()


@every_storage
@torch.inference_mode()
def test_selecting_leaves_the_callers_tensors_alone(capacity: int | None) -> None:
    translator, source, real = encoder_decoder(), random_ids(2, 5), torch.tensor([[True] * 5, [True] * 2 + [False] * 3])
    before = real.clone()
    prompt = random_ids(2, 1)
    _, state = translator.start(source, prompt, real, None, new_state(translator, prompt, capacity))
    state.select(torch.tensor([1, 0]))
    assert torch.equal(real, before)


@every_storage
@torch.inference_mode()
def test_forced_prefixes_of_unequal_length(capacity: int | None) -> None:
    translator, source, prompts = encoder_decoder(), random_ids(2, 5), random_ids(2, 4)
    real = torch.tensor([[True] * 4, [False] * 3 + [True]])
    logits, state = translator.start(source, prompts, None, real, new_state(translator, prompts, capacity))
    then = translator.step(prompts[:, :1], state)
    for row, prompt in enumerate((prompts[0], prompts[1, 3:])):
        full = translator(source[row : row + 1], torch.cat([prompt, prompts[row, :1]])[None])[0]
        assert_same(logits[row], full[-2])
        assert_same(then[row], full[-1])


@torch.inference_mode()
def test_a_full_state_refuses_and_stays_as_it_was() -> None:
    model, ids = decoder_only(), random_ids(1, 4)
    _, state = model.start(ids[:, :3], state=fixed_state(model, ids, 4))
    with pytest.raises(UserError, match="capacity = 4: too small for 5 tokens"):
        model.step(ids[:, :2], state)
    assert_same(model.step(ids[:, 3:], state), model(ids)[:, -1])


@torch.inference_mode()
def test_segments_are_told_apart() -> None:
    model, ids = encoder_only(segments=2), random_ids(2, 5)
    segments = torch.tensor([[0, 0, 0, 1, 1]] * 2)
    assert torch.equal(model(ids), model(ids, segments=torch.zeros_like(ids)))
    assert not torch.allclose(model(ids), model(ids, segments=segments))


@over_the_grid
def test_rows_that_may_see_nothing_give_no_nan(config: ModelConfig) -> None:
    source, target, nothing = random_ids(2, 4), random_ids(2, 3), torch.zeros(2, 4, dtype=torch.bool)
    nothing[1] = True
    model = shared(encoder_decoder, config, torch.float64)
    for kernel in (fused, nullcontext):
        model.zero_grad()
        with kernel():
            logits = model(source, target, nothing)
        logits.sum().backward()
        assert torch.isfinite(logits).all()
        assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)


@over_the_grid
def test_gradients_do_not_depend_on_who_looks(config: ModelConfig) -> None:
    source, target, real = random_ids(2, 5), random_ids(2, 4), torch.rand(2, 5) < 0.7
    model = shared(encoder_decoder, config, torch.float64)
    parameters = list(model.parameters())
    explicit = torch.autograd.grad(model(source, target, real).square().sum(), parameters)
    with fused(), observed_weights(model):
        by_kernel = torch.autograd.grad(model(source, target, real).square().sum(), parameters)
    for a, b in zip(by_kernel, explicit, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-8, atol=1e-8)


@over_the_grid
@torch.inference_mode()
def test_bfloat16_is_finite_and_close(config: ModelConfig) -> None:
    torch.manual_seed(1)
    model, source, target = encoder_decoder(config, torch.float32), random_ids(2, 6), random_ids(2, 5)
    precise = model(source, target)
    rough = model.to(torch.bfloat16)(source, target).float()
    assert torch.isfinite(rough).all()
    assert (rough - precise).norm() < 0.1 * precise.norm()


@given(
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=4),
    chunks=st.lists(st.integers(1, 4), min_size=1, max_size=3),
    capacity=st.sampled_from([None, 24]),
    choice=st.integers(0, len(GRID) - 1),
)
@torch.inference_mode()
def test_any_prompts_in_any_chunks(lengths: list[int], chunks: list[int], capacity: int | None, choice: int) -> None:
    decoder, longest = decoder_only(GRID[choice]), max(lengths)
    prompts, following = random_ids(len(lengths), longest), random_ids(len(lengths), sum(chunks))
    real = torch.arange(longest) >= longest - torch.tensor(lengths)[:, None]
    logits, state = decoder.start(prompts, real, new_state(decoder, prompts, capacity))
    got = [logits]
    for begin, end in itertools.pairwise(itertools.accumulate(chunks, initial=0)):
        got.append(decoder.step(following[:, begin:end], state))
    ends = [0, *itertools.accumulate(chunks)]
    for row, length in enumerate(lengths):
        full = decoder(torch.cat([prompts[row, longest - length :], following[row]])[None])[0]
        for logits, end in zip(got, ends, strict=True):
            assert_same(logits[row], full[length - 1 + end])
