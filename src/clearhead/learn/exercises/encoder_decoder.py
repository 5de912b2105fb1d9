"""The last exercise, `encoder-decoder`: the whole model of the paper."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from clearhead.config import ModelConfig
from clearhead.learn.exercise import ExerciseCase, Patch, Piece, apply, filled
from clearhead.learn.solutions import encoder_decoder as solution
from clearhead.model import EncoderDecoder

SIZES = (11, 8, 16, 2, 2)  # vocabulary, d_model, d_ff, heads, layers


def project_name(name: str) -> str:
    """The name that a parameter of the exercise has in the project's own model."""
    if name == "embedding.weight":
        return "decoder.embedding.weight"
    stack, _, rest = name.partition(".")
    return f"{stack}.blocks.{rest}".replace("_norm.", "_add_norm.norm.")


class ReferenceEncoderDecoder(solution.EncoderDecoder):
    """The project's own model with the paper's settings; its parts are those of the solution."""

    def forward(self, source: Tensor, target: Tensor, source_real: Tensor) -> Tensor:
        """(B, S), (B, T) -> (B, T, V)."""
        vocab, d_model, d_ff, heads, layers = SIZES
        config = ModelConfig(vocab=vocab, d_model=d_model, d_ff=d_ff, heads=heads, layers=layers, dropout=0.0)
        model = EncoderDecoder(config)
        model.load_state_dict({project_name(name): value for name, value in self.state_dict().items()}, strict=False)
        return model(source, target, source_real)


REFERENCE = SimpleNamespace(
    Attention=solution.Attention,
    FeedForward=solution.FeedForward,
    EncoderBlock=solution.EncoderBlock,
    DecoderBlock=solution.DecoderBlock,
    EncoderDecoder=ReferenceEncoderDecoder,
)


def embed(piece: Piece, ids: Tensor) -> Any:
    """The embeddings of ids."""
    model: Any = filled(piece.EncoderDecoder(*SIZES))
    return model.embed(ids)


def cases() -> list[ExerciseCase]:
    """The parts from the inside to the outside, so that a mistake is found where it is; then the whole."""
    x = torch.randn(2, 4, 8)
    memory = torch.randn(2, 6, 8)
    real = torch.tensor([[True] * 6, [True] * 4 + [False] * 2])
    mask = real[:, None, None, :]
    causal = torch.ones(4, 4, dtype=torch.bool).tril()
    source = torch.randint(0, 11, (2, 6))
    target = torch.randint(0, 11, (2, 4))
    return [
        apply("Attention", (8, 2), "attention to another sentence of the same length", x, memory[:, :4], mask[..., :4]),
        apply("Attention", (8, 2), "attention to a source with padding", x, memory, mask),
        apply("Attention", (8, 2), "causal attention", x, x, causal),
        apply("FeedForward", (8, 16), "the feed-forward layer", x),
        apply("EncoderBlock", (8, 16, 2), "an encoder block", memory, mask),
        apply("DecoderBlock", (8, 16, 2), "a decoder block", x, causal, memory, mask),
        ExerciseCase("embeddings and positions", embed, (target,)),
        apply("EncoderDecoder", SIZES, "the whole model, without padding", source, target, torch.ones_like(real)),
        apply("EncoderDecoder", SIZES, "the whole model, with padding in the source", source, target, real),
    ]


def swap(piece: Piece) -> list[Patch]:
    """The whole model of the demo: the student's modules with the project's parameters."""
    built: WeakKeyDictionary[nn.Module, Any] = WeakKeyDictionary()

    def own_model(model: EncoderDecoder) -> Any:
        if model not in built:
            config = model.config
            own = piece.EncoderDecoder(config.vocab, config.d_model, config.d_ff, config.heads, config.layers)
            for name, _ in list(own.named_parameters()):
                parent, _, attribute = name.rpartition(".")
                setattr(own.get_submodule(parent), attribute, model.get_parameter(project_name(name)))
            built[model] = own
        return built[model]

    def hidden(self: EncoderDecoder, source: Tensor, target: Tensor, source_real: Tensor) -> Tensor:
        own = own_model(self)
        source_mask = source_real[:, None, None, :]
        last: Tensor = own.decode(target, own.encode(source, source_mask), source_mask)
        return last

    return [Patch(EncoderDecoder, "hidden", hidden)]
