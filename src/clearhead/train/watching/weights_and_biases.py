"""Weights & Biases: curves and sample outputs, with `train.wandb = true`. `WANDB_MODE=offline` sends nothing."""

from __future__ import annotations

import os
import secrets
from dataclasses import asdict
from pathlib import Path
from types import ModuleType

from clearhead.config import Recipe, UserError
from clearhead.files import write_file
from clearhead.train.watching.samples import Sample


def load_wandb() -> ModuleType:
    """Import Weights & Biases, which takes a second; a missing package is a UserError."""
    try:
        import wandb
    except ImportError as error:
        raise UserError(
            f"train.wandb = true needs a package that is not installed ({error}); "
            "pip install 'clearhead[wandb]', or leave the setting out"
        ) from error
    return wandb


class WandbWriter:
    """Logs a run to Weights & Biases, and writes its folder `wandb`."""

    def __init__(self, run: Path, recipe: Recipe) -> None:
        wandb = load_wandb()
        (run / "wandb").mkdir(exist_ok=True)
        file = run / "wandb" / "id"
        if not file.is_file():
            write_file(file, secrets.token_hex(4))
        try:
            self.run = wandb.init(
                project=os.environ.get("WANDB_PROJECT", "clearhead"),
                name=run.name,
                id=file.read_text(encoding="utf8"),
                resume="allow",  # a resumed run continues its curves
                dir=run,
                config=asdict(recipe),
                settings=wandb.Settings(console="off"),  # the log stays here
            )
        except wandb.Error as error:
            problem = f"train.wandb = true: {str(error).rstrip('.')}"
            raise UserError(f"{problem}; or set WANDB_MODE=offline, which sends nothing") from error
        self.table = wandb.Table

    def scalars(self, step: int, values: dict[str, float]) -> None:
        """Add a point to each curve."""
        self.run.log(values, step=step)

    def samples(self, step: int, samples: list[Sample]) -> None:
        """Add sample outputs as a table."""
        if samples:
            rows = [[*sample.values()] for sample in samples]
            self.run.log({"samples": self.table(columns=[*samples[0]], data=rows)}, step=step)

    def close(self) -> None:
        """Wait until everything is sent."""
        self.run.finish()
