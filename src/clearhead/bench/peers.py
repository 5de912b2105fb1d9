"""The weights of a run in models of Hugging Face transformers and CTranslate2, and their decoding.

Peers get the same ids, and decode as many tokens, so that their texts can be compared with ours.
"""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from clearhead.bench.contest import Case, Cases, Work
from clearhead.bench.decoding import Generation, TranslationJob
from clearhead.model import DecoderOnly, EncoderDecoder
from clearhead.runs import Run, open_run


def source_ids(run: Run, texts: list[str]) -> list[list[int]]:
    """What the encoder reads."""
    return [[*ids, run.tokenizers.source.end] for ids in run.tokenizers.source.encode_batch(texts)]


def decoded(run: Run, rows: list[list[int]]) -> tuple[str, ...]:
    """The texts of ids."""
    return tuple(run.tokenizers.target.decode(row) for row in rows)


def precision_on(device: str) -> torch.dtype:
    """The precision that peers compute in."""
    return torch.bfloat16 if device == "cuda" else torch.float32


# --- Hugging Face transformers ----------------------------------------------------------------------------------------


def transformers_generation(folder: Path, device: str, jobs: dict[str, Generation], cache: str = "dynamic") -> Cases:
    """GPT-2's greedy search, with a growing or a static cache, for which transformers compiles the decode step."""
    run = open_run(folder)
    peer = gpt2(run).to(device, precision_on(device))
    start = run.tokenizers.target.start

    def case(job: Generation) -> Case:
        rows = [[start, *ids] for ids in run.tokenizers.target.encode_batch(job.texts(folder))]
        prompt = torch.tensor(rows, device=device)
        settings = {"do_sample": False, "max_new_tokens": job.new, "min_new_tokens": job.new}
        static = {"cache_implementation": cache} if cache == "static" else {}

        def generate() -> Work:
            ids = peer.generate(prompt, attention_mask=torch.ones_like(prompt), **settings, **static)
            return Work(job.rows * job.new, decoded(run, ids[:, prompt.size(1) :].tolist()))

        return generate

    return {name: partial(case, job) for name, job in jobs.items()}


def transformers_translation(folder: Path, device: str, jobs: dict[str, TranslationJob]) -> Cases:
    """Marian's beam search."""
    run = open_run(folder)
    peer = marian(run).to(device, precision_on(device))

    def case(job: TranslationJob) -> Case:
        source = torch.tensor(source_ids(run, job.texts(folder)), device=device)
        settings = {"num_beams": job.beam, "do_sample": False, "length_penalty": 0.0}
        lengths = {"max_new_tokens": job.new, "min_new_tokens": job.new}

        def translate() -> Work:
            ids = peer.generate(source, attention_mask=torch.ones_like(source), **settings, **lengths)
            return Work(job.rows, decoded(run, ids[:, 1:].tolist()))

        return translate

    return {name: partial(case, job) for name, job in jobs.items()}


@torch.no_grad()
def gpt2(run: Run) -> Any:
    """Hugging Face's GPT-2 with the weights of a run."""
    from transformers import GPT2Config, GPT2LMHeadModel

    model = run.model
    assert isinstance(model, DecoderOnly)
    ours = run.recipe.model
    end = run.tokenizers.target.end
    config = GPT2Config(
        vocab_size=ours.vocab, n_positions=ours.max_length, n_embd=ours.d_model, n_layer=ours.layers,
        n_head=ours.heads, n_inner=ours.d_ff, bos_token_id=end, eos_token_id=end, pad_token_id=end,
    )  # fmt: skip
    whole: Any = GPT2LMHeadModel
    peer = whole(config).eval()
    body = peer.transformer
    body.wte.weight.copy_(model.decoder.embedding.weight)
    body.wpe.weight.copy_(model.get_parameter("decoder.position.table.weight"))
    blocks: Any = model.decoder.blocks
    for block, layer in zip(blocks, body.h, strict=True):
        parts = (block.attention.query, block.attention.key, block.attention.value)
        layer.attn.c_attn.weight.copy_(torch.cat([part.weight for part in parts]).T)
        layer.attn.c_attn.bias.copy_(torch.cat([part.bias for part in parts]))
        for own, its in (
            (block.attention.out, layer.attn.c_proj),
            (block.feed_forward.up, layer.mlp.c_fc),
            (block.feed_forward.down, layer.mlp.c_proj),
        ):
            copy(its, own.weight.T, own.bias)
        copy(layer.ln_1, block.attention_add_norm.norm.weight, block.attention_add_norm.norm.bias)
        copy(layer.ln_2, block.feed_forward_add_norm.norm.weight, block.feed_forward_add_norm.norm.bias)
    norm: Any = model.decoder.norm
    copy(body.ln_f, norm.weight, norm.bias)
    return peer


def copy(module: Any, weight: Tensor, bias: Tensor) -> None:
    """Give a module these weights."""
    module.weight.copy_(weight)
    module.bias.copy_(bias)


