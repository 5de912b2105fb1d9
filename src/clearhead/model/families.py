"""The three families: the same stacks, told apart by who may see whom and what is asked of the last layer.

Shapes: B batch, T tokens, S source tokens, D model, V vocabulary, C classes.
Decoding: `start(...)` takes the prompt, `step(ids, state)` one more token; each gives the logits of what comes next.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from clearhead.config import ModelConfig, require
from clearhead.model.attention import Tap
from clearhead.model.block import ACTIVATIONS, Block, Sight, make_norm
from clearhead.model.cache import FixedState, State
from clearhead.model.initialise import initialise
from clearhead.model.stack import Stack, TokenEmbedding, document_mask, document_positions, padding_mask


class Head(nn.Module):
    """From the last vectors to logits: one row of weights for each word, or class; BERT has a dense layer before it."""

    def __init__(self, config: ModelConfig, outputs: int) -> None:
        super().__init__()
        self.dense = nn.Linear(config.d_model, config.d_model, config.bias) if config.head_dense else None
        words = config.head == "vocabulary"
        self.activation = ACTIVATIONS[config.activation] if words else torch.tanh
        self.norm = make_norm(config) if config.head_dense and words else None
        self.project = nn.Linear(config.d_model, outputs, config.head_bias) if outputs else None
        self.activated, self.logits = Tap(), Tap()

    def forward(self, x: Tensor) -> Tensor:
        """(..., D) -> (..., V or C), or (..., D) where the vector itself is what was asked for."""
        if self.dense is not None:
            x = self.activated(self.activation(self.dense(x)))
        if self.norm is not None:
            x = self.norm(x)
        return x if self.project is None else self.logits(self.project(x))

    def tie(self, table: TokenEmbedding) -> None:
        """Score each word by its own embedding: one table for reading and writing."""
        assert self.project is not None
        self.project.weight = table.weight


class Transformer(nn.Module):
    """What the families have in common.

    Ties between tables are lost where parameters are replaced (`to_empty`, `load_state_dict(assign=True)`): `tie()`.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        require(config.vocab > 0, "model.vocab = 0: a model needs to know how many tokens there are; say so")
        require(
            config.head != "classes" or config.classes > 1, "model.classes = 0: model.head = 'classes' needs 2 or more"
        )
        self.config = config

    def blocks(self) -> Iterator[Block]:
        """All blocks, encoder first."""
        return (module for module in self.modules() if isinstance(module, Block))

    def compile_blocks(self) -> None:
        """Compile each block in place, for any shape: faster, and the names of the weights stay what they are."""
        for block in self.blocks():
            block.compile(dynamic=True)  # batches come in dozens of shapes; one compilation serves them all


class Decoding(Transformer):
    """What the families that write have in common: a decoder, and decoding token by token."""

    decoder: Stack
    head: Head

    def begin(self, prompt: Tensor, capacity: int | None) -> State:
        """An empty state: one that grows, or one with room for exactly `capacity` tokens."""
        require(prompt.size(1) > 0, "a prompt needs at least one token, such as the tokenizer's start token")
        layers, rows, device = len(self.decoder.blocks), len(prompt), prompt.device
        return State(layers, rows, device) if capacity is None else FixedState(layers, rows, device, capacity)

    def step(self, ids: Tensor, state: State, real: Tensor | None = None) -> Tensor:
        """Read (B, T) more tokens, usually one; the logits (B, V) of what comes next."""
        self.decoder.check_length(state.length + ids.size(1))
        positions, sight = state.advance(ids, real)
        x = self.decoder(ids, sight, positions, caches=state.caches)
        return self.head(x[:, -1])


