"""The key/value cache.

While text is generated, the keys and values of earlier tokens never change: no token sees a later
one. So each attention layer keeps them, and a step computes only those of the new token. Its
position is not 0: it is how many came before.
"""

import torch
from torch import Tensor


class KVCache:
    """The keys and values of one attention layer, for all tokens so far."""

    def __init__(self) -> None:
        self.keys: Tensor | None = None  # (B, H, S, K), None as long as there are none
        self.values: Tensor | None = None

    def positions(self, count: int) -> Tensor:
        """Return the positions (T,) of the next `count` tokens, before they are appended; the first token has 0."""
        length = 0 if self.keys is None else self.keys.size(2)
        return torch.arange(length, length + count)

    def append(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Append the keys and values (B, H, T, K) of new tokens; return all of them (B, H, S, K), oldest first."""
        if self.keys is not None and self.values is not None:
            keys = torch.cat([self.keys, keys], dim=2)
            values = torch.cat([self.values, values], dim=2)
        self.keys = keys
        self.values = values
        return keys, values

    def select(self, rows: Tensor) -> None:
        """Keep these rows (N,) of the batch, in this order: in a beam, hypotheses are dropped and copied."""
        if self.keys is not None and self.values is not None:
            self.keys = self.keys[rows]
            self.values = self.values[rows]
