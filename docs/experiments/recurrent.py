"""Chapter 1: an LSTM beside a Transformer on the same task: time by length, accuracy by distance, gradients.

The task: the first token of a sequence is a symbol, all others are noise, and at the last token the model has to say
which symbol it was. Both models read from left to right and have about the same number of parameters.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import torch
import torch.nn.functional as F
from small import BLUE, ORANGE, QUICK, main, panels, report, small_model, steps, table
from torch import Tensor, nn

SYMBOLS = 8
NOISE = 8
DISTANCES = [4, 8, 16, 32, 64, 128]
LENGTHS = [32, 64, 128, 256, 512]


class Recurrent(nn.Module):
    """An LSTM between an embedding and logits."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(SYMBOLS + NOISE, size)
        self.lstm = nn.LSTM(size, size, num_layers=2, batch_first=True)
        self.head = nn.Linear(size, SYMBOLS + NOISE)

    def forward(self, ids: Tensor) -> Tensor:
        """(B, T) -> (B, T, V)."""
        return self.head(self.lstm(self.embedding(ids))[0])


def models() -> dict[str, nn.Module]:
    """The two models, with fresh random parameters."""
    attention = small_model(family="decoder-only", d_model=64, d_ff=128, layers=2, position="learned")
    torch.manual_seed(0)
    return {"LSTM": Recurrent(64), "Transformer": attention}


def recall(distance: int, batch: int = 32) -> Iterator[tuple[Tensor, Tensor]]:
    """A symbol, noise, and the symbol to be named at the end: (B, distance + 1) and (B)."""
    generator = torch.Generator().manual_seed(distance)
    while True:
        symbol = torch.randint(SYMBOLS, (batch, 1), generator=generator)
        noise = torch.randint(SYMBOLS, SYMBOLS + NOISE, (batch, distance), generator=generator)
        yield torch.cat([symbol, noise], dim=1), symbol[:, 0]


def loss_of(model: nn.Module, ids: Tensor, answers: Tensor) -> Tensor:
    """The loss at the last token."""
    return F.cross_entropy(model(ids)[:, -1], answers)


def seconds(model: nn.Module, length: int) -> float:
    """CPU time of one training step with 4 sequences of a length: the fastest of three."""
    times = []
    for _, (ids, answers) in zip(range(1 if QUICK else 4), recall(length - 1, 4)):  # noqa: B905
        start = time.process_time()
        loss_of(model, ids, answers).backward()
        times.append(time.process_time() - start)
    return min(times[1:] or times)


def gradient(model: nn.Module, distance: int) -> float:
    """The norm of the loss's gradient with respect to the first token's embedding, before training."""
    embedding = model.embedding if isinstance(model, Recurrent) else model.decoder.embedding
    kept: list[Tensor] = []

    def keep(_module: nn.Module, _inputs: object, output: Tensor) -> None:
        output.retain_grad()
        kept.append(output)

    hook = embedding.register_forward_hook(keep)
    loss_of(model, *next(recall(distance))).backward()
    hook.remove()
    grad = kept[0].grad
    assert grad is not None
    return float(grad[:, 0].norm(dim=-1).mean() / grad[:, -1].norm(dim=-1).mean())


def learned(model: nn.Module, distance: int, count: int = 150) -> float:
    """Percent of symbols that are right after a short training on one distance."""
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3)
    batches = recall(distance)
    for _, (ids, answers) in zip(range(steps(count)), batches):  # noqa: B905
        loss = loss_of(model, ids, answers)
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
    with torch.inference_mode():
        tests = [next(batches) for _ in range(8)]
        return 100 * float(
            torch.cat([model(ids)[:, -1].argmax(-1) == answers for ids, answers in tests]).float().mean()
        )


def compare() -> None:
    """All three comparisons."""
    times = {name: [1000 * seconds(model, n) for n in LENGTHS] for name, model in models().items()}
    gradients = {name: [gradient(models()[name], n) for n in DISTANCES] for name in models()}
    right = {name: [learned(models()[name], n) for n in DISTANCES] for name in models()}
    sizes = {name: sum(p.numel() for p in model.parameters()) for name, model in models().items()}
    figure, axes = panels(3, 3.6)
    for name, colour in zip(times, (ORANGE, BLUE), strict=True):
        axes[0].plot(LENGTHS, times[name], "o-", color=colour, label=name)
        axes[1].plot(DISTANCES, right[name], "o-", color=colour, label=name)
        axes[2].plot(DISTANCES, gradients[name], "o-", color=colour, label=name)
    axes[0].set(title="CPU time of a training step (ms)", xlabel="tokens", xscale="log", yscale="log")
    axes[1].set(title="right after 150 steps (%)", xlabel="distance", xscale="log")
    axes[2].set(title="gradient, first token / last", xlabel="distance", xscale="log", yscale="log")
    for axis, marks in zip(axes, (LENGTHS, DISTANCES, DISTANCES), strict=True):
        axis.set_xticks(marks, [str(mark) for mark in marks], fontsize=8)
        axis.minorticks_off()
    axes[0].set_yticks([3, 10, 30], ["3", "10", "30"])
    axes[0].legend(frameon=False)
    header = ["distance", *(f"{name}: right" for name in right), *(f"{name}: gradient" for name in right)]
    rows = [[str(n), *(f"{right[m][i]:.0f} %" for m in right), *(f"{gradients[m][i]:.1e}" for m in right)]
            for i, n in enumerate(DISTANCES)]  # fmt: skip
    header_of_times = ["tokens", *(f"{name}: ms a step" for name in times)]
    rows_of_times = [[str(n), *(f"{times[m][i]:.1f}" for m in times)] for i, n in enumerate(LENGTHS)]
    note = ", ".join(f"{name} {size:,}" for name, size in sizes.items())
    text = f"{table(header, rows)}\n\n{table(header_of_times, rows_of_times)}\n\nParameters: {note}."
    report("recurrent", text, figure)


if __name__ == "__main__":
    main(compare)