class EncoderDecoder(Decoding):
    """The paper: an encoder reads the source, a decoder writes the target while looking at it."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        encoder_layers, source_vocab = config.encoder_layers or config.layers, config.source_vocab or config.vocab
        self.encoder = Stack(config, source_vocab, encoder_layers)
        self.decoder = Stack(config, config.vocab, config.layers, cross=True)
        self.head = Head(config, config.vocab)
        self.tie()

    def tie(self) -> None:
        """Share one table among encoder, decoder and logits, as far as the settings say so."""
        if self.config.tied == "all":
            self.encoder.embedding.weight = self.decoder.embedding.weight
        if self.config.tied != "none":
            self.head.tie(self.decoder.embedding)

    def encode(self, source: Tensor, source_real: Tensor | None = None) -> Tensor:
        """Read the source, each token seeing all others: (B, S) -> (B, S, D)."""
        return self.encoder(source, Sight(padding_mask(source_real)))

    def hidden(self, source: Tensor, target: Tensor, source_real: Tensor | None = None) -> Tensor:
        """The decoder's last vectors, (B, T, D): target is what was written so far, shifted right by a start token."""
        memory = self.encode(source, source_real)
        return self.decoder(target, Sight(causal=True, memory=memory, memory_mask=padding_mask(source_real)))

    def forward(self, source: Tensor, target: Tensor, source_real: Tensor | None = None) -> Tensor:
        """The logits (B, T, V) of what follows each target token; source_real marks what is not (right) padding."""
        return self.head(self.hidden(source, target, source_real))

    def start(
        self,
        source: Tensor,
        prompt: Tensor,  # (B, T) at least the start token; padded on the left
        source_real: Tensor | None = None,
        prompt_real: Tensor | None = None,
        capacity: int | None = None,
    ) -> tuple[Tensor, State]:
        """Read source and prompt: the logits (B, V) of the first token to write, and the state to go on with."""
        state = self.begin(prompt, capacity)
        state.look_at(self.encode(source, source_real), padding_mask(source_real))
        return self.step(prompt, state, prompt_real), state


class DecoderOnly(Decoding):
    """GPT: one stack that reads from left to right and says what comes next."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.decoder = Stack(config, config.vocab, config.layers)
        self.head = Head(config, config.vocab)
        self.tie()

    def tie(self) -> None:
        """Share one table between reading and writing, if the settings say so."""
        if self.config.tied != "none":
            self.head.tie(self.decoder.embedding)

    def hidden(self, ids: Tensor, documents: Tensor | None = None) -> Tensor:
        """The last vectors, (B, T, D); with documents (B, T), a token sees its own document only."""
        if documents is None:
            return self.decoder(ids, Sight(causal=True))
        return self.decoder(ids, Sight(document_mask(documents)), document_positions(documents))

    def forward(self, ids: Tensor, documents: Tensor | None = None) -> Tensor:
        """The logits (B, T, V) of what follows each token."""
        return self.head(self.hidden(ids, documents))

    def start(
        self, prompt: Tensor, prompt_real: Tensor | None = None, capacity: int | None = None
    ) -> tuple[Tensor, State]:
        """Read (B, T) prompts, padded on the left: the logits (B, V) of what follows, and the state to go on with."""
        state = self.begin(prompt, capacity)
        return self.step(prompt, state, prompt_real), state


class EncoderOnly(Transformer):
    """BERT: one stack where every token sees all others. Words for masked ones, a class, or a sentence's vector."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.encoder = Stack(config, config.vocab, config.layers)
        self.head = Head(config, {"vocabulary": config.vocab, "classes": config.classes, "embedding": 0}[config.head])
        self.pooled = Tap()
        self.tie()

    def tie(self) -> None:
        """Share one table between reading and guessing, if the settings say so."""
        if self.config.head == "vocabulary" and self.config.tied != "none":
            self.head.tie(self.encoder.embedding)

    def hidden(self, ids: Tensor, real: Tensor | None = None, segments: Tensor | None = None) -> Tensor:
        """The last vectors: of each token (B, T, D), or of each sentence (B, D) where the head speaks of sentences."""
        x = self.encoder(ids, Sight(padding_mask(real)), segments=segments)
        return x if self.config.head == "vocabulary" else self.pooled(self.pool(x, real))

    def pool(self, x: Tensor, real: Tensor | None) -> Tensor:
        """One vector for each sentence: its first token's, or the mean over its real tokens. (B, T, D) -> (B, D)."""
        if self.config.pool == "first":
            return x[:, 0]
        if real is None:
            return x.mean(1)
        return (x * real[..., None]).sum(1) / real.sum(1, keepdim=True).clamp(min=1)

    def forward(self, ids: Tensor, real: Tensor | None = None, segments: Tensor | None = None) -> Tensor:
        """Logits (B, T, V) of words or (B, C) of classes, or sentence vectors (B, D)."""
        return self.head(self.hidden(ids, real, segments))


FAMILIES: dict[str, type[EncoderDecoder] | type[DecoderOnly] | type[EncoderOnly]] = {
    "encoder-decoder": EncoderDecoder,
    "decoder-only": DecoderOnly,
    "encoder-only": EncoderOnly,
}


def build_model(config: ModelConfig) -> EncoderDecoder | DecoderOnly | EncoderOnly:
    """A freshly initialised model of the family that the settings name."""
    model = FAMILIES[config.family](config)
    initialise(model)
    return model
