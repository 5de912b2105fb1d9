"""Curves and sample outputs on TensorBoard (`train.tensorboard = true`) and Weights & Biases (`train.wandb = true`)."""

from __future__ import annotations

import importlib
import math
import os
import secrets
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from torch import Tensor

from clearhead.config import Recipe, TrainConfig, UserError
from clearhead.data.batches import IGNORE, Batch
from clearhead.evaluate.image_report import escape_dollars
from clearhead.files import write_file
from clearhead.model import Model
from clearhead.model.block import Block
from clearhead.terminal.colour import visible
from clearhead.text.tokenizer import Tokenizer
from clearhead.train.watching.samples import Sample, Samples

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PACKAGES = {  # setting -> extra, and the modules that it installs
    "tensorboard": ("watch", ("matplotlib.figure", "torch.utils.tensorboard")),
    "wandb": ("wandb", ("wandb",)),
}
TOKEN_INCHES = 0.16  # of an axis for each token, so that its label can be read
MOST_TOKENS = 40  # in an image


def require_packages(config: TrainConfig) -> None:
    """Import the packages that the settings need; a missing one is a UserError, before a run folder is begun."""
    for setting, (extra, modules) in PACKAGES.items():
        try:
            for module in modules if getattr(config, setting) else ():
                importlib.import_module(module)
        except ImportError as error:
            raise UserError(
                f"train.{setting} = true needs a package that is not installed ({error}); "
                f"pip install 'clearhead[{extra}]', or leave the setting out"
            ) from error


class TensorBoardWriter:
    """Writes the folder `tensorboard` of a run."""

    def __init__(self, run: Path, step: int) -> None:
        from torch.utils.tensorboard import SummaryWriter

        # purge_step hides what was written after the step that the run continues from
        self.writer = SummaryWriter(run / "tensorboard", purge_step=step + 1)

    def scalars(self, step: int, values: dict[str, float]) -> None:
        """Add a point to each curve; loss/train and loss/valid are shown together, because of their common prefix."""
        for name, value in values.items():
            self.writer.add_scalar(name, value, step)

    def samples(self, step: int, samples: list[Sample]) -> None:
        """Add sample outputs, each as a table."""
        for number, sample in enumerate(samples, 1):
            rows = [f"| {name} | {text.replace('|', chr(92) + '|')} |" for name, text in sample.items()]
            self.writer.add_text(f"sample {number}", "\n".join(["| | |", "|---|---|", *rows]), step)

    def attention(self, step: int, weights: Tensor, samples: Samples) -> None:
        """Add the attention weights (H, T, S) of the first sample, an image for each head."""
        queries, keys = query_and_key_labels(samples)
        cut = weights[:, : len(queries), : len(keys)].float().cpu()
        self.writer.add_figure("attention", draw_attention(cut, queries, keys), step)
        self.writer.flush()

    def close(self) -> None:
        """Write everything that is still buffered."""
        self.writer.close()


class WandbWriter:
    """Logs a run to Weights & Biases, and writes its folder `wandb`; `WANDB_MODE=offline` sends nothing."""

    def __init__(self, run: Path, recipe: Recipe) -> None:
        import wandb

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


# --- images of attention weights --------------------------------------------------------------------------------------


def attention_weights(model: Model, batch: Batch) -> Tensor:
    """The weights (H, T, S) of the last block for the first row of a batch, of cross-attention if it has one."""
    block: Block = list(model.blocks())[-1]
    attention = block.cross_attention if block.cross else block.attention
    captured: list[Tensor] = []
    hook = attention.weights.register_forward_hook(lambda _, __, weights: captured.append(weights))
    try:
        model(**{name: tensor[:1] for name, tensor in batch.inputs.items()})
    finally:
        hook.remove()
    return captured[0][0]


def query_and_key_labels(samples: Samples) -> tuple[list[str], list[str]]:
    """The tokens of the queries and of the keys, without padding."""
    inputs = samples.batch.inputs
    tokenizers = samples.tokenizers
    if "source" in inputs:
        target = inputs["target"][0][samples.batch.targets[0] != IGNORE]
        source = inputs["source"][0][inputs["source_real"][0]]
        return token_labels(target, tokenizers.target), token_labels(source, tokenizers.source)
    ids = inputs["ids"][0]
    both = token_labels(ids[inputs["real"][0]] if "real" in inputs else ids, tokenizers.target)
    return both, both


def token_labels(ids: Tensor, tokenizer: Tokenizer) -> list[str]:
    """Tokens as labels of an axis."""
    return [visible(tokenizer.piece(number)).strip() for number in ids[:MOST_TOKENS].tolist()]


def draw_attention(weights: Tensor, queries: list[str], keys: list[str]) -> Figure:
    """Attention weights (H, T, S) of all heads, four in a row: a row for each query, a column for each key."""
    from matplotlib.figure import Figure

    heads = len(weights)
    columns = min(4, heads)
    rows = math.ceil(heads / columns)
    width, height = (max(1.6, TOKEN_INCHES * len(tokens)) + 0.8 for tokens in (keys, queries))
    figure = Figure(figsize=(columns * width, rows * height), dpi=100, layout="constrained")
    for head, axes in enumerate(figure.subplots(rows, columns, squeeze=False).flat):
        if head >= heads:
            axes.axis("off")
            continue
        axes.imshow(weights[head].numpy(), cmap="Blues", vmin=0, vmax=1, aspect="auto")
        axes.set_title(f"head {head}", fontsize=9)
        axes.set_xticks(range(len(keys)), map(escape_dollars, keys), rotation=90, fontsize=7)
        axes.set_yticks(range(len(queries)), map(escape_dollars, queries), fontsize=7)
        axes.tick_params(length=0)
    return figure
