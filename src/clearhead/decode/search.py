"""Search: which tokens to write. It sees `start` and `step` and nothing else: no encoder, no tokenizer.

Shapes: B rows, T tokens written, V vocabulary.
"""

from __future__ import annotations

import torch
from torch import Tensor

from clearhead.model import DecoderOnly, EncoderDecoder, State


@torch.inference_mode()
def greedy(
    model: EncoderDecoder | DecoderOnly, begun: tuple[Tensor, State], end: int, pad: int, longest: int
) -> Tensor:
    """The likeliest token at each step, until every row has ended: (B, T), `pad` after the end.

    `begun` is what the model's `start` gave for the prompts.
    """
    logits, state = begun
    done = torch.zeros(len(logits), dtype=torch.bool, device=logits.device)
    written: list[Tensor] = []
    for _ in range(longest):
        ids = logits.argmax(-1).masked_fill(done, pad)
        written.append(ids)
        done = done | (ids == end)
        if done.all():
            break
        logits = model.step(ids[:, None], state)
    return torch.stack(written, dim=1)
