"""The diagram of the first screen has the library's own numbers, for every family."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from clearhead.config import UserError
from clearhead.inspect.decoding import greedy_steps
from clearhead.inspect.trace import trace
from clearhead.inspect.web.diagram import CHANNELS, LANES
from clearhead.inspect.web.explorer import Explorer
from explored_runs import KINDS, folder_of, opened
from tiny_runs import TEXT


def diagram(explorer: Explorer, text: str = TEXT, **query: str) -> dict[str, Any]:
    begun = explorer.answer("trace", {"run": "0", "text": text})
    assert isinstance(begun, dict)
    found = explorer.answer("diagram", {"trace": begun["id"], **query})
    assert isinstance(found, dict)
    return found


def tensor(box: dict[str, Any]) -> torch.Tensor:
    return torch.tensor(box["data"]).view(box["shape"])


@pytest.mark.parametrize("kind", KINDS)
def test_every_box_has_numbers_of_its_tensor(kind: str) -> None:
    found = diagram(Explorer([folder_of(kind)]))
    traced = trace(opened(kind), TEXT)
    assert any(name.endswith(".weights") for name in found["boxes"])
    for name, box in found["boxes"].items():
        shown = tensor(box)
        real = traced[name] if name.endswith("position") else traced[name][0]
        if name.endswith(".weights"):
            torch.testing.assert_close(shown, real[:, :LANES, :LANES], atol=6e-4, rtol=0)
        else:  # each number that is shown is one of the vector
            assert shown.size(-1) == min(CHANNELS, real.size(-1))
            real = real[:LANES] if real.dim() > 1 else real
            assert ((shown[..., :, None] - real[..., None, :]).abs().amin(-1) < 6e-4).all()


@pytest.mark.parametrize("kind", ["translator", "writer", "guesser"])
def test_outputs_are_the_likeliest_tokens_of_each_lane(kind: str) -> None:
    found = diagram(Explorer([folder_of(kind)]))
    best = trace(opened(kind), TEXT)["head.logits"][0, :LANES].softmax(-1).topk(6).values
    shown = torch.tensor([[probability for _, probability in row] for row in found["outputs"]])
    torch.testing.assert_close(shown, best)


def test_one_block_of_a_deep_model_is_open() -> None:
    found = diagram(Explorer([folder_of("translator")]), layer="1")
    inside = [name for name in found["boxes"] if ".blocks.0." in name]
    assert inside == [f"{stack}.blocks.0.feed_forward_add_norm" for stack in ("encoder", "decoder")]
    assert "decoder.blocks.1.cross_attention.weights" in found["boxes"]


def test_of_a_long_text_some_lanes_are_drawn() -> None:
    text = "a cat runs " * 20
    found = diagram(Explorer([folder_of("writer")]), text, first="8")
    weights = tensor(found["boxes"]["decoder.blocks.0.attention.weights"])
    assert weights.shape[1:] == (LANES, LANES)
    assert found["first"] == {"target": 8}
    real = trace(opened("writer"), text)["decoder.blocks.0.attention.weights"][0]
    torch.testing.assert_close(weights, real[:, 8 : 8 + LANES, 8 : 8 + LANES], atol=6e-4, rtol=0)


def test_a_language_model_continues_the_text_greedily() -> None:
    explorer = Explorer([folder_of("writer")])
    found = explorer.answer("trace", {"run": "0", "text": TEXT, "write": "5"})
    assert isinstance(found, dict)
    prompt = explorer.answer("trace", {"run": "0", "text": TEXT})
    assert isinstance(prompt, dict)
    steps = greedy_steps(explorer.passes[prompt["id"]], explorer.runs[0])
    pieces = [token["piece"] for token in found["tokens"]["target"]]
    assert pieces[: -found["written"]] == [token["piece"] for token in prompt["tokens"]["target"]]
    assert pieces[-found["written"] :] == [step["words"][0] for step in steps[: found["written"]]]
    with pytest.raises(UserError, match=r"write = '65': expected 0 to 64"):
        explorer.answer("trace", {"run": "0", "text": TEXT, "write": "65"})
