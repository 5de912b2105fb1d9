"""Names of tensors as paths through the model: "encoder.blocks.0.attention.weights".

A name is the path of the module that gives the tensor; its last word is the tensor's kind. Everything here follows from
the name and the model's settings alone, without the model.
"""

from __future__ import annotations

from dataclasses import dataclass

from clearhead.config import ModelConfig

# The sublayers of a block: name -> title.
SUBLAYERS = {"attention": "self-attention", "cross_attention": "cross-attention", "feed_forward": "feed-forward"}


def kind_of(name: str) -> str:
    """The last word of a name."""
    return name.rpartition(".")[2]


def block_of(name: str) -> str:
    """The part of the model that a name belongs to: "encoder.blocks.0", or "encoder", "decoder", "head" outside."""
    words = name.split(".")
    return ".".join(words[:3] if words[1:2] == ["blocks"] else words[:1])


@dataclass(frozen=True)
class Node:
    """One tensor of a model: its name, and the settings of the model."""

    name: str
    config: ModelConfig

    @property
    def kind(self) -> str:
        """The last word of the name."""
        return kind_of(self.name)

    @property
    def owner(self) -> str:
        """The module that the tensor belongs to."""
        return self.name.rpartition(".")[0]

    @property
    def stack(self) -> str:
        """The first word of the name: "encoder", "decoder" or "head"."""
        return self.name.partition(".")[0]

    @property
    def in_add_norm(self) -> bool:
        """Whether it is computed by an add & norm, or inside one."""
        return "_add_norm" in self.name

    @property
    def in_cross_attention(self) -> bool:
        """Whether it is computed by cross-attention, or inside it."""
        return ".cross_attention." in f"{self.name}."

    @property
    def is_post_norm(self) -> bool:
        """Whether the model normalizes after each addition, as in the paper."""
        return self.config.norm_order == "post"

    @property
    def is_rotary(self) -> bool:
        """Whether its queries and keys are rotated by position: those of cross-attention never are."""
        return self.config.position == "rotary" and not self.in_cross_attention

    @property
    def is_causal(self) -> bool:
        """Whether its queries see no later key."""
        return self.stack == "decoder" and not self.in_cross_attention

    def beside(self, kind: str) -> str:
        """The tensor or module of another name in the same module."""
        return f"{self.owner}.{kind}"

    def inside(self, kind: str) -> str:
        """The tensor or module of this name inside this one."""
        return f"{self.name}.{kind}"


def sublayers_of(stack: str, config: ModelConfig) -> tuple[str, ...]:
    """The sublayers of each block of a stack, in the order of computing."""
    crosses = stack == "decoder" and config.family == "encoder-decoder"
    return ("attention", *(("cross_attention",) if crosses else ()), "feed_forward")


def block_output(block: str) -> str:
    """The residual stream after a block."""
    return f"{block}.feed_forward_add_norm"


def last_block_output(stack: str, config: ModelConfig) -> str:
    """The residual stream after the last block of a stack."""
    layers = (config.encoder_layers or config.layers) if stack == "encoder" else config.layers
    return block_output(f"{stack}.blocks.{layers - 1}")


def stack_output(stack: str, config: ModelConfig) -> str:
    """The output of a stack: with pre-norm its final norm, else the last block's output."""
    return f"{stack}.norm" if config.norm_order == "pre" else last_block_output(stack, config)


def stream_before(add_norm: str, config: ModelConfig) -> str:
    """The residual stream that an add & norm adds to."""
    stack, _, number = block_of(add_norm).split(".")
    sublayers = sublayers_of(stack, config)
    place = sublayers.index(kind_of(add_norm).removesuffix("_add_norm"))
    if place:
        return f"{block_of(add_norm)}.{sublayers[place - 1]}_add_norm"
    return block_output(f"{stack}.blocks.{int(number) - 1}") if int(number) else f"{stack}.sum"


def sublayer_input(sublayer: str, config: ModelConfig) -> str:
    """The input of a sublayer: the residual stream, or with pre-norm the stream after the sublayer's norm."""
    add_norm = f"{sublayer}_add_norm"
    return f"{add_norm}.norm" if config.norm_order == "pre" else stream_before(add_norm, config)
