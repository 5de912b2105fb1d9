"""One training step on this machine: ours against nn.Transformer and Hugging Face transformers of the same shape.

    python bench/training_step.py [--rounds 5] [--threads 2]

Forward, backward and a fused AdamW step in float32 without dropout. All take turns in one process, so that a busy
machine slows all of them alike; a ratio above 1 means that ours is faster. Memory is what the forward pass keeps for
the backward pass, counted once for each storage.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from clearhead.model import build_model
from clearhead.presets import PRESETS

VOCAB = 8000  # small, so that the blocks count and not the logits
Loss = Callable[[], Tensor]


class TorchTranslator(nn.Module):
    """torch's own Transformer between tied embeddings."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(VOCAB, 512)
        self.body = nn.Transformer(512, 8, 6, 6, 2048, 0.0, batch_first=True)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """The logits of what follows each target token."""
        future = nn.Transformer.generate_square_subsequent_mask(target.size(1))
        hidden = self.body(self.table(source), self.table(target), tgt_mask=future, tgt_is_causal=True)
        return F.linear(hidden, self.table.weight)


class TorchDecoder(nn.Module):
    """torch's own encoder layers with a causal mask, shaped like GPT-2."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.places = nn.Embedding(VOCAB, 768), nn.Embedding(1024, 768)
        layer = nn.TransformerEncoderLayer(768, 12, 3072, 0.0, F.gelu, batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, 12, nn.LayerNorm(768), enable_nested_tensor=False)

    def forward(self, ids: Tensor) -> Tensor:
        """The logits of what follows each token."""
        future = nn.Transformer.generate_square_subsequent_mask(ids.size(1))
        x = self.table(ids) + self.places(torch.arange(ids.size(1)))
        return F.linear(self.body(x, mask=future, is_causal=True), self.table.weight)


def translators(source: Tensor, target: Tensor) -> dict[str, tuple[nn.Module, Callable[[nn.Module], Tensor]]]:
    """Encoder-decoders of paper-base's shape, and how each is called for logits."""
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


def decoders(ids: Tensor) -> dict[str, tuple[nn.Module, Callable[[nn.Module], Tensor]]]:
    """Decoder-only models of GPT-2's shape, and how each is called for logits."""
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
    """What the forward pass keeps for the backward pass."""
    kept: dict[int, int] = {}

    def pack(t: Tensor) -> Tensor:
        kept[t.untyped_storage().data_ptr()] = t.untyped_storage().nbytes()
        return t

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        loss()
    return sum(kept.values())


def compare(
    title: str, models: dict[str, tuple[nn.Module, Callable[[nn.Module], Tensor]]], targets: Tensor, rounds: int
) -> None:
    losses: dict[str, Loss] = {}
    optimisers = {}
    for name, (model, call) in models.items():
        losses[name] = partial(loss_of, model, call, targets)
        optimisers[name] = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    times: dict[str, list[float]] = {name: [] for name in models}
    for turn in range(rounds + 1):
        for name, loss in losses.items():
            began = time.perf_counter()
            torch.autograd.backward(loss())
            optimisers[name].step()
            optimisers[name].zero_grad()
            if turn:  # the first round warms up
                times[name].append(time.perf_counter() - began)
    tokens, setting = targets.numel(), f"{torch.get_num_threads()} threads, torch {torch.__version__}"
    print(f"\n{title}, {tokens:,} target tokens a step, {setting}")
    ours = times["clearhead"]
    for name in models:
        median = statistics.median(times[name])
        ratio = statistics.median(theirs / own for theirs, own in zip(times[name], ours, strict=True))
        memory = kept_bytes(losses[name]) / 1e6
        print(f"  {name:24} {tokens / median:7,.0f} tokens/s   time / ours {ratio:5.2f}   keeps {memory:6,.0f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    source, target, answer = torch.randint(3, VOCAB, (3, 32, 32))
    compare("paper-base", translators(source, target), answer, arguments.rounds)
    ids, following = torch.randint(3, VOCAB, (2, 1, 512))
    compare("gpt2", decoders(ids), following, arguments.rounds)


if __name__ == "__main__":
    main()
