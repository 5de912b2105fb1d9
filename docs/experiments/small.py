"""What the experiments of the course share: a small task, a small model, a short training, and where results go.

Each experiment is a script: `python docs/experiments/residuals.py` computes its table (docs/course/computed) and its
picture (docs/course/pictures) again, in less than a minute on one CPU core. `--quick` does the same with a few steps,
for the tests, and writes nothing.
"""

from __future__ import annotations

import datetime
import platform
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import torch
import torch.nn.functional as F
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from torch import Tensor, nn

from clearhead.config import ModelConfig
from clearhead.model import build_model

COURSE = Path(__file__).parent.parent / "course"
QUICK = "--quick" in sys.argv
BLUE, ORANGE, GREEN, RED = "#2563a8", "#d9730d", "#3a8f4d", "#b3263b"
Batch = tuple[Tensor, Tensor]  # inputs (B, T) and the right answer to each of them (B, T)


def steps(count: int) -> int:
    """The number of training steps, or two of them for a quick look."""
    return 2 if QUICK else count


def small_model(seed: int = 0, **settings: Any) -> nn.Module:
    """A model with 32 channels and two blocks, in which every token sees all others, unless the settings differ."""
    torch.manual_seed(seed)
    small = {"family": "encoder-only", "vocab": 16, "d_model": 32, "d_ff": 64, "layers": 2, "heads": 4}
    return build_model(ModelConfig(**{**small, "dropout": 0.0, "norm_order": "pre", **settings}))


def reversals(length: int, batch: int = 64, vocab: int = 16, seed: int = 1) -> Iterator[Batch]:
    """Random sequences of a length; the right answer is the same sequence backwards."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        ids = torch.randint(vocab, (batch, length), generator=generator)
        yield ids, ids.flip(1)


def train(model: nn.Module, batches: Iterator[Batch], count: int, rate: float = 3e-3) -> list[float]:
    """Train a model with AdamW at a constant learning rate; return the loss of each step."""
    optimiser = torch.optim.AdamW(model.parameters(), lr=rate)
    losses = []
    for _, (inputs, answers) in zip(range(steps(count)), batches, strict=False):
        loss = F.cross_entropy(model(inputs).flatten(0, 1), answers.flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return losses


def steps_until(losses: Sequence[float], limit: float) -> str:
    """The first step whose loss is below a limit."""
    return next((str(step) for step, loss in enumerate(losses, 1) if loss < limit), "never")


@torch.inference_mode()
def accuracy(model: nn.Module, batches: Iterator[Batch], count: int = 4) -> float:
    """The share of tokens that a model gets right, in percent."""
    model.eval()
    right = [(model(ids).argmax(-1) == answers).float().mean() for _, (ids, answers) in zip(range(count), batches)]  # noqa: B905
    model.train()
    return 100 * float(torch.stack(right).mean())


def table(header: list[str], rows: list[list[str]]) -> str:
    """A table in Markdown."""
    return "\n".join("| " + " | ".join(row) + " |" for row in [header, ["---"] * len(header), *rows])


def report(name: str, text: str, figure: Figure | None = None) -> None:
    """Print a result, and write it and its picture for the course."""
    where = f"{platform.machine()}, one CPU thread, torch {torch.__version__.split('+')[0]}"
    note = (
        f"Measured with `python docs/experiments/{name}.py`: {where}, {datetime.datetime.now(datetime.UTC):%Y-%m-%d}."
    )
    print(text, note, sep="\n\n")  # noqa: T201
    if QUICK:
        return
    (COURSE / "computed").mkdir(exist_ok=True)
    (COURSE / "computed" / f"{name}.txt").write_text(f"{text}\n\n{note}\n", encoding="utf8")
    if figure is not None:
        save(figure, COURSE / "pictures" / f"{name}.png")


def save(figure: Figure, path: Path) -> None:
    """Write a picture."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110, bbox_inches="tight", metadata={"Software": None})
    plt.close(figure)


def panels(count: int, width: float = 4.0, height: float = 3.0) -> tuple[Figure, list[Any]]:
    """A figure with panels beside each other, without frames."""
    figure, axes = plt.subplots(1, count, figsize=(width * count, height), layout="constrained", squeeze=False)
    for each in axes[0]:
        each.spines[["top", "right"]].set_visible(False)
    return figure, list(axes[0])


def main(experiment: Callable[[], None]) -> None:
    """Run an experiment on one thread, so that its numbers do not depend on the number of cores."""
    torch.set_num_threads(1)
    experiment()
