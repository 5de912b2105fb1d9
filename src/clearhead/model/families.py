"""The three families: the same stacks, which differ in what tokens may see and in the head on the last layer.

Shapes: B batch, T tokens, S source tokens, D model, V vocabulary, C classes.
To decode, `start(...)` reads the prompt (prefill) and `step(ids, state)` one more token; both return next-token logits.
"""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor, nn

from clearhead.config import ModelConfig
from clearhead.model.block import ACTIVATIONS, Block, Visibility
from clearhead.model.cache import State
from clearhead.model.checks import check_config, check_length, check_prompt
from clearhead.model.initialise import initialise
from clearhead.model.norm import Tap, make_norm
from clearhead.model.stack import Stack, TokenEmbedding, document_mask, document_positions, padding_mask


class Head(nn.Module):
    """From hidden states to logits: one row of weights for each token or class; BERT has a dense layer before it."""

    def __init__(self, config: ModelConfig, outputs: int) -> None:
        super().__init__()
        vocabulary = config.head == "vocabulary"
        self.dense = nn.Linear(config.d_model, config.d_model, config.bias) if config.head_dense else None
        self.activation = ACTIVATIONS[config.activation if vocabulary else config.head_activation]
        self.norm = make_norm(config, config.d_model) if config.head_dense and vocabulary else None
        self.project = nn.Linear(config.d_model, outputs, config.head_bias) if outputs else None
        self.activated = Tap()
        self.logits = Tap()

    def forward(self, x: Tensor) -> Tensor:
        """(..., D) -> (..., V or C), or (..., D) if the model's output is the vector itself."""
        x = self.features(x)
        return x if self.project is None else self.logits(self.project(x))

    def features(self, x: Tensor) -> Tensor:
        """Return what the logits are a linear function of: (..., D) -> (..., D)."""
        if self.dense is not None:
            x = self.activated(self.activation(self.dense(x)))
        return x if self.norm is None else self.norm(x)

    def tie(self, table: TokenEmbedding) -> None:
        """Use the token embeddings as the weights of the logits."""
        assert self.project is not None
        self.project.weight = table.weight


class Transformer(nn.Module):
    """What all families have in common.

    Replacing parameters (`to_empty`, `load_state_dict(assign=True)`) unties shared tables: call `tie()` after it.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        check_config(config)
        self.config = config

    def blocks(self) -> Iterator[Block]:
        """All blocks, the encoder's first."""
        return (module for module in self.modules() if isinstance(module, Block))

    def compile_blocks(self) -> None:
        """Compile each block in place, for any shape; parameter names stay the same."""
        for block in self.blocks():
            block.compile(dynamic=True)  # batches come in dozens of shapes; one compilation serves them all


class Autoregressive(Transformer):
    """What the families with a decoder have in common: decoding token by token."""

    decoder: Stack
    head: Head

    def new_state(self, prompt: Tensor) -> State:
        """Return an empty state for (B, T) prompts."""
        return State(len(self.decoder.blocks), prompt.size(0), prompt.device, self.config.window)

    def step(self, ids: Tensor, state: State, real: Tensor | None = None) -> Tensor:
        """Read (B, T) more tokens, usually one: return the logits (B, V) of the next."""
        check_length(state.length + ids.size(1), self.decoder.position_limit)
        positions, visibility = state.advance(ids, real)
        x = self.decoder(ids, visibility, positions, caches=state.caches)
        return self.head(x[:, -1])


class EncoderDecoder(Autoregressive):
    """The paper: an encoder reads the source, a decoder writes the target and attends to the encoder's output."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.encoder = Stack(config, config.source_vocab or config.vocab, config.encoder_layers or config.layers)
        self.decoder = Stack(config, config.vocab, config.layers, cross=True)
        self.head = Head(config, config.vocab)
        self.tie()

    def tie(self) -> None:
        """Share one table among encoder, decoder and logits, as far as model.tied says."""
        if self.config.tied == "all":
            self.encoder.embedding.weight = self.decoder.embedding.weight
        if self.config.tied != "none":
            self.head.tie(self.decoder.embedding)

    def encode(self, source: Tensor, source_real: Tensor | None = None) -> Tensor:
        """Encode the source, where every token sees all others: (B, S) -> (B, S, D)."""
        return self.encoder(source, Visibility(padding_mask(source_real)))

    def hidden(self, source: Tensor, target: Tensor, source_real: Tensor | None = None) -> Tensor:
        """The decoder's last hidden states, (B, T, D); the target is shifted right by a start token."""
        memory = self.encode(source, source_real)
        visibility = Visibility(causal=True, memory=memory, memory_mask=padding_mask(source_real))
        return self.decoder(target, visibility)

    def forward(self, source: Tensor, target: Tensor, source_real: Tensor | None = None) -> Tensor:
        """The logits (B, T, V) of what follows each target token; source_real is False at padding (on the right)."""
        return self.head(self.hidden(source, target, source_real))

    def start(
        self,
        source: Tensor,
        prompt: Tensor,  # (B, T) at least the start token; padding on the left
        source_real: Tensor | None = None,
        prompt_real: Tensor | None = None,  # None: no padding
        state: State | None = None,  # an empty one, such as a FixedState; None: a new one that grows
    ) -> tuple[Tensor, State]:
        """Read source and prompt: return the logits (B, V) of the first new token, and the state for `step`."""
        check_prompt(prompt)
        state = state or self.new_state(prompt)
        state.set_memory(self.encode(source, source_real), padding_mask(source_real))
        return self.step(prompt, state, prompt_real), state


