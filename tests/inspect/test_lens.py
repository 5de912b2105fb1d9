"""The last layer of the logit lens is the output, contributions add up to the logit, saliency is gradient × input."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from clearhead.config import Family, ModelConfig, UserError
from clearhead.fast.cpu.matrices import pack
from clearhead.inspect.explain import explain
from clearhead.inspect.lens import contributions, likeliest, logit_lens, rollout, saliency
from clearhead.inspect.patch import knock_out, replace, scale
from clearhead.inspect.trace import Trace, trace
from tiny_models import GRID, TINY, name
from tiny_runs import TEXT, tiny_run

FAMILIES: tuple[Family, ...] = ("encoder-decoder", "decoder-only", "encoder-only")
HEADS: list[dict[str, Any]] = [
    {"head": head, "head_dense": dense, "pool": pool, "head_bias": dense}
    for head in ("vocabulary", "classes")
    for dense, pool in ((True, "first"), (False, "mean"))
]


def traced(family: Family, config: ModelConfig = TINY, **options: Any) -> Trace:
    target = "la voiture" if family == "encoder-decoder" else None
    return trace(tiny_run(family, config, torch.float64, **options), TEXT, target)


@pytest.mark.parametrize("config", GRID[1::16], ids=name)
def test_the_last_layer_of_the_lens_is_the_model(config: ModelConfig) -> None:
    seen = traced(FAMILIES[GRID.index(config) // 16 % 3], config)
    lens = logit_lens(seen)
    first, *_, last = lens.values()
    assert len(lens) == config.layers + 1
    torch.testing.assert_close(last, seen["head.logits"][0])
    assert not torch.allclose(first, last)
    some = logit_lens(seen, [2, 0])
    for stream, logits in lens.items():
        torch.testing.assert_close(some[stream], logits[[2, 0]])


@pytest.mark.parametrize("options", HEADS, ids=lambda o: f"{o['head']}-{o['pool']}")
def test_the_lens_of_an_encoder_only_model(options: dict[str, Any]) -> None:
    seen = traced("encoder-only", **options)
    torch.testing.assert_close(list(logit_lens(seen).values())[-1], seen["head.logits"][0])


@pytest.mark.parametrize("config", GRID[::6], ids=name)
def test_contributions_add_up_to_the_logit(config: ModelConfig) -> None:
    seen = traced(FAMILIES[GRID.index(config) // 6 % 3], config)
    for place, word in ((-1, 5), (1, 200)):
        found = contributions(seen, word, place)
        assert found.logit == seen["head.logits"][0, place, word]
        assert sum(found.parts.values()) == pytest.approx(found.logit)
        assert abs(found.rest) < 1e-9
        assert len([part for part in found.parts if " head " in part]) >= config.layers * config.heads


@pytest.mark.parametrize("pool", ["first", "mean"])
def test_contributions_to_a_class_add_up(pool: str) -> None:
    seen = traced("encoder-only", head="classes", pool=pool, head_bias=True, segments=2, embedding_norm=True)
    found = contributions(seen, 1)
    assert found.logit == seen["head.logits"][0, 1]
    assert abs(found.rest) < 1e-9
    assert {"encoder.segment", "encoder.embedding_norm.bias", "head.project.bias"} <= found.parts.keys()


def test_a_contribution_is_what_is_missing_without_it() -> None:
    """With pre-norm, the last feed-forward speaks to the head alone: without it, and with the norm's old deviation."""
    seen = traced("decoder-only", norm_order="pre", layers=1, norm="rms")
    found, name = contributions(seen, 7), "decoder.blocks.0.feed_forward"
    x, without = (t[f"{name}_add_norm"][0, -1] for t in (seen, seen.again({name: knock_out()})))
    norm, head = seen.run.model.decoder.norm, seen.run.model.head.project
    deviation = (x.square().mean() + norm.epsilon).sqrt()
    assert found.parts[name] == pytest.approx(float((x - without) / deviation * norm.weight @ head.weight[7]))


