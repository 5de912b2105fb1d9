"""Seeing a run: a live line on a terminal, plain lines elsewhere, and everything in metrics.jsonl."""

from __future__ import annotations

import json
import math
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

LINES_EVERY = 10.0  # seconds between two lines, when nobody watches a terminal
SMOOTH = 0.95  # of the loss that is shown


class Log:
    """What a run says while it learns: progress to stderr, all numbers to metrics.jsonl."""

    def __init__(self, run: Path, steps: int, step: int, quiet: bool = False) -> None:
        self.console = Console(stderr=True, quiet=quiet, highlight=False)
        self.live = sys.stderr.isatty() and not quiet
        self.metrics = (run / "metrics.jsonl").open("a", encoding="utf8")
        self.steps, self.loss = steps, math.nan
        self.tokens, self.since, self.last_line = 0, time.monotonic(), time.monotonic()
        columns = (
            TextColumn("step"),
            MofNCompleteColumn(),
            BarColumn(20),
            TextColumn("{task.description}"),
            TimeRemainingColumn(),
        )
        self.progress = Progress(*columns, console=self.console, disable=not self.live)
        self.bar = self.progress.add_task("", total=steps, completed=step)

    def __enter__(self) -> Log:
        self.progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.progress.stop()
        self.metrics.close()

    def say(self, text: Any) -> None:
        """A line for people."""
        self.console.print(text)

    def record(self, kind: str, step: int, **values: float) -> None:
        """A line for programs."""
        self.metrics.write(json.dumps({"kind": kind, "step": step, **values}) + "\n")
        self.metrics.flush()

    def step(self, step: int, loss: float, rate: float, norm: float, tokens: int) -> None:
        """One optimiser step is done."""
        self.loss = loss if math.isnan(self.loss) else SMOOTH * self.loss + (1 - SMOOTH) * loss
        self.tokens += tokens
        now = time.monotonic()
        speed = self.tokens / max(1e-9, now - self.since)
        self.record("train", step, loss=loss, rate=rate, norm=norm, tokens=tokens)
        text = f"loss {self.loss:.3f}  perplexity {math.exp(min(self.loss, 20)):,.1f}  {speed:,.0f} tokens/s"
        if self.live:
            self.progress.update(self.bar, completed=step, description=text)
        elif now - self.last_line >= LINES_EVERY or step == self.steps:
            self.say(f"step {step:,} of {self.steps:,}  {text}")
            self.last_line = now
