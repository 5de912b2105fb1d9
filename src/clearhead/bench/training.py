"""Training steps: ours as the training loop takes them, and those of PyTorch's and Hugging Face's models."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from clearhead.bench.contest import Case, Cases, Work
from clearhead.bench.material import bucketed_pairs, language_batches, one_of_each_shape, pair_batches
from clearhead.config import DataConfig, ModelConfig, Recipe, TrainConfig
from clearhead.data.batches import IGNORE, Batch
from clearhead.data.loader import prefetch
from clearhead.device import choose_device
from clearhead.train.loop import finish_steps, train_step
from clearhead.train.prepare import batches_from_step
from clearhead.train.run import initial_state
from clearhead.train.watching.log import Log

SHAPE_REPEATS = 3  # of each shape before the first round: computed, recorded as a CUDA graph, replayed


@dataclass(frozen=True)
class TrainingJob:
    """A model and the batches that it is trained on."""

    model: ModelConfig
    train: TrainConfig
    rows: int = 0  # sequences of a batch
    length: int = 0  # tokens of a sequence, of source and target each
    bucketed: int = 0  # instead: the token budget of batches of sentence pairs in buckets of similar lengths
    pairs: int = 100_000  # of them
    steps: int = 20  # of one call

    @property
    def recipe(self) -> Recipe:
        """The recipe that a user would train this with."""
        sides = 2 if self.model.family == "encoder-decoder" else 1
        tokens = self.bucketed or sides * self.rows * self.length
        task = "translation" if sides == 2 else "language"
        data = DataConfig(task=task, batch_tokens=tokens, max_length=self.length or 64)
        return Recipe("bench", data=data, model=self.model, train=self.train)

    def batches(self, device: torch.device) -> tuple[Iterator[Batch], list[Batch]]:
        """An endless iterator of batches, and one batch of each shape for the warm-up."""
        if self.bucketed:
            bucketed = bucketed_pairs(self.model.vocab, self.bucketed, self.pairs)
            first = [batch.to(device) for batch in one_of_each_shape(bucketed)]
            return prefetch(batches_from_step(bucketed, 0), device), first
        make = pair_batches if self.model.family == "encoder-decoder" else language_batches
        return make(self.model.vocab, self.rows, self.length, device), []


def training_case(job: TrainingJob, step: Callable[[Batch], None], finish: Callable[[], None], device: Any) -> Case:
    """A case of `steps` training steps, after a warm-up with batches of all shapes; counts target tokens."""
    batches, first = job.batches(device)

    def take(some: Iterator[Batch]) -> Work:
        tokens = 0
        for batch in some:
            step(batch)
            tokens += batch.tokens
        finish()
        return Work(tokens)

    take(batch for batch in first for _ in range(SHAPE_REPEATS))
    return lambda: take(islice(batches, job.steps))


def ours(jobs: dict[str, TrainingJob]) -> Cases:
    """The steps of `clearhead train`, with its gradient clipping, optimiser and log."""

    def case(job: TrainingJob) -> Case:
        recipe = job.recipe
        state = initial_state(recipe)
        log = Log(None, recipe, state.machine, 0, quiet=True)
        return training_case(
            job,
            lambda batch: train_step(state, [batch], 1e-4, recipe.train, log),
            lambda: finish_steps(state, recipe.train, log),
            state.machine.device,
        )

    return {name: partial(case, job) for name, job in jobs.items()}


# --- peers ------------------------------------------------------------------------------------------------------------


def pytorch(jobs: dict[str, TrainingJob]) -> Cases:
    """`nn.Transformer` of the same shape: compiled on a GPU, with a fused AdamW."""
    return {name: partial(peer_case, job, partial(TorchTranslator, job.model)) for name, job in jobs.items()}


def transformers(jobs: dict[str, TrainingJob]) -> Cases:
    """Hugging Face's GPT-2 of the same shape: compiled on a GPU, with a fused AdamW."""
    from transformers import GPT2Config, GPT2LMHeadModel

    def build(model: ModelConfig) -> nn.Module:
        config = GPT2Config(
            vocab_size=model.vocab, n_positions=model.max_length, n_embd=model.d_model, n_layer=model.layers,
            n_head=model.heads, n_inner=model.d_ff, bos_token_id=0, eos_token_id=0,
            resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, use_cache=False,
        )  # fmt: skip
        whole: Any = GPT2LMHeadModel
        return Logits(whole(config))

    return {name: partial(peer_case, job, partial(build, job.model)) for name, job in jobs.items()}


class Logits(nn.Module):
    """A model of Hugging Face that returns logits."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: Tensor) -> Tensor:
        """Logits of the token after each token."""
        logits: Tensor = self.model(ids).logits
        return logits


class TorchTranslator(nn.Module):
    """`nn.Transformer` with one embedding matrix for source, target and logits, and without positions."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.table = nn.Embedding(config.vocab, config.d_model)
        encoder_layers = config.encoder_layers or config.layers
        sizes = (config.d_model, config.heads, encoder_layers, config.layers, config.d_ff, config.dropout)
        with warnings.catch_warnings(action="ignore"):  # pre-norm rules out a fast path of evaluation
            self.body = nn.Transformer(*sizes, batch_first=True, norm_first=config.norm_order == "pre")

    def forward(self, source: Tensor, source_real: Tensor, target: Tensor) -> Tensor:
        """Logits of the token after each target token."""
        length = target.size(1)
        future = torch.ones(length, length, dtype=torch.bool, device=target.device).triu(1)  # True: may not attend
        padding = ~source_real
        hidden = self.body(
            self.table(source), self.table(target), tgt_mask=future, tgt_is_causal=True,
            src_key_padding_mask=padding, memory_key_padding_mask=padding,
        )  # fmt: skip
        return F.linear(hidden, self.table.weight)


def peer_case(job: TrainingJob, build: Callable[[], nn.Module]) -> Case:
    """Forward pass, backward pass, gradient clipping and AdamW, in bfloat16 on a GPU."""
    device = choose_device(job.train.device)
    model = build().to(device)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    on_gpu = device.type == "cuda"

    def loss_of(inputs: dict[str, Tensor], targets: Tensor) -> Tensor:
        logits = model(**inputs).flatten(0, 1).float()
        smoothing = job.train.label_smoothing
        return F.cross_entropy(logits, targets.flatten(), ignore_index=IGNORE, label_smoothing=smoothing)

    compiled = torch.compile(loss_of) if on_gpu else loss_of

    def step(batch: Batch) -> None:
        with torch.autocast(device.type, torch.bfloat16, enabled=on_gpu):
            loss = compiled(batch.inputs, batch.targets)
        torch.autograd.backward(loss)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad()

    return training_case(job, step, lambda: None, device)


def without_dropout(config: ModelConfig) -> ModelConfig:
    """The model settings with all dropout set to 0, as most language models are trained."""
    return replace(config, dropout=0.0, attention_dropout=0.0)
