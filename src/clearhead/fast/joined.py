"""Linear layers that read the same input, joined into one: one large product takes less time than three small ones.

Query, key and value of self-attention, key and value of cross-attention, gate and up of SwiGLU.

Shapes: D inputs, F outputs of all joined layers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import torch
from torch import Tensor, nn

from clearhead.fast.torch_private import copy_all
from clearhead.model.block import Block

Copy = tuple[Tensor, Tensor]  # a tensor, and the parameter that it is a copy of


class JoinedLinear:
    """Copies of the parameters of linear layers as one weight (F, D) and one bias (F), in a dtype of their own."""

    @torch.inference_mode(False)  # copies can then be refreshed in any mode
    def __init__(self, linears: Sequence[nn.Linear], dtype: torch.dtype | None = None) -> None:
        self.linears = linears
        self.sizes = [linear.out_features for linear in linears]
        biases = [linear.bias.detach() for linear in linears if linear.bias is not None]
        self.weight = torch.cat([linear.weight.detach() for linear in linears]).to(dtype)
        self.bias = torch.cat(biases).to(dtype) if biases else None

    def copies(self) -> Iterator[Copy]:
        """Yield each part of the weight and of the bias with the parameter that it is a copy of."""
        yield from zip(torch.split(self.weight, self.sizes), (each.weight for each in self.linears), strict=True)
        if self.bias is not None:
            yield from zip(torch.split(self.bias, self.sizes), (each.bias for each in self.linears), strict=True)


@torch.no_grad()
def refresh(copies: Sequence[Copy]) -> None:
    """Copy all parameters again: they may have changed."""
    if copies:
        copy_all([mine for mine, _ in copies], [theirs for _, theirs in copies])


class SharedOutputs:
    """The outputs of joined layers: all are computed when the first is asked for. Threads may ask at the same time."""

    def __init__(self, product: Callable[[Tensor], Tensor], sizes: list[int]) -> None:
        self.product = product  # (..., D) -> (..., F)
        self.sizes = sizes
        self.computed: tuple[Tensor, Sequence[Tensor]] | None = None  # an input, and the output of each layer

    def of(self, x: Tensor, layer: int) -> Tensor:
        """Return the output of one of the layers for x; the last one is asked for last."""
        if len(self.sizes) == 1:
            return self.product(x)
        computed = self.computed
        if computed is None or computed[0] is not x:
            computed = x, torch.split(self.product(x), self.sizes, dim=-1)
        self.computed = computed if layer + 1 < len(self.sizes) else None
        return computed[1][layer]


Place = tuple[nn.Module, str]  # of a layer: its parent module, and its name there


def layers_by_input(model: nn.Module) -> list[list[Place]]:
    """Return all linear layers of a model; those that read the same input are together."""
    joint: list[list[Place]] = []
    for block in model.modules():
        if isinstance(block, Block):
            joint.append([(block.attention, name) for name in ("query", "key", "value")])
            if block.cross:
                joint.append([(block.cross_attention, name) for name in ("key", "value")])
            if block.feed_forward.gate is not None:
                joint.append([(block.feed_forward, name) for name in ("gate", "up")])
    named = {place for places in joint for place in places}
    return joint + [[place] for place in linear_layers(model) if place not in named]


def linear_layers(model: nn.Module) -> Iterable[Place]:
    """Yield every linear layer of a model."""
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, nn.Linear):
                yield parent, name
