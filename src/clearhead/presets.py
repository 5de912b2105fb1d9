"""Model architectures by name, with the sizes that their papers give."""

from __future__ import annotations

from dataclasses import replace

from clearhead.config import ModelConfig, UserError, suggest

TINY = ModelConfig(vocab=256, d_model=64, d_ff=256, layers=2, heads=4, dropout=0.0)

PAPER_BASE = ModelConfig(vocab=37_000, d_model=512, d_ff=2048, layers=6, heads=8, dropout=0.1)

MODERN = ModelConfig(
    family="decoder-only",
    vocab=32_768,
    d_model=768,
    d_ff=2048,
    layers=12,
    heads=12,
    kv_heads=4,
    norm="rms",
    norm_order="pre",
    position="rotary",
    activation="swiglu",
    bias=False,
    dropout=0.0,
    tied="output",
    scale_embedding=False,
)

PRESETS: dict[str, ModelConfig] = {
    # Vaswani et al. 2017, table 3: base and big, with the shared English-German vocabulary
    "paper-base": PAPER_BASE,
    "paper-big": replace(PAPER_BASE, d_model=1024, d_ff=4096, heads=16, dropout=0.3),
    # Radford et al. 2019: the smallest of the four models
    "gpt2": ModelConfig(
        family="decoder-only",
        vocab=50_257,
        d_model=768,
        d_ff=3072,
        layers=12,
        heads=12,
        norm_order="pre",
        position="learned",
        max_length=1024,
        activation="gelu-tanh",
        attention_dropout=0.1,
        tied="output",
        scale_embedding=False,
    ),
    # Devlin et al. 2019, uncased, with its pooler; head = "vocabulary" makes it a masked language model
    "bert-base": ModelConfig(
        family="encoder-only",
        vocab=30_522,
        d_model=768,
        d_ff=3072,
        layers=12,
        heads=12,
        norm_epsilon=1e-12,
        position="learned",
        activation="gelu",
        attention_dropout=0.1,
        tied="output",
        scale_embedding=False,
        embedding_norm=True,
        segments=2,
        head="embedding",
        head_dense=True,
        head_bias=True,
        pool="first",
    ),
    # current decoders: RMSNorm before each sublayer, rotary positions, SwiGLU, grouped-query attention, no biases
    "modern-100m": MODERN,
    # Zhang et al. 2024: TinyLlama
    "modern-1b": replace(MODERN, vocab=32_000, d_model=2048, d_ff=5632, layers=22, heads=32, kv_heads=4, tied="none"),
    # Jiang et al. 2023: Mistral, without its sliding window
    "modern-7b": replace(MODERN, vocab=32_000, d_model=4096, d_ff=14_336, layers=32, heads=32, kv_heads=8, tied="none"),
    # one of each family, for tests and first experiments
    "tiny-encoder-decoder": TINY,
    "tiny-decoder-only": replace(TINY, family="decoder-only", norm_order="pre", activation="gelu"),
    "tiny-encoder-only": replace(TINY, family="encoder-only", norm_order="pre", activation="gelu"),
}


def preset(name: str) -> ModelConfig:
    """The preset of this name."""
    if name not in PRESETS:
        raise UserError(f"model.preset = {name!r}: neither a preset nor the folder of a run; {suggest(name, PRESETS)}")
    return PRESETS[name]
