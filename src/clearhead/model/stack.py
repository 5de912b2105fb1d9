"""The stack: token embeddings, positions and N blocks. And the masks that say which tokens see which.

Shapes: B batch, T tokens, S keys, D model, K head size, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from clearhead.config import ModelConfig
from clearhead.model.attention import KVCache, causal_mask
from clearhead.model.block import Block, Visibility
from clearhead.model.checks import check_ids, check_length, check_positions, check_real, check_segments
from clearhead.model.norm import Tap, make_norm


class TokenEmbedding(nn.Embedding):
    """One vector for each token of the vocabulary, multiplied by sqrt(d_model) as in the paper, or not."""

    def __init__(self, vocab: int, config: ModelConfig) -> None:
        super().__init__(vocab, config.d_model)
        self.scale = math.sqrt(config.d_model) if config.scale_embedding else 1.0

    def forward(self, ids: Tensor) -> Tensor:
        """(B, T) -> (B, T, D)."""
        return F.embedding(ids, self.weight) * self.scale


def angles(positions: Tensor, size: int, base: float, dtype: torch.dtype) -> Tensor:
    """Position / base^(2i/size) for each pair i of channels, in float32 or float64: (..., T) -> (..., T, size/2)."""
    dtype = torch.promote_types(dtype, torch.float32)
    pair = torch.arange(0, size, 2, dtype=dtype, device=positions.device)
    return positions[..., None].to(dtype) * base ** (-pair / size)


class SinusoidalPosition(nn.Module):
    """The paper's sinusoids: sines in the even channels, cosines in the odd ones, with wavelengths that grow."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.size = config.d_model

    def forward(self, positions: Tensor, dtype: torch.dtype) -> Tensor:
        """(..., T) -> (..., T, D)."""
        angle = angles(positions, self.size, 10_000.0, dtype)
        return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(-2).to(dtype)


class LearnedPosition(nn.Module):
    """A learned vector for each position, up to model.max_length."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.table = nn.Embedding(config.max_length, config.d_model)

    def forward(self, positions: Tensor, dtype: torch.dtype) -> Tensor:
        """(..., T) -> (..., T, D)."""
        return self.table(positions).to(dtype)


class RotaryPosition(nn.Module):
    """The cosines and sines by which attention rotates queries and keys; nothing is added to the embedding."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.size = config.head_size
        self.base = config.rotary_base
        self.factor = config.rotary_factor
        self.length = config.rotary_length

    def forward(self, positions: Tensor, dtype: torch.dtype) -> Tensor:
        """(T) or (B, T) -> (2, 1|B, 1, T, K/2)."""
        angle = angles(positions, self.size, self.base, dtype)
        angle = angle if self.factor == 1 else angle * self.slowed(positions.device, dtype)
        return torch.stack([angle.cos(), angle.sin()]).view(2, -1, 1, *angle.shape[-2:])

    def slowed(self, device: torch.device, dtype: torch.dtype) -> Tensor:
        """(1, K/2): 1 / factor for pairs with at most one turn in `length` tokens, 1 for those with four or more."""
        turns = angles(torch.full((1,), self.length, device=device), self.size, self.base, dtype) / (2 * math.pi)
        kept = ((turns - 1) / 3).clamp(0, 1)
        return kept + (1 - kept) / self.factor


POSITIONS = {"sinusoidal": SinusoidalPosition, "learned": LearnedPosition, "rotary": RotaryPosition}


class Stack(nn.Module):
    """Token embeddings plus positions, then N blocks; with pre-norm, one final norm."""

    def __init__(self, config: ModelConfig, vocab: int, layers: int, cross: bool = False) -> None:
        super().__init__()
        encoder = config.family == "encoder-decoder" and not cross
        self.vocab_setting = "model.source_vocab" if encoder and config.source_vocab else "model.vocab"
        self.position_limit = config.position_limit
        self.embedding = TokenEmbedding(vocab, config)
        self.token_dropout = config.token_dropout
        self.position = None if config.position == "none" else POSITIONS[config.position](config)
        self.segment = nn.Embedding(config.segments, config.d_model) if config.segments else None
        self.sum = Tap()
        self.embedding_norm = make_norm(config, config.d_model) if config.embedding_norm else None
        self.dropout = nn.Dropout(config.dropout)
        self.blocks = nn.ModuleList(Block(config, cross) for _ in range(layers))
        self.norm = make_norm(config, config.d_model) if config.norm_order == "pre" else None

    def forward(
        self,
        ids: Tensor,  # (B, T)
        visibility: Visibility,
        positions: Tensor | None = None,  # (B, T); None: 0, 1, 2, ...
        segments: Tensor | None = None,  # (B, T); None: all 0
        caches: Sequence[tuple[KVCache | None, KVCache | None]] = (),  # self- and cross-attention's
    ) -> Tensor:
        """Token ids to hidden states: (B, T) -> (B, T, D)."""
        self.check(ids, positions, segments)
        if positions is None:
            positions = torch.arange(ids.size(1), device=ids.device)
        x = self.embedding(ids)  # (B, T) -> (B, T, D)
        x = F.dropout1d(x, self.token_dropout, self.training)  # whole tokens
        rotation = None
        if isinstance(self.position, RotaryPosition):
            rotation = self.position(positions, x.dtype)
        elif self.position is not None:
            x = x + self.position(positions, x.dtype)
        if self.segment is not None:
            x = x + self.segment(torch.zeros_like(ids) if segments is None else segments)
        x = self.sum(x)
        if self.embedding_norm is not None:
            x = self.embedding_norm(x)
        x = self.dropout(x)
        for i, block in enumerate(self.blocks):
            x = block(x, visibility, rotation, caches[i] if caches else (None, None))
        return x if self.norm is None else self.norm(x)

    def check(self, ids: Tensor, positions: Tensor | None, segments: Tensor | None) -> None:
        """Refuse inputs that the tables of embeddings have no row for."""
        check_ids(ids, self.embedding.num_embeddings, self.vocab_setting)
        check_segments(segments, 0 if self.segment is None else self.segment.num_embeddings)
        if positions is None:
            check_length(ids.size(1), self.position_limit)
        else:
            check_positions(positions, self.position_limit)


def padding_mask(real: Tensor | None) -> Tensor | None:
    """(B, S) -> (B, 1, 1, S): every query may attend to the real tokens."""
    check_real(real)
    return None if real is None else real[:, None, None, :]


def document_starts(documents: Tensor) -> Tensor:
    """(B, T): True at the first token of each document, where the document's number changes."""
    return F.pad(documents[:, 1:] != documents[:, :-1], (1, 0), value=True)


def document_mask(documents: Tensor, window: int = 0) -> Tensor:
    """(B, T) -> (B, 1, T, T): a token may attend to itself and to earlier tokens of its own document, in its window."""
    order = document_starts(documents).cumsum(dim=1)  # first, second, third document of the row
    same = order[:, None, :, None] == order[:, None, None, :]
    return same & causal_mask(documents.size(1), documents.device, window)


def document_positions(documents: Tensor) -> Tensor:
    """(B, T) -> (B, T): positions that start at 0 in each document."""
    index = torch.arange(documents.size(1), device=documents.device).expand_as(documents)
    return index - torch.where(document_starts(documents), index, 0).cummax(dim=1).values
