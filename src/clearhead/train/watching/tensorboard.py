"""TensorBoard: numbers, sample outputs and pictures of attention, with `train.tensorboard = true`."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from torch import Tensor

from clearhead.config import UserError
from clearhead.data.batches import IGNORE, Batch
from clearhead.model.block import Block
from clearhead.terminal.colour import visible
from clearhead.text.tokenizer import Tokenizer
from clearhead.train.watching.samples import Model, Sample, Samples

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TOKEN = 0.16  # inches of an axis for one token, so that its name can be read
MOST_TOKENS = 40  # of a picture


class Board:
    """What TensorBoard shows of a run: the files in its folder `tensorboard`."""

    def __init__(self, run: Path, step: int) -> None:
        try:  # a second, paid by those who look
            import matplotlib.figure  # noqa: F401
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise UserError(
                f"train.tensorboard = true needs a package that is not there ({error}); "
                "pip install 'clearhead[watch]', or leave the setting out"
            ) from error
        # what a run wrote after the step it now goes on from is hidden
        self.writer = SummaryWriter(run / "tensorboard", purge_step=step + 1)

    def numbers(self, step: int, values: dict[str, float]) -> None:
        """A point of each curve; those whose names begin alike, as loss/train and loss/valid, are shown together."""
        for name, value in values.items():
            self.writer.add_scalar(name, value, step)

    def samples(self, step: int, samples: list[Sample]) -> None:
        """Sample outputs, each as a table."""
        for number, sample in enumerate(samples, 1):
            rows = [f"| {name} | {text.replace('|', chr(92) + '|')} |" for name, text in sample.items()]
            self.writer.add_text(f"sample {number}", "\n".join(["| | |", "|---|---|", *rows]), step)

    def attention(self, step: int, weights: Tensor, samples: Samples) -> None:
        """Who looks at whom (H, T, S) in the first sample, a picture for each head."""
        queries, keys = token_names(samples)
        cut = weights[:, : len(queries), : len(keys)].float().cpu()
        self.writer.add_figure("attention", figure_of(cut, queries, keys), step)
        self.writer.flush()

    def close(self) -> None:
        """Write what is left."""
        self.writer.close()


def attention_weights(model: Model, batch: Batch) -> Tensor:
    """What the last block's `weights` tap sees for the first row of a batch: (H, T, S); of cross-attention if any."""
    block: Block = list(model.blocks())[-1]
    attention = block.cross_attention if block.cross else block.attention
    seen: list[Tensor] = []
    hook = attention.weights.register_forward_hook(lambda _, __, weights: seen.append(weights))
    try:
        model(**{name: tensor[:1] for name, tensor in batch.inputs.items()})
    finally:
        hook.remove()
    return seen[0][0]


def token_names(samples: Samples) -> tuple[list[str], list[str]]:
    """The tokens that ask and the tokens that answer, without padding."""
    inputs, tokenizers = samples.batch.inputs, samples.tokenizers
    if "source" in inputs:
        target = inputs["target"][0][samples.batch.targets[0] != IGNORE]
        source = inputs["source"][0][inputs["source_real"][0]]
        return names(target, tokenizers.target), names(source, tokenizers.source)
    ids = inputs["ids"][0]
    both = names(ids[inputs["real"][0]] if "real" in inputs else ids, tokenizers.target)
    return both, both


def names(ids: Tensor, tokenizer: Tokenizer) -> list[str]:
    """Tokens as they can be read along an axis."""
    return [visible(tokenizer.piece(number)).strip() for number in ids[:MOST_TOKENS].tolist()]


def figure_of(weights: Tensor, queries: list[str], keys: list[str]) -> Figure:
    """Heads side by side, four in a row: rows ask, columns answer, dark is much."""
    from matplotlib.figure import Figure

    heads, columns = len(weights), min(4, len(weights))
    rows = math.ceil(heads / columns)
    width, height = (max(1.6, TOKEN * len(tokens)) + 0.8 for tokens in (keys, queries))
    figure = Figure(figsize=(columns * width, rows * height), dpi=100, layout="constrained")
    for head, place in enumerate(figure.subplots(rows, columns, squeeze=False).flat):
        if head >= heads:
            place.axis("off")
            continue
        place.imshow(weights[head].numpy(), cmap="Blues", vmin=0, vmax=1, aspect="auto")
        place.set_title(f"head {head}", fontsize=9)
        place.set_xticks(range(len(keys)), escaped(keys), rotation=90, fontsize=7)
        place.set_yticks(range(len(queries)), escaped(queries), fontsize=7)
        place.tick_params(length=0)
    return figure


def escaped(tokens: list[str]) -> list[str]:
    """Tokens with dollar signs that are dollar signs: two of them would begin a formula."""
    return [token.replace("$", r"\$") for token in tokens]
