"""Seeing a run: live on a terminal, plain lines elsewhere, everything in metrics.jsonl, and on TensorBoard if asked."""

from __future__ import annotations

import json
import math
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import TextIO

import torch
from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from clearhead.config import Recipe
from clearhead.data.batches import Batch
from clearhead.device import Machine
from clearhead.files import Metrics, read_metrics, write_file
from clearhead.tasks import TASKS
from clearhead.train.cost import readable, readable_time
from clearhead.train.watching.samples import Model, Sample, Samples
from clearhead.train.watching.speed import Pace, memory_used, peak_flops, tokens_read, training_flops
from clearhead.train.watching.tensorboard import Board, attention_weights

LINES_EVERY = 10.0  # seconds between two lines, when nobody watches a terminal
SMOOTH = 0.95  # of the loss that is shown


class Log:
    """What a run says while it learns: progress to stderr, all numbers to metrics.jsonl in the run's folder.

    Without a folder nothing is written.
    """

    def __init__(
        self,
        run: Path | None,
        recipe: Recipe,
        machine: Machine,
        step: int,  # that the run begins after
        samples: Samples | None = None,  # what to look at when the model is evaluated
        quiet: bool = False,
    ) -> None:
        self.console = Console(stderr=True, quiet=quiet, highlight=False)
        self.quiet, self.recipe, self.machine, self.samples = quiet, recipe, machine, samples
        self.metrics = open_metrics(run, step) if run else None
        self.board = Board(run, step) if run and recipe.train.tensorboard else None
        self.now, self.loss, self.pace, self.last_line = step, math.nan, Pace(), time.monotonic()
        self.live = Live(console=self.console, get_renderable=self.picture, refresh_per_second=4)
        self.on_terminal = sys.stderr.isatty() and not quiet

    def __enter__(self) -> Log:
        if not self.quiet:
            peak_flops(self.machine)  # perhaps measured, and not while the pace is taken
        if self.on_terminal:
            self.live.start()
        self.restart_clock()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.live.stop()
        if self.metrics:
            self.metrics.close()
        if self.board:
            self.board.close()

    def say(self, text: str | Text) -> None:
        """A line for people; never broken into two, because programs read it, too."""
        self.console.print(text, soft_wrap=True)

    def record(self, kind: str, step: int, **values: float | str) -> None:
        """A line for programs; what is no number (inf, nan) becomes null, because JSON has no word for it."""
        if self.metrics:
            clean = {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in values.items()}
            self.metrics.write(json_line({"kind": kind, "step": step, **clean}))
            self.metrics.flush()

    def restart_clock(self) -> None:
        """The time since the last step was spent on something else, such as evaluation and saving."""
        self.pace.restart()

    def step(self, step: int, loss: float, rate: float, norm: float, tokens: int, batches: list[Batch]) -> None:
        """One optimiser step is done: of so many tokens over all processes, these batches by this one."""
        read = sum(tokens_read(TASKS[self.recipe.data.task], batch) for batch in batches)
        mine = sum(batch.tokens for batch in batches)
        flops = sum(training_flops(self.recipe.model, batch) for batch in batches)
        self.pace.step(round(read * tokens / max(1, mine)), flops)
        self.now = step
        self.loss = loss if math.isnan(self.loss) else SMOOTH * self.loss + (1 - SMOOTH) * loss
        speed = self.pace.work.tokens
        self.record("train", step, loss=loss, rate=rate, norm=norm, tokens=tokens, speed=speed)
        if self.board:
            values = {"loss/train": loss, "learning rate": rate, "gradient norm": norm, "tokens per second": speed}
            self.board.numbers(step, values)
        if (
            not self.on_terminal
            and not self.console.quiet
            and (time.monotonic() - self.last_line >= LINES_EVERY or step == self.steps)
        ):
            self.say(f"step {step:,} of {self.steps:,}  {self.figures()}")
            self.last_line = time.monotonic()

    def skipped(self, step: int, loss: float, norm: float) -> None:
        """A step was left out, because its gradient was no number."""
        self.record("skipped", step, loss=loss, norm=norm)
        self.say(f"step {step:,}: loss {loss}, gradient {norm}: skipped")

    def evaluated(self, step: int, scores: dict[str, float], better: bool) -> None:
        """The validation loss is known, and perhaps another score."""
        self.record("valid", step, **scores)
        if self.board:
            self.board.numbers(step, {f"{name}/valid": score for name, score in scores.items()})
        others = "".join(f"  {name} {score:.4g}" for name, score in scores.items() if name != "loss")
        note = " (best so far)" if better else ""
        self.say(f"step {step:,}: validation {self.loss_in_words(scores['loss'])}{others}{note}")

    def look(self, step: int, model: Model) -> None:
        """Say what the model makes of some examples; every process asks it, since it may be spread over all."""
        assert self.samples is not None
        model.eval()
        with torch.no_grad(), self.machine.autocast(), torch.compiler.set_stance("force_eager"):
            answers = self.samples.answers(model)
            weights = attention_weights(model, self.samples.batch) if self.recipe.train.tensorboard else None
        if self.board and weights is not None:
            self.board.samples(step, answers)
            self.board.attention(step, weights, self.samples)
        for answer in answers:
            self.record("sample", step, **answer)
            self.say(in_lines(answer))

    # --- in words -----------------------------------------------------------------------------------------------------

    @property
    def steps(self) -> int:
        """How many the run is to have."""
        return self.recipe.train.steps

    def loss_in_words(self, loss: float, smoothing: float = 0.0) -> str:
        """A loss, and its perplexity where it is the log-likelihood of words and of nothing else."""
        perplexity = TASKS[self.recipe.data.task].predicts_tokens and not smoothing
        return f"loss {loss:.4f}" + (f"  perplexity {math.exp(min(loss, 20)):,.2f}" if perplexity else "")

    def figures(self) -> str:
        """How the run is doing, on one line."""
        work, memory = self.pace.work, memory_used(self.machine.device)
        pauses = self.pace.pause / self.recipe.train.evaluate_every if self.recipe.train.evaluate_every else 0.0
        parts = [
            self.loss_in_words(self.loss, self.recipe.train.label_smoothing),
            f"{work.tokens:,} tokens/s",
            f"{work.flops / peak_flops(self.machine):.0%} of peak",
            readable(memory, "B") if memory else "",
            f"{readable_time((self.steps - self.now) * (work.seconds + pauses))} left" if self.now < self.steps else "",
        ]
        return "  ".join(part for part in parts if part)

    def picture(self) -> Group:
        """The live display: a bar, and the figures below it."""
        bar = Table.grid(padding=(0, 1))
        bar.add_row(f"step {self.now:,} of {self.steps:,}", ProgressBar(self.steps, self.now, width=40))
        return Group(bar, Text(self.figures() if self.pace.recent else "the first step ...", style="cyan"))


def in_lines(answer: Sample) -> Text:
    """A sample output, a line for each of its parts."""
    width = max(map(len, answer))
    lines = (Text.assemble((f"  {name:<{width}}  ", "dim"), text) for name, text in answer.items())
    return Text("\n").join(lines).append("\n")


def open_metrics(run: Path, step: int) -> TextIO:
    """The metrics.jsonl of a run, open for appending: lines after this step, or cut off, are removed first."""
    path = run / "metrics.jsonl"
    if path.exists():
        rows = [row for row in read_metrics(run) if row["step"] <= step]
        write_file(path, "".join(json_line(row) for row in rows))
    return path.open("a", encoding="utf8")


def json_line(row: Metrics) -> str:
    """One line of metrics.jsonl."""
    return json.dumps(row, ensure_ascii=False) + "\n"