@torch.no_grad()
def marian(run: Run) -> Any:
    """Hugging Face's Marian with the weights of a run in the paper's architecture.

    Its sinusoids are all sines, then all cosines, and ours alternate: so channels change places.
    """
    from transformers import MarianConfig, MarianMTModel

    ours = run.recipe.model
    model = run.model
    assert isinstance(model, EncoderDecoder)
    encoder_layers = ours.encoder_layers or ours.layers
    config = MarianConfig(
        vocab_size=ours.vocab, d_model=ours.d_model, encoder_layers=encoder_layers, decoder_layers=ours.layers,
        encoder_attention_heads=ours.heads, decoder_attention_heads=ours.heads, encoder_ffn_dim=ours.d_ff,
        decoder_ffn_dim=ours.d_ff, activation_function="relu", scale_embedding=True, max_position_embeddings=256,
        eos_token_id=run.tokenizers.target.end, forced_eos_token_id=None, pad_token_id=ours.vocab - 1,
        decoder_start_token_id=run.tokenizers.target.start, share_encoder_decoder_embeddings=True,
    )  # fmt: skip
    peer: Any = MarianMTModel(config)
    peer.eval()
    half = ours.d_model // 2
    move = torch.arange(ours.d_model).view(half, 2).T.flatten()  # its channel i is our channel move[i]
    peer.model.shared.weight.copy_(model.decoder.embedding.weight[:, move])
    stacks: Any = [(model.encoder, peer.model.encoder), (model.decoder, peer.model.decoder)]
    for own, its in stacks:
        for block, layer in zip(own.blocks, its.layers, strict=True):
            copy_attention(layer.self_attn, block.attention, move)
            copy_norm(layer.self_attn_layer_norm, block.attention_add_norm.norm, move)
            if own is model.decoder:
                copy_attention(layer.encoder_attn, block.cross_attention, move)
                copy_norm(layer.encoder_attn_layer_norm, block.cross_attention_add_norm.norm, move)
            copy(layer.fc1, block.feed_forward.up.weight[:, move], block.feed_forward.up.bias)
            copy(layer.fc2, block.feed_forward.down.weight[move], block.feed_forward.down.bias[move])
            copy_norm(layer.final_layer_norm, block.feed_forward_add_norm.norm, move)
    return peer


def copy_attention(theirs: Any, ours: Any, move: Tensor) -> None:
    """Copy the four matrices of an attention layer."""
    for its, own in ((theirs.q_proj, ours.query), (theirs.k_proj, ours.key), (theirs.v_proj, ours.value)):
        copy(its, own.weight[:, move], own.bias)
    copy(theirs.out_proj, ours.out.weight[move], ours.out.bias[move])


def copy_norm(theirs: Any, ours: Any, move: Tensor) -> None:
    """Copy a LayerNorm."""
    copy(theirs, ours.weight[move], ours.bias[move])


# --- CTranslate2 ------------------------------------------------------------------------------------------------------


class Words:
    """The part of a tokenizer that CTranslate2's converter needs: a word is its number."""

    def __init__(self, run: Run) -> None:
        self.count = run.recipe.model.vocab
        self.eos_token = str(run.tokenizers.target.end)
        self.unk_token = str(run.tokenizers.target.unknown)

    def get_vocab(self) -> dict[str, int]:
        """All words; the last is padding, which CTranslate2 leaves out."""
        return {"<pad>" if i == self.count - 1 else str(i): i for i in range(self.count)}


def ctranslate2_translation(folder: Path, device: str, jobs: dict[str, TranslationJob], threads: int) -> Cases:
    """CTranslate2's beam search, with weights in float32 or int8, on a GPU in bfloat16."""
    import ctranslate2
    from ctranslate2.converters.transformers import MarianMTLoader

    run = open_run(folder)
    converted = tempfile.TemporaryDirectory()  # kept as long as the cases are
    with torch.no_grad():
        spec = MarianMTLoader()(marian(run), Words(run))
    spec.validate()
    spec.optimize()
    spec.save(converted.name)

    def case(job: TranslationJob) -> Case:
        kind = "bfloat16" if device == "cuda" else job.weights or "float32"
        settings: dict[str, Any] = {"device": device, "compute_type": kind, "intra_threads": threads}
        translator = ctranslate2.Translator(converted.name, **settings)
        sentences = [[str(i) for i in row] for row in source_ids(run, job.texts(folder))]
        search: dict[str, Any] = {"beam_size": job.beam, "length_penalty": 0.0, "max_batch_size": 0}
        lengths = {"min_decoding_length": job.new, "max_decoding_length": job.new}

        def translate() -> Work:
            results = translator.translate_batch(sentences, **search, **lengths)
            ids = [[int(word) for word in result.hypotheses[0]] for result in results]
            return Work(job.rows, decoded(run, ids))

        return translate

    return {name: partial(case, job) for name, job in jobs.items() if job.weights not in ("float16", "bfloat16")}
