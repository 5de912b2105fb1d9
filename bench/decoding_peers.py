"""The same random weights in our models, in those of Hugging Face transformers, and in a folder for CTranslate2.

Not a benchmark itself: bench/decoding.py compares how fast they decode.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from clearhead.model import DecoderOnly, EncoderDecoder, build_model
from clearhead.presets import PRESETS

END = 0
UNKNOWN = 1
START = PRESETS["paper-base"].vocab - 1


def marian() -> Any:
    """A Marian model of paper-base's shape with random weights; it never writes the end token."""
    from transformers import MarianConfig, MarianMTModel

    vocab = PRESETS["paper-base"].vocab
    config = MarianConfig(
        vocab_size=vocab, d_model=512, encoder_layers=6, decoder_layers=6, encoder_attention_heads=8,
        decoder_attention_heads=8, encoder_ffn_dim=2048, decoder_ffn_dim=2048, activation_function="relu",
        scale_embedding=True, eos_token_id=END, forced_eos_token_id=None, pad_token_id=vocab - 1,
        decoder_start_token_id=vocab - 1, max_position_embeddings=128, share_encoder_decoder_embeddings=True,
    )  # fmt: skip
    peer: Any = MarianMTModel(config)
    peer.eval()
    with torch.no_grad():
        for name, parameter in peer.named_parameters():
            if parameter.dim() == 2 and "embed_positions" not in name:
                nn.init.normal_(parameter, std=0.1 if "shared" in name else parameter.size(1) ** -0.5)
        peer.model.shared.weight[[END, UNKNOWN, vocab - 1]] = 0  # never the most likely
    return peer


def from_marian(peer: Any) -> EncoderDecoder:
    """Our model with the weights of a Marian.

    Its sinusoids are all sines, then all cosines, and ours alternate: so channels change places.
    """
    model = build_model(PRESETS["paper-base"]).eval()
    assert isinstance(model, EncoderDecoder)
    move = torch.arange(512).view(2, 256).T.flatten()  # our channel i is its channel move[i]
    copied: Any = [(model.encoder, peer.model.encoder), (model.decoder, peer.model.decoder)]
    with torch.no_grad():
        model.decoder.embedding.weight.copy_(peer.model.shared.weight[:, move])
        for ours, theirs in copied:
            for block, layer in zip(ours.blocks, theirs.layers, strict=True):
                copy_attention(block.attention, layer.self_attn, move)
                copy_norm(block.attention_add_norm.norm, layer.self_attn_layer_norm, move)
                if ours is model.decoder:
                    copy_attention(block.cross_attention, layer.encoder_attn, move)
                    copy_norm(block.cross_attention_add_norm.norm, layer.encoder_attn_layer_norm, move)
                copy_linear(block.feed_forward.up, layer.fc1.weight[:, move], layer.fc1.bias)
                copy_linear(block.feed_forward.down, layer.fc2.weight[move], layer.fc2.bias[move])
                copy_norm(block.feed_forward_add_norm.norm, layer.final_layer_norm, move)
    return model


def copy_attention(ours: Any, theirs: Any, move: Tensor) -> None:
    for own, its in ((ours.query, theirs.q_proj), (ours.key, theirs.k_proj), (ours.value, theirs.v_proj)):
        copy_linear(own, its.weight[:, move], its.bias)
    copy_linear(ours.out, theirs.out_proj.weight[move], theirs.out_proj.bias[move])


def copy_linear(linear: Any, weight: Tensor, bias: Tensor) -> None:
    linear.weight.copy_(weight)
    linear.bias.copy_(bias)


def copy_norm(ours: Any, theirs: Any, move: Tensor) -> None:
    copy_linear(ours, theirs.weight[move], theirs.bias[move])


def gpt2() -> tuple[DecoderOnly, Any]:
    """Two models of gpt2's shape with the same random weights."""
    from transformers import GPT2Config, GPT2LMHeadModel

    peer: Any = GPT2LMHeadModel
    peer = peer(GPT2Config(bos_token_id=END, eos_token_id=END, pad_token_id=END)).eval()
    model = build_model(replace(PRESETS["gpt2"], dropout=0.0, attention_dropout=0.0)).eval()
    assert isinstance(model, DecoderOnly)
    body = peer.transformer
    with torch.no_grad():
        for parameter in peer.parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, std=parameter.size(0) ** -0.5)
        nn.init.normal_(body.wte.weight, std=0.1)
        body.wte.weight[END] = 0
        model.decoder.embedding.weight.copy_(body.wte.weight)
        model.get_parameter("decoder.position.table.weight").copy_(body.wpe.weight)
        blocks: Any = model.decoder.blocks
        for block, layer in zip(blocks, body.h, strict=True):
            parts = (block.attention.query, block.attention.key, block.attention.value)
            split = zip(layer.attn.c_attn.weight.T.chunk(3), layer.attn.c_attn.bias.chunk(3), strict=True)
            for part, (weight, bias) in zip(parts, split, strict=True):
                copy_linear(part, weight, bias)
            for own, its in (
                (block.attention.out, layer.attn.c_proj),
                (block.feed_forward.up, layer.mlp.c_fc),
                (block.feed_forward.down, layer.mlp.c_proj),
            ):
                copy_linear(own, its.weight.T, its.bias)
            copy_linear(block.attention_add_norm.norm, layer.ln_1.weight, layer.ln_1.bias)
            copy_linear(block.feed_forward_add_norm.norm, layer.ln_2.weight, layer.ln_2.bias)
        copy_linear(model.decoder.norm, body.ln_f.weight, body.ln_f.bias)
    return model, peer


class Words:
    """The part of a tokenizer that CTranslate2's converter needs: a word is its number."""

    eos_token = str(END)
    unk_token = str(UNKNOWN)

    def __init__(self, count: int) -> None:
        self.count = count

    def get_vocab(self) -> dict[str, int]:
        """All words; the last is padding, which CTranslate2 leaves out."""
        return {"<pad>" if i == self.count - 1 else str(i): i for i in range(self.count)}


def convert(folder: str) -> None:
    """Write the weights of the Marian model as CTranslate2 reads them."""
    from ctranslate2.converters.transformers import MarianMTLoader

    torch.manual_seed(0)
    peer = marian()
    with torch.no_grad():
        spec = MarianMTLoader()(peer, Words(peer.config.vocab_size))
    spec.validate()
    spec.optimize()
    spec.save(folder)
