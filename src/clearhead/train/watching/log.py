"""The log of a run: progress on the terminal, numbers in metrics.jsonl, and if asked for on TensorBoard or the like."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import torch
from rich.console import Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from clearhead.config import Recipe, UserError
from clearhead.device import Machine
from clearhead.files import Metrics, problem_of, read_metrics, write_file
from clearhead.model import Model
from clearhead.tasks import TASKS
from clearhead.terminal.console import plain_console
from clearhead.train.cost import readable, readable_time
from clearhead.train.step import StepResult
from clearhead.train.watching.dashboards import TensorBoardWriter, WandbWriter, attention_weights, require_packages
from clearhead.train.watching.samples import Sample, Samples
from clearhead.train.watching.speed import Throughput, peak_flops, peak_memory, tokens_read, training_flops

LINES_EVERY = 10.0  # seconds between two progress lines when stderr is not a terminal
LARGEST_LOSS = 20  # above it, no perplexity is shown
SMOOTH = 0.95  # decay of the moving average of the displayed loss


class Log:
    """Reports a run: progress to stderr, all numbers to metrics.jsonl in the run folder (if there is one)."""

    def __init__(
        self,
        run: Path | None,
        recipe: Recipe,
        machine: Machine,
        step: int,  # that the run continues from
        samples: Samples | None = None,  # validation examples to show at each evaluation
        quiet: bool = False,
    ) -> None:
        self.console = plain_console(stderr=True, quiet=quiet)
        self.quiet = quiet
        self.recipe = recipe
        self.machine = machine
        self.samples = samples
        require_packages(recipe.train)
        self.metrics = open_metrics(run, step) if run else None
        self.tensorboard = TensorBoardWriter(run, step) if run and recipe.train.tensorboard else None
        self.writers: list[TensorBoardWriter | WandbWriter] = [self.tensorboard] if self.tensorboard else []
        if run and recipe.train.wandb:
            self.writers.append(WandbWriter(run, recipe))
        self.current_step = step
        self.loss = math.nan  # smoothed
        self.throughput = Throughput()
        self.last_line = time.monotonic()
        self.live = Live(console=self.console, get_renderable=self.render, refresh_per_second=4)
        self.on_terminal = sys.stderr.isatty() and not quiet

    def __enter__(self) -> Log:
        if not self.quiet:
            peak_flops(self.machine)  # may have to be measured: not during a step that is timed
        if self.on_terminal:
            self.live.start()
        self.restart_clock()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.live.stop()
        if self.metrics:
            with writing_metrics(raised=kind is not None):
                self.metrics.close()
        for writer in self.writers:
            writer.close()

    def say(self, text: str | Text) -> None:
        """Print a line without wrapping it, because programs read it, too."""
        self.console.print(text, soft_wrap=True)

    def write_entry(self, kind: str, step: int, **values: float | str) -> None:
        """Write an entry to metrics.jsonl; infinity and NaN become null, because JSON has neither."""
        if self.metrics:
            clean = {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in values.items()}
            with writing_metrics():
                self.metrics.write(json_line({"kind": kind, "step": step, **clean}))
                self.metrics.flush()

    def restart_clock(self) -> None:
        """Exclude the time since the last step, spent on evaluating and saving, from the throughput."""
        self.throughput.restart()

    def step(self, result: StepResult) -> None:
        """Report an optimiser step; its batches are those of this process, its targets those of all."""
        (step, rate, tokens, batches), loss, norm = result
        read = sum(tokens_read(TASKS[self.recipe.data.task], batch) for batch in batches)
        own = sum(batch.tokens for batch in batches)
        flops = self.recipe.train.passes * sum(training_flops(self.recipe.model, batch) for batch in batches)
        self.throughput.step(round(read * tokens / max(1, own)), flops)
        self.current_step = step
        self.loss = loss if math.isnan(self.loss) else SMOOTH * self.loss + (1 - SMOOTH) * loss
        speed = self.throughput.tokens_per_second
        self.write_entry("train", step, loss=loss, rate=rate, norm=norm, tokens=tokens, speed=speed)
        for writer in self.writers:
            values = {"loss/train": loss, "learning rate": rate, "gradient norm": norm, "tokens per second": speed}
            writer.scalars(step, values)
        due = time.monotonic() - self.last_line >= LINES_EVERY or step == self.steps
        if due and not self.on_terminal and not self.quiet:
            self.say(f"step {step:,} of {self.steps:,}  {self.status()}")
            self.last_line = time.monotonic()

    def skipped(self, step: int, loss: float, norm: float) -> None:
        """Report a step without an update, because its loss or gradient was not finite."""
        self.write_entry("skipped", step, loss=loss, norm=norm)
        self.say(f"step {step:,}: loss {loss}, gradient norm {norm}: skipped")

    def evaluated(self, step: int, scores: dict[str, float], better: bool) -> None:
        """Report an evaluation: the validation loss, and another score if `train.best_by` names one."""
        self.write_entry("valid", step, **scores)
        for writer in self.writers:
            writer.scalars(step, {f"{name}/valid": score for name, score in scores.items()})
        others = "".join(f"  {name} {score:.4g}" for name, score in scores.items() if name != "loss")
        note = " (best so far)" if better else ""
        self.say(f"step {step:,}: validation {self.describe_loss(scores['loss'])}{others}{note}")

    def show_samples(self, step: int, model: Model) -> None:
        """Show the model's outputs for some validation examples; every process must call it: FSDP shards the model."""
        if self.samples is None:
            return
        model.eval()
        with torch.no_grad(), self.machine.autocast(), torch.compiler.set_stance("force_eager"):
            outputs = self.samples.outputs(model)
            weights = attention_weights(model, self.samples.batch) if self.recipe.train.tensorboard else None
        for writer in self.writers:
            writer.samples(step, outputs)
        if self.tensorboard and weights is not None:
            self.tensorboard.attention(step, weights, self.samples)
        for output in outputs:
            self.write_entry("sample", step, **output)
            self.say(format_sample(output))

    # --- progress as text ---------------------------------------------------------------------------------------------

    @property
    def steps(self) -> int:
        """The steps of the whole run."""
        return self.recipe.train.steps

    def describe_loss(self, loss: float, other: float = 0.0) -> str:
        """A loss as text, with its perplexity if it is the negative log-likelihood of tokens and nothing `other`."""
        perplexity = TASKS[self.recipe.data.task].predicts_tokens and not other and loss < LARGEST_LOSS
        return f"loss {loss:.4f}" + (f"  perplexity {math.exp(loss):,.2f}" if perplexity else "")

    def status(self) -> str:
        """Loss, throughput, memory and remaining time, on one line."""
        memory = peak_memory(self.machine.device)
        parts = [
            self.describe_loss(self.loss, self.recipe.train.label_smoothing + self.recipe.train.r_drop),
            f"{self.throughput.tokens_per_second:,} tokens/s",
            f"{self.throughput.flops_per_second / peak_flops(self.machine):.0%} of peak",
            readable(memory, "B") if memory else "",
            f"{readable_time(self.seconds_left())} left" if self.current_step < self.steps else "",
        ]
        return "  ".join(part for part in parts if part)

    def seconds_left(self) -> float:
        """An estimate for the steps that are left and their evaluations."""
        every = self.recipe.train.evaluate_every
        pause_per_step = self.throughput.pause / every if every else 0.0
        return (self.steps - self.current_step) * (self.throughput.seconds_per_step + pause_per_step)

    def render(self) -> Group:
        """The live display: a progress bar, and the status below it."""
        bar = Table.grid(padding=(0, 1))
        done = ProgressBar(self.steps, self.current_step, width=40)
        bar.add_row(f"step {self.current_step:,} of {self.steps:,}", done)
        return Group(bar, Text(self.status() if self.throughput.recent else "the first step ...", style="cyan"))


def format_sample(sample: Sample) -> Text:
    """A sample with one line for each of its texts."""
    width = max(map(len, sample))
    lines = (Text.assemble((f"  {name:<{width}}  ", "dim"), text) for name, text in sample.items())
    return Text("\n").join(lines).append("\n")


def open_metrics(run: Path, step: int) -> TextIO:
    """The metrics.jsonl of a run, open for appending: lines after this step, or cut off, are removed first."""
    path = run / "metrics.jsonl"
    if path.exists():
        rows = [row for row in read_metrics(run) if row["step"] <= step]
        write_file(path, "".join(json_line(row) for row in rows))
    with writing_metrics():
        return path.open("a", encoding="utf8")


@contextmanager
def writing_metrics(raised: bool = False) -> Iterator[None]:
    """Turn an error of writing metrics.jsonl into a UserError; ignore it if another error has been raised already."""
    try:
        yield
    except OSError as error:
        if not raised:
            problem = f"cannot write metrics.jsonl: {problem_of(error)}"
            raise UserError(f"{problem}; solve this, and continue with --resume") from error


def json_line(row: Metrics) -> str:
    """One line of metrics.jsonl."""
    return json.dumps(row, ensure_ascii=False) + "\n"
