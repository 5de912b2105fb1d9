"""A stack: token embeddings, positions, N blocks. And the rules of who may see whom.

Shapes: B batch, T tokens, D model, K head size, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from clearhead.config import ModelConfig, UserError, require
from clearhead.model.attention import Cache, Tap, causal_mask
from clearhead.model.block import Block, Sight, make_norm


class TokenEmbedding(nn.Embedding):
    """One vector for each token of the vocabulary, times sqrt(d_model) as in the paper, or as it is."""

    def __init__(self, vocab: int, config: ModelConfig, setting: str = "vocab") -> None:
        super().__init__(vocab, config.d_model)
        self.setting = setting  # the one that says how many there are
        self.scale = math.sqrt(config.d_model) if config.scale_embedding else 1.0

    def forward(self, ids: Tensor) -> Tensor:
        """(B, T) -> (B, T, D)."""
        try:
            return F.embedding(ids, self.weight) * self.scale
        except IndexError as error:  # on a GPU the same mistake ends in a device-side assert
            low, high = int(ids.min()), int(ids.max())
            raise UserError(
                f"token id {low if low < 0 else high} is outside the vocabulary of model.{self.setting} = "
                f"{len(self.weight)}; the text was encoded by another tokenizer than the model's"
            ) from error


def angles(positions: Tensor, size: int, base: float, dtype: torch.dtype) -> Tensor:
    """Position / base^(2i/size), for each pair i of channels, in float32 at least: (..., T) -> (..., T, size/2)."""
    dtype = torch.promote_types(dtype, torch.float32)
    pair = torch.arange(0, size, 2, dtype=dtype, device=positions.device)
    return positions[..., None].to(dtype) * base ** (-pair / size)


class SinusoidalPosition(nn.Module):
    """The paper's waves: sines in the even channels, cosines in the odd ones, ever slower from left to right."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.size = config.d_model

    def forward(self, positions: Tensor, dtype: torch.dtype) -> Tensor:
        """(..., T) -> (..., T, D)."""
        angle = angles(positions, self.size, 10_000.0, dtype)
        return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(-2).to(dtype)


class LearnedPosition(nn.Module):
    """A vector of its own for each position, as many as the table has rows."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.table = nn.Embedding(config.max_length, config.d_model)

    def forward(self, positions: Tensor, dtype: torch.dtype) -> Tensor:
        """(..., T) -> (..., T, D)."""
        try:
            return self.table(positions).to(dtype)
        except IndexError as error:  # only packed documents get here: the length of a row is checked before
            raise too_long(int(positions.max()) + 1, len(self.table.weight)) from error


class RotaryPosition(nn.Module):
    """Turns queries and keys instead of adding to the embedding: gives the cosines and sines of the angles."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.size, self.base = config.head_size, config.rotary_base

    def forward(self, positions: Tensor, dtype: torch.dtype) -> Tensor:
        """(B|nothing, T) -> (2, B|1, 1, T, K/2)."""
        angle = angles(positions, self.size, self.base, dtype)
        return torch.stack([angle.cos(), angle.sin()]).view(2, -1, 1, *angle.shape[-2:])


POSITIONS = {"sinusoidal": SinusoidalPosition, "learned": LearnedPosition, "rotary": RotaryPosition}


class Stack(nn.Module):
    """Token embeddings plus positions, then N blocks; with pre-norm, one last norm."""

    def __init__(self, config: ModelConfig, vocab: int, layers: int, cross: bool = False) -> None:
        super().__init__()
        self.max_length = config.position_limit
        encoder = config.family == "encoder-decoder" and not cross
        self.embedding = TokenEmbedding(vocab, config, "source_vocab" if encoder and config.source_vocab else "vocab")
        self.position = None if config.position == "none" else POSITIONS[config.position](config)
        self.segment = nn.Embedding(config.segments, config.d_model) if config.segments else None
        self.sum = Tap()
        self.embedding_norm = make_norm(config) if config.embedding_norm else None
        self.dropout = nn.Dropout(config.dropout)
        self.blocks = nn.ModuleList(Block(config, cross) for _ in range(layers))
        self.norm = make_norm(config) if config.norm_order == "pre" else None

    def forward(
        self,
        ids: Tensor,  # (B, T)
        sight: Sight,
        positions: Tensor | None = None,  # (B, T); None: counted from 0
        segments: Tensor | None = None,  # (B, T); None: all of the first kind
        caches: Sequence[tuple[Cache | None, Cache | None]] = (),
    ) -> Tensor:
        """Ids to what the stack makes of them: (B, T) -> (B, T, D)."""
        if positions is None:
            self.check_length(ids.size(1))
            positions = torch.arange(ids.size(1), device=ids.device)
        x = self.embedding(ids)  # (B, T) -> (B, T, D)
        rotation = None
        if isinstance(self.position, RotaryPosition):
            rotation = self.position(positions, x.dtype)
        elif self.position is not None:
            x = x + self.position(positions, x.dtype)
        require(
            segments is None or self.segment is not None, "segments were given, but model.segments = 0; leave them out"
        )
        if self.segment is not None:
            x = x + self.segment(torch.zeros_like(ids) if segments is None else segments)
        x = self.sum(x)
        if self.embedding_norm is not None:
            x = self.embedding_norm(x)
        x = self.dropout(x)
        for i, block in enumerate(self.blocks):
            x = block(x, sight, rotation, caches[i] if caches else (None, None))
        return x if self.norm is None else self.norm(x)

    def check_length(self, length: int) -> None:
        """Refuse more tokens, padding included, than there are learned positions."""
        if self.max_length is not None and length > self.max_length:  # no message on the way: it would be traced
            raise too_long(length, self.max_length)


def too_long(length: int, limit: int) -> UserError:
    """What to say of more tokens than there are learned positions."""
    return UserError(
        f"a sequence of {length} tokens is longer than model.max_length = {limit} learned positions; "
        "shorten it, or train with a larger max_length or another model.position"
    )


def check_real(real: Tensor) -> Tensor:
    """A mask of real tokens, refused unless it is one: numbers would be added to the scores instead."""
    require(real.dtype == torch.bool, f"a mask is True where a token is real, not {real.dtype}; use mask.bool()")
    return real


def padding_mask(real: Tensor | None) -> Tensor | None:
    """(B, S) -> (B, 1, 1, S): everybody may look at real tokens."""
    return None if real is None else check_real(real)[:, None, None, :]


def document_begins(documents: Tensor) -> Tensor:
    """(B, T): True at the first token of each document, where the number changes."""
    return F.pad(documents[:, 1:] != documents[:, :-1], (1, 0), value=True)


def document_mask(documents: Tensor) -> Tensor:
    """(B, T) -> (B, 1, T, T): a token sees itself and what stands before it in its own document."""
    order = document_begins(documents).cumsum(dim=1)  # first, second, third document of the row
    same = order[:, None, :, None] == order[:, None, None, :]
    return same & causal_mask(documents.size(1), documents.device)


def document_positions(documents: Tensor) -> Tensor:
    """(B, T) -> (B, T): each document counts its tokens from 0."""
    index = torch.arange(documents.size(1), device=documents.device).expand_as(documents)
    return index - torch.where(document_begins(documents), index, 0).cummax(dim=1).values
