"""One training step, compared with nn.Transformer and Hugging Face transformers of the same shape.

    python bench/training_step.py [--rounds 5] [--threads 2]

Forward, backward and a fused AdamW step in float32 without dropout; all models take turns in one process. A ratio above
1 means that ours is faster. Memory is what the forward pass keeps for the backward pass, each storage counted once.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from measure import in_turns, options, setting
from torch import Tensor, nn

from clearhead.bench.contest import median_ratio
from clearhead.model import build_model
from clearhead.presets import PRESETS

VOCAB = 8000  # small, so that the blocks dominate and not the logits
Loss = Callable[[], Tensor]
Models = dict[str, tuple[nn.Module, Callable[[nn.Module], Tensor]]]  # each with how it is called for logits


class TorchTranslator(nn.Module):
    """torch's own Transformer with tied embeddings."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(VOCAB, 512)
        self.body = nn.Transformer(512, 8, 6, 6, 2048, 0.0, batch_first=True)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Logits of the token after each target token."""
        future = nn.Transformer.generate_square_subsequent_mask(target.size(1))
        hidden = self.body(self.table(source), self.table(target), tgt_mask=future, tgt_is_causal=True)
        return F.linear(hidden, self.table.weight)


class TorchDecoder(nn.Module):
    """torch's own encoder layers with a causal mask, shaped like GPT-2."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCAB, 768)
        self.positions = nn.Embedding(1024, 768)
        layer = nn.TransformerEncoderLayer(768, 12, 3072, 0.0, F.gelu, batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, 12, nn.LayerNorm(768), enable_nested_tensor=False)

    def forward(self, ids: Tensor) -> Tensor:
        """Logits of the token after each token."""
        future = nn.Transformer.generate_square_subsequent_mask(ids.size(1))
        x = self.tokens(ids) + self.positions(torch.arange(ids.size(1)))
        return F.linear(self.body(x, mask=future, is_causal=True), self.tokens.weight)


def translators(source: Tensor, target: Tensor) -> Models:
    """Encoder-decoder models of paper-base's shape."""
    from transformers import MarianConfig, MarianMTModel

    marian = MarianConfig(
        vocab_size=VOCAB, d_model=512, encoder_layers=6, decoder_layers=6, encoder_attention_heads=8,
        decoder_attention_heads=8, encoder_ffn_dim=2048, decoder_ffn_dim=2048, dropout=0.0, attention_dropout=0.0,
        activation_function="relu", pad_token_id=0, decoder_start_token_id=1, eos_token_id=2, forced_eos_token_id=2,
    )  # fmt: skip
    return {
        "clearhead": (
            build_model(replace(PRESETS["paper-base"], vocab=VOCAB, dropout=0.0)),
            lambda m: m(source, target),
        ),
        "nn.Transformer": (TorchTranslator(), lambda m: m(source, target)),
        "transformers Marian": (
            MarianMTModel(marian),
            lambda m: m(source, decoder_input_ids=target, use_cache=False).logits,
        ),
    }


def decoders(ids: Tensor) -> Models:
    """Decoder-only models of GPT-2's shape."""
    from transformers import GPT2Config, GPT2LMHeadModel

    peer: Any = GPT2LMHeadModel
    gpt2 = GPT2Config(vocab_size=VOCAB, bos_token_id=0, eos_token_id=0, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
    ours = replace(PRESETS["gpt2"], vocab=VOCAB, dropout=0.0, attention_dropout=0.0)
    return {
        "clearhead": (build_model(ours), lambda m: m(ids)),
        "nn.TransformerEncoder": (TorchDecoder(), lambda m: m(ids)),
        "transformers GPT2": (peer(gpt2), lambda m: m(ids, use_cache=False).logits),
    }


def loss_of(model: nn.Module, call: Callable[[nn.Module], Tensor], targets: Tensor) -> Tensor:
    """The loss of one batch."""
    return F.cross_entropy(call(model).flatten(0, 1), targets.flatten())


def kept_bytes(loss: Loss) -> int:
    """Bytes that the forward pass keeps for the backward pass."""
    kept: dict[int, int] = {}

    def pack(t: Tensor) -> Tensor:
        kept[t.untyped_storage().data_ptr()] = t.untyped_storage().nbytes()
        return t

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        loss()
    return sum(kept.values())


def step(loss: Loss, optimiser: torch.optim.Optimizer) -> None:
    """Forward, backward and optimiser step."""
    torch.autograd.backward(loss())
    optimiser.step()
    optimiser.zero_grad()


def compare(title: str, models: Models, targets: Tensor, rounds: int) -> None:
    losses: dict[str, Loss] = {}
    steps = {}
    for name, (model, call) in models.items():
        losses[name] = partial(loss_of, model, call, targets)
        optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
        steps[name] = partial(step, losses[name], optimiser)
    times = in_turns(steps, rounds)
    tokens = targets.numel()
    print(f"\n{title}, {tokens:,} target tokens a step, {setting()}")
    for name in models:
        median = statistics.median(times[name])
        ratio = median_ratio(times[name], times["clearhead"])
        memory = kept_bytes(losses[name]) / 1e6
        print(f"  {name:24} {tokens / median:7,.0f} tokens/s   time / ours {ratio:5.2f}   keeps {memory:6,.0f} MB")


def main() -> None:
    arguments = options(__doc__, rounds=5, threads=2)
    torch.manual_seed(0)
    source, target, answer = torch.randint(3, VOCAB, (3, 32, 32))
    compare("paper-base", translators(source, target), answer, arguments.rounds)
    ids, following = torch.randint(3, VOCAB, (2, 1, 512))
    compare("gpt2", decoders(ids), following, arguments.rounds)


if __name__ == "__main__":
    main()
