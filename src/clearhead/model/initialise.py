"""How a model's weights start: one function, one table."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import nn

from clearhead.config import ModelConfig
from clearhead.model.block import Block, LayerNorm, RMSNorm
from clearhead.model.stack import Stack, TokenEmbedding

if TYPE_CHECKING:
    from clearhead.model.families import DecoderOnly, EncoderDecoder, EncoderOnly


@torch.no_grad()
def initialise(model: EncoderDecoder | DecoderOnly | EncoderOnly) -> None:
    """Set every weight; the first loss is then about ln(number of choices), whatever the options.

    | what                             | starts as                         | why                                       |
    |----------------------------------|-----------------------------------|-------------------------------------------|
    | tokens                           | normal, deviation d_model^-0.5 if | scaled, an embedding has deviation 1: of  |
    |                                  | scaled by √d_model, else 0.02     | the size of the sinusoids added to it     |
    | learned positions, segments      | normal, deviation 1 if tokens are | as large as what they are added to        |
    |                                  | scaled, else 0.02                 |                                           |
    | matrices                         | Xavier uniform                    | variance stays, forwards and backwards    |
    | those that write into the stream | divided by √(their number)        | with pre-norm: the stream does not grow   |
    | biases; gains of norms           | 0; 1                              |                                           |
    | the last gain before logits from | d_model^-0.5, if embeddings are   | or each token would predict itself: its   |
    | a tied table                     | scaled                            | own row gives a logit of √d_model         |
    | an untied head                   | normal, deviation 1 / d_model     | logits near 0: all choices equally likely |
    """
    config = model.config
    model.tie()
    for module in model.modules():
        if isinstance(module, TokenEmbedding):
            nn.init.normal_(module.weight, std=token_deviation(config))
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
                shrink_residual_writers(stack)
    initialise_head(model)


def token_deviation(config: ModelConfig) -> float:
    """The deviation that the token table starts with."""
    return config.d_model**-0.5 if config.scale_embedding else 0.02


def shrink_residual_writers(stack: Stack) -> None:
    """Divide the matrices that write into the residual stream by the root of their number."""
    writers = [module for name, module in stack.named_modules() if name.endswith((".out", ".down"))]
    for writer in writers:
        assert isinstance(writer, nn.Linear)
        writer.weight /= math.sqrt(len(writers))


def initialise_head(model: EncoderDecoder | DecoderOnly | EncoderOnly) -> None:
    """Let the first logits be small."""
    config, project = model.config, model.head.project
    if project is None:
        return
    last_stack = model.encoder if config.family == "encoder-only" else model.decoder
    assert isinstance(last_stack, Stack)
    if project.weight is not last_stack.embedding.weight:
        nn.init.normal_(project.weight, std=1 / config.d_model)
        return
    nn.init.normal_(project.weight, std=token_deviation(config))  # tied: it was taken for a matrix before
    if config.scale_embedding:
        last_block = last_stack.blocks[-1]
        assert isinstance(last_block, Block)
        last_norm = model.head.norm or last_stack.norm or last_block.feed_forward_add_norm.norm
        nn.init.constant_(last_norm.weight, config.d_model**-0.5)
