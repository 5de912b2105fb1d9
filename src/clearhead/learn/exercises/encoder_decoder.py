"""The last exercise, `encoder-decoder`: the whole model of the paper."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from clearhead.config import ModelConfig
from clearhead.learn.exercise import Case, Exercise, Mistake, Patch, Piece, apply_module, filled
from clearhead.learn.solutions import encoder_decoder as solution
from clearhead.model import EncoderDecoder

SIZES = (11, 8, 16, 2, 2)  # vocabulary, d_model, d_ff, heads, layers
ARGUMENTS = {"Attention": (8, 2), "FeedForward": (8, 16), "EncoderBlock": (8, 16, 2), "DecoderBlock": (8, 16, 2)}


def project_name(name: str) -> str:
    """The name that a parameter of the exercise has in the project's own model."""
    if name == "embedding.weight":
        return "decoder.embedding.weight"
    stack, _, rest = name.partition(".")
    return f"{stack}.blocks.{rest}".replace("_norm.", "_add_norm.norm.")


class Reference(solution.EncoderDecoder):
    """The project's own model with the paper's settings; its parts are those of the solution."""

    def forward(self, source: Tensor, target: Tensor, source_real: Tensor) -> Tensor:
        """(B, S), (B, T) -> (B, T, V)."""
        vocab, d_model, d_ff, heads, layers = SIZES
        config = ModelConfig(vocab=vocab, d_model=d_model, d_ff=d_ff, heads=heads, layers=layers, dropout=0.0)
        model = EncoderDecoder(config)
        model.load_state_dict({project_name(name): value for name, value in self.state_dict().items()}, strict=False)
        return model(source, target, source_real)


def part(kind: str, about: str, *inputs: Tensor) -> Case:
    """A case for one of the parts, so that a mistake is found where it is."""
    return Case(about, lambda piece, *given: apply_module(getattr(piece, kind)(*ARGUMENTS[kind]), *given), inputs)


def embed(piece: Piece, ids: Tensor) -> Any:
    """The embeddings of ids."""
    model: Any = filled(piece.EncoderDecoder(*SIZES))
    return model.embed(ids)


def whole(piece: Piece, *inputs: Tensor) -> dict[str, Any]:
    """The logits of a tiny model."""
    return apply_module(piece.EncoderDecoder(*SIZES), *inputs)


def cases() -> list[Case]:
    """The parts from the inside to the outside, then the whole."""
    x = torch.randn(2, 4, 8)
    memory = torch.randn(2, 6, 8)
    real = torch.tensor([[True] * 6, [True] * 4 + [False] * 2])
    mask = real[:, None, None, :]
    causal = torch.ones(4, 4, dtype=torch.bool).tril()
    source = torch.randint(0, 11, (2, 6))
    target = torch.randint(0, 11, (2, 4))
    return [
        part("Attention", "attention to another sentence of the same length", x, memory[:, :4], mask[..., :4]),
        part("Attention", "attention to a source with padding", x, memory, mask),
        part("Attention", "causal attention", x, x, causal),
        part("FeedForward", "the feed-forward layer", x),
        part("EncoderBlock", "an encoder block", memory, mask),
        part("DecoderBlock", "a decoder block", x, causal, memory, mask),
        Case("embeddings and positions", embed, (target,)),
        Case("the whole model, without padding", whole, (source, target, torch.ones_like(real))),
        Case("the whole model, with padding in the source", whole, (source, target, real)),
    ]