class DecoderOnly(Autoregressive):
    """GPT: one stack that predicts the next token from all tokens before it."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.decoder = Stack(config, config.vocab, config.layers)
        self.head = Head(config, config.vocab)
        self.tie()

    def tie(self) -> None:
        """Share one table between embeddings and logits, if model.tied says so."""
        if self.config.tied != "none":
            self.head.tie(self.decoder.embedding)

    def hidden(self, ids: Tensor, documents: Tensor | None = None) -> Tensor:
        """The last hidden states, (B, T, D); with document numbers (B, T), a token sees its own document only."""
        window = self.config.window
        if documents is None and not window:
            return self.decoder(ids, Visibility(causal=True))
        documents = ids.new_zeros(ids.shape) if documents is None else documents
        return self.decoder(ids, Visibility(document_mask(documents, window)), document_positions(documents))

    def forward(self, ids: Tensor, documents: Tensor | None = None) -> Tensor:
        """The logits (B, T, V) of what follows each token."""
        return self.head(self.hidden(ids, documents))

    def start(
        self, prompt: Tensor, prompt_real: Tensor | None = None, state: State | None = None
    ) -> tuple[Tensor, State]:
        """Read (B, T) prompts, padded on the left: return the logits (B, V) of what follows, and the state."""
        check_prompt(prompt)
        state = state or self.new_state(prompt)
        return self.step(prompt, state, prompt_real), state


class EncoderOnly(Transformer):
    """BERT: one stack where every token sees all others; it predicts masked tokens, a class, or a sentence vector."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.encoder = Stack(config, config.vocab, config.layers)
        self.head = Head(config, {"vocabulary": config.vocab, "classes": config.classes, "embedding": 0}[config.head])
        self.pooled = Tap()
        self.tie()

    def tie(self) -> None:
        """Share one table between embeddings and logits, if model.tied says so."""
        if self.config.head == "vocabulary" and self.config.tied != "none":
            self.head.tie(self.encoder.embedding)

    def hidden(self, ids: Tensor, real: Tensor | None = None, segments: Tensor | None = None) -> Tensor:
        """The last hidden states of all tokens (B, T, D), or pooled (B, D) if the head is for whole sentences."""
        x = self.encoder(ids, Visibility(padding_mask(real)), segments=segments)
        return x if self.config.head == "vocabulary" else self.pooled(self.pool(x, real))

    def pool(self, x: Tensor, real: Tensor | None) -> Tensor:
        """One vector a sentence: that of its first token, or the mean over its real tokens. (B, T, D) -> (B, D)."""
        if self.config.pool == "first":
            return x[:, 0]
        if real is None:
            return x.mean(1)
        return (x * real[..., None]).sum(1) / real.sum(1, keepdim=True).clamp(min=1)

    def forward(self, ids: Tensor, real: Tensor | None = None, segments: Tensor | None = None) -> Tensor:
        """Logits (B, T, V) of tokens or (B, C) of classes, or sentence vectors (B, D)."""
        return self.head(self.hidden(ids, real, segments))


Model = EncoderDecoder | DecoderOnly | EncoderOnly

FAMILIES: dict[str, type[Model]] = {
    "encoder-decoder": EncoderDecoder,
    "decoder-only": DecoderOnly,
    "encoder-only": EncoderOnly,
}


def build_model(config: ModelConfig) -> Model:
    """Build and initialise a model of the family that the settings name."""
    model = FAMILIES[config.family](config)
    initialise(model)
    return model