def test_edited_weights_count_in_lenses() -> None:
    seen = traced("decoder-only").again({"decoder.embedding.weight": replace([0.5] * 16, row=9)})
    torch.testing.assert_close(list(logit_lens(seen).values())[-1], seen["head.logits"][0])
    assert abs(contributions(seen, 9).rest) < 1e-9


def test_what_was_changed_by_hand_is_the_rest() -> None:
    plain = traced("decoder-only", norm_order="pre")
    changed = plain.again({"decoder.blocks.1.attention": scale(3.0)})
    assert abs(contributions(changed, 3).rest) > 1e-3


@pytest.mark.parametrize("family", FAMILIES)
def test_rollout_is_a_mixture_of_tokens(family: Family) -> None:
    seen = traced(family)
    stack = "decoder" if family == "decoder-only" else "encoder"
    mixed = rollout(seen, stack)
    assert (mixed >= 0).all()
    torch.testing.assert_close(mixed.sum(-1), torch.ones_like(mixed.sum(-1)))
    weights = seen[f"{stack}.blocks.0.attention.weights"][0].mean(0)
    torch.testing.assert_close(mixed[0], (weights + torch.eye(len(weights))) / 2)
    if family == "decoder-only":
        assert (mixed.triu(1) == 0).all()  # nothing comes from the future
    with pytest.raises(UserError, match="no attention weights of it"):
        rollout(seen, "middle")


@pytest.mark.parametrize("family", FAMILIES)
def test_saliency_is_the_slope_of_the_logit(family: Family) -> None:
    """Growing a token's embedding a little moves the logit by its saliency."""
    seen, step = traced(family, activation="gelu"), 1e-4
    for side, scores in saliency(seen, 5, 1).items():
        name = f"{'encoder' if side == 'source' else 'decoder'}.embedding"
        assert len(scores) == len(seen.tokens[side])
        for token in (0, 1):
            up, down = (
                seen.again({name: scale(1 + sign * step, token=token)}, only=["head.logits"])["head.logits"][0, 1, 5]
                for sign in (1, -1)
            )
            assert scores[token].item() == pytest.approx(float(up - down) / (2 * step), rel=1e-4, abs=1e-6)


def test_a_class_has_a_saliency_of_the_source() -> None:
    assert saliency(traced("encoder-only", head="classes"), 2)["source"].any()


def test_a_vector_has_no_logits_and_a_nonlinearity_no_parts() -> None:
    with pytest.raises(UserError, match="this model has no logits"):
        logit_lens(traced("encoder-only", head="embedding"))
    with pytest.raises(UserError, match="not a sum of parts; use saliency"):
        contributions(traced("encoder-only", head="classes", head_dense=True), 0)
    with pytest.raises(UserError, match="choice 300: there are 300 logits"):
        contributions(traced("decoder-only"), 300)
    with pytest.raises(UserError, match="position 8: there are 8 tokens"):
        saliency(traced("decoder-only"), 0, 8)


@pytest.mark.filterwarnings("ignore:torch.quantize")
def test_int8_can_be_traced_but_not_explained() -> None:
    run = tiny_run("decoder-only")
    pack(run.model, "int8")
    seen = trace(run, TEXT)
    torch.testing.assert_close(list(logit_lens(seen).values())[-1], seen["head.logits"][0], rtol=0.1, atol=0.1)
    for look in (lambda: contributions(seen, 3), lambda: explain(seen, "head.logits", (0, 0, 0))):
        with pytest.raises(UserError, match="open the run with its weights in float32"):
            look()


def test_the_likeliest_words_come_first() -> None:
    found = likeliest(torch.tensor([0.0, 2.0, 1.0]), ["a", "b", "c"], 2)
    assert [word for word, _ in found] == ["b", "c"]
    assert found[0][1] == pytest.approx(0.6652, abs=1e-4)
