"""How parameters are initialised: one function, one table."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import nn

from clearhead.config import ModelConfig
from clearhead.model.block import Block
from clearhead.model.norm import LayerNorm, RMSNorm
from clearhead.model.stack import Stack, TokenEmbedding

if TYPE_CHECKING:
    from clearhead.model.families import Model


@torch.no_grad()
def initialise(model: Model) -> None:
    """Initialise every parameter; the first loss is then about ln(number of classes or tokens) for all options.

    | parameters                       | initial value                     | reason                                    |
    |----------------------------------|-----------------------------------|-------------------------------------------|
    | token embeddings                 | normal, std d_model^-0.5 if       | after scaling they have std 1, like the   |
    |                                  | scaled by √d_model, else 0.02     | sinusoids that are added to them          |
    | learned positions, segments      | normal, std 1 if token embeddings | as large as what they are added to        |
    |                                  | are scaled, else 0.02             |                                           |
    | matrices                         | Xavier uniform                    | keeps the variance, forward and backward  |
    | matrices whose output is added   | divided by √(their number)        | with pre-norm: the residual stream does   |
    | to the residual stream           |                                   | not grow with depth                       |
    | biases; gains of norms           | 0; 1                              |                                           |
    | gain of the last norm before     | d_model^-0.5 if embeddings are    | otherwise each token would predict itself,|
    | tied logits                      | scaled                            | with a logit of √d_model                  |
    | untied head                      | normal, std 1 / d_model           | logits near 0: all classes equally likely |
    """
    config = model.config
    model.tie()
    for module in model.modules():
        if isinstance(module, TokenEmbedding):
            nn.init.normal_(module.weight, std=token_std(config))
        elif isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=1.0 if config.scale_embedding else 0.02)
        elif isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
        elif isinstance(module, LayerNorm | RMSNorm):
            nn.init.ones_(module.weight)
        if isinstance(module, nn.Linear | LayerNorm) and module.bias is not None:
            nn.init.zeros_(module.bias)
    if config.norm_order == "pre":
        for stack in model.modules():
            if isinstance(stack, Stack):
                scale_residual_outputs(stack)
    initialise_head(model)


def token_std(config: ModelConfig) -> float:
    """The standard deviation of the initial token embeddings."""
    return config.d_model**-0.5 if config.scale_embedding else 0.02


def scale_residual_outputs(stack: Stack) -> None:
    """Divide the matrices whose output is added to the residual stream by the square root of their number."""
    outputs = [module for name, module in stack.named_modules() if name.endswith((".out", ".down"))]
    for output in outputs:
        assert isinstance(output, nn.Linear)
        output.weight /= math.sqrt(len(outputs))


def initialise_head(model: Model) -> None:
    """Make the first logits small."""
    config = model.config
    project = model.head.project
    if project is None:
        return
    last_stack = model.encoder if config.family == "encoder-only" else model.decoder
    assert isinstance(last_stack, Stack)
    if project.weight is not last_stack.embedding.weight:
        nn.init.normal_(project.weight, std=1 / config.d_model)
        return
    nn.init.normal_(project.weight, std=token_std(config))  # tied: the loop above initialised it as a matrix
    if config.scale_embedding:
        last_block = last_stack.blocks[-1]
        assert isinstance(last_block, Block)
        last_norm = model.head.norm or last_stack.norm or last_block.feed_forward_add_norm.norm
        nn.init.constant_(last_norm.weight, config.d_model**-0.5)