LOOP = """        x = self.embed(source)
        for block in self.encoder:
            x = block(x, source_mask)
        return x
"""
MISTAKES = (
    Mistake(
        "The division by sqrt(d_k) is missing",
        "Divide the scores by the square root of the size of a head, before the softmax.",
        " / math.sqrt(queries.size(-1))",
        "",
    ),
    Mistake(
        "The mask is inverted",
        "True means: may attend. Fill the scores where the mask is False: ~mask.",
        "masked_fill(~mask",
        "masked_fill(mask",
    ),
    Mistake(
        "Keys and values come from x",
        "x asks, context answers: only the queries come from x.",
        "self.key(context), self.value(context)",
        "self.key(x), self.value(x)",
    ),
    Mistake(
        "The last matrix of attention is missing",
        "self.out combines what the heads have found.",
        "self.out((weights @ values).transpose(1, 2).flatten(2))",
        "(weights @ values).transpose(1, 2).flatten(2)",
    ),
    Mistake(
        "The nonlinearity is missing",
        "A ReLU stands between the two matrices of the feed-forward layer.",
        "self.up(x).relu()",
        "self.up(x)",
    ),
    Mistake(
        "The norm comes first (pre-norm)",
        "The paper normalises the sum: norm(x + f(x)).",
        "        x = self.attention_norm(x + self.attention(x, x, source_mask))\n"
        "        return self.feed_forward_norm(x + self.feed_forward(x))\n",
        "        h = self.attention_norm(x)\n        x = x + self.attention(h, h, source_mask)\n"
        "        return x + self.feed_forward(self.feed_forward_norm(x))\n",
    ),
    Mistake(
        "The encoder block ignores the mask",
        "Pass source_mask on to self-attention: no token may attend to padding.",
        "self.attention(x, x, source_mask)",
        "self.attention(x, x, torch.ones_like(source_mask))",
    ),
    Mistake(
        "The decoder block has no cross-attention",
        "Between self-attention and feed-forward, the target tokens read the memory.",
        "        x = self.cross_attention_norm(x + self.cross_attention(x, memory, source_mask))\n",
        "",
    ),
    Mistake(
        "Cross-attention comes before self-attention",
        "First the target tokens read each other, then the memory.",
        "        x = self.attention_norm(x + self.attention(x, x, causal))\n"
        "        x = self.cross_attention_norm(x + self.cross_attention(x, memory, source_mask))\n",
        "        x = self.cross_attention_norm(x + self.cross_attention(x, memory, source_mask))\n"
        "        x = self.attention_norm(x + self.attention(x, x, causal))\n",
    ),
    Mistake(
        "x and memory are exchanged in cross-attention",
        "x asks, the memory answers: self.cross_attention(x, memory, source_mask).",
        "self.cross_attention(x, memory, source_mask)",
        "self.cross_attention(memory, x, source_mask)",
    ),
    Mistake(
        "The decoder's self-attention is not causal",
        "Give it the causal mask: a target token must not see later ones.",
        "self.attention(x, x, causal)",
        "self.attention(x, x, torch.ones_like(causal))",
    ),
    Mistake(
        "Embeddings are not multiplied by sqrt(D)",
        "The paper scales them, so that they are as large as the positions that are added.",
        "self.embedding(ids) * math.sqrt(size)",
        "self.embedding(ids)",
    ),
    Mistake(
        "Positions are counted from 1",
        "The first token has position 0, where all sines are 0.",
        "torch.arange(ids.size(1))[:, None]",
        "torch.arange(1, ids.size(1) + 1)[:, None]",
    ),
    Mistake(
        "Positions are missing",
        "Without positions the encoder does not know the order of the tokens: add the sinusoids.",
        " * math.sqrt(size) + positions",
        " * math.sqrt(size)",
    ),
    Mistake(
        "The mask of the decoder hides nothing",
        "Row t is True in columns 0 to t only: tril().",
        "dtype=torch.bool).tril()",
        "dtype=torch.bool)",
    ),
    Mistake(
        "The mask of the decoder lets every token see the next one",
        "Row t ends with column t: tril(), without an offset.",
        "dtype=torch.bool).tril()",
        "dtype=torch.bool).tril(1)",
    ),
    Mistake(
        "The memory is the embedded source: the encoder blocks are skipped",
        "Pass x through every block of self.encoder.",
        LOOP,
        "        return self.embed(source)\n",
    ),
    Mistake(
        "Only one block is used",
        "The output of a block is the input of the next one: x = block(x, ...).",
        LOOP,
        LOOP.replace("block(x", "block(self.embed(source)"),
    ),
    Mistake(
        "Padding of the source is not ignored",
        "source_real is False at padding; as (B, 1, 1, S) it is the mask of the encoder and of cross-attention.",
        "source_mask = source_real[:, None, None, :]",
        "source_mask = torch.ones_like(source_real)[:, None, None, :]",
    ),
)


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


EXERCISE = Exercise(
    name="encoder-decoder",
    reference=SimpleNamespace(
        Attention=solution.Attention,
        FeedForward=solution.FeedForward,
        EncoderBlock=solution.EncoderBlock,
        DecoderBlock=solution.DecoderBlock,
        EncoderDecoder=Reference,
    ),
    cases=cases,
    mistakes=MISTAKES,
    hints=(
        "Go from top to bottom: each class needs only what stands above it, and the check goes in the same order.",
        "Encoder block: norm(x + attention), norm(x + feed-forward). The decoder's has cross-attention in between.",
        "The logits are hidden @ self.embedding.weight.T: the embedding matrix read the other way.",
    ),
    swap=swap,
    settings="model.norm_order=post model.position=sinusoidal model.activation=relu train.optimiser=adamw "
    "train.learning_rate=3e-3",
)
