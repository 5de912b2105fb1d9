"""A run as programs: modules with tensors as inputs and outputs only, for any batch size and any length.

| family          | programs                                                                                           |
|-----------------|----------------------------------------------------------------------------------------------------|
| encoder-decoder | `encoder`: the source to the keys and values of cross-attention; `decoder`: one decode step        |
| decoder-only    | `decoder`: one decode step, or a whole prompt after an empty cache                                 |
| encoder-only    | `model`: token ids to the logits of tokens or classes, or to sentence vectors of length 1          |

Shapes: L layers, B batch, T new tokens, P tokens in the cache, S source tokens, G key/value heads, K head size,
V vocabulary.
"""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram

from clearhead.decode.limits import tokens_left
from clearhead.decode.translate import EXTRA_TOKENS
from clearhead.files import new_folder, write_file
from clearhead.model import DecoderOnly, EncoderDecoder, EncoderOnly, Model
from clearhead.model.block import Visibility
from clearhead.model.cache import past_mask
from clearhead.model.stack import padding_mask
from clearhead.runs import Run, open_run

LARGEST_AXIS = 2**16 - 1  # rows of a batch, and tokens of a sequence


@dataclass(frozen=True)
class Program:
    """A module, the example inputs it is exported with, and the names of inputs and outputs."""

    name: str
    module: nn.Module
    inputs: dict[str, Tensor]
    axes: dict[str, dict[int, str]]  # the dynamic axes of each input, with the name of the size
    outputs: tuple[str, ...]
    longest: int = LARGEST_AXIS  # tokens of a sequence; fewer if positions are learned

    def exported(self) -> ExportedProgram:
        """Export the module with dynamic shapes; axes of the same name have the same size in all inputs."""
        least = {"batch": 1, "length": 1, "past": 0, "source": 1}
        most = {name: LARGEST_AXIS if name == "batch" else self.longest for name in least}
        sizes = {name: Dim(name, min=least[name], max=most[name]) for name in least}
        shapes = {name: {axis: sizes[size] for axis, size in axes.items()} for name, axes in self.axes.items()}
        with quiet():
            return torch.export.export(self.module, (), self.inputs, dynamic_shapes=shapes)


@contextmanager
def quiet() -> Iterator[None]:
    """Silence warnings and logs about the internals of exporters."""
    disabled = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(disabled)


class GivenCache:
    """The keys and values of one attention layer as inputs of a program; `append` makes new tensors."""

    def __init__(self, keys: Tensor, values: Tensor) -> None:
        self.length = 1  # as a truth value: there may be some
        self.store = [keys, values]

    def append(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Add (B, G, T, K) new keys and values; return all (B, G, P + T, K), oldest first."""
        self.store = [torch.cat([old, new], dim=2) for old, new in zip(self.store, (keys, values), strict=True)]
        return self.read()

    def read(self) -> tuple[Tensor, Tensor]:
        """Return all keys and values so far."""
        keys, values = self.store
        return keys, values


class EncoderProgram(nn.Module):
    """The encoder, and the keys and values that each layer of the decoder computes from its output."""

    def __init__(self, model: EncoderDecoder) -> None:
        super().__init__()
        self.model = model

    def forward(self, source: Tensor, source_real: Tensor) -> tuple[Tensor, Tensor]:
        """(B, S) ids, and where they are real -> (L, B, G, S, K) keys and values of cross-attention."""
        memory = self.model.encode(source, source_real)
        attentions = [block.cross_attention for block in self.model.blocks() if block.cross]
        keys, values = zip(*(each.keys_and_values(memory, None, None) for each in attentions), strict=True)
        return torch.stack(keys), torch.stack(values)


class DecoderProgram(nn.Module):
    """One decode step: new tokens after those in the cache."""

    def __init__(self, model: EncoderDecoder | DecoderOnly) -> None:
        super().__init__()
        self.model = model

    def forward(
        self,
        ids: Tensor,  # (B, T)
        padding: Tensor,  # (B,) how many tokens at the left of each row are padding, those in the cache included
        keys: Tensor,  # (L, B, G, P, K) of self-attention
        values: Tensor,
        source_real: Tensor | None = None,  # (B, S)
        source_keys: Tensor | None = None,  # (L, B, G, S, K) of cross-attention
        source_values: Tensor | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the logits (B, V) of the next token, and (L, B, G, P + T, K) keys and values."""
        slots = torch.arange(keys.size(3) + ids.size(1), device=ids.device)  # (P + T,)
        new = slots[keys.size(3) :]  # (T,)
        seen = past_mask(slots >= padding[:, None], new, self.model.config.window)  # (B, 1, T, P + T)
        mask = seen | (slots == new[:, None])  # padding attends to itself: a softmax over nothing is NaN
        caches = [GivenCache(*layer) for layer in zip(keys, values, strict=True)]
        cross: list[GivenCache | None] = [None] * len(caches)
        if source_keys is not None and source_values is not None:
            cross = [GivenCache(*layer) for layer in zip(source_keys, source_values, strict=True)]
        # The encoder's output itself is not read, since its keys and values are given.
        visibility = Visibility(mask, memory=source_real, memory_mask=padding_mask(source_real))
        positions = (new - padding[:, None]).clamp(min=0)
        x = self.model.decoder(ids, visibility, positions, caches=list(zip(caches, cross, strict=True)))
        all_keys, all_values = zip(*(cache.read() for cache in caches), strict=True)
        return self.model.head(x[:, -1]), torch.stack(all_keys), torch.stack(all_values)


class EncoderOnlyProgram(nn.Module):
    """The whole encoder, with its pooling; sentence vectors have length 1, as those of `clearhead embed`."""

    def __init__(self, model: EncoderOnly) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: Tensor, real: Tensor) -> Tensor:
        """(B, T) ids, and where they are real -> (B, T, V), (B, C) or (B, D)."""
        output = self.model(ids, real)
        return F.normalize(output, dim=-1) if self.model.config.head == "embedding" else output


def programs_of(model: Model) -> list[Program]:
    """The programs of a model, in the order in which they are used."""
    longest = model.config.position_limit or LARGEST_AXIS
    if isinstance(model, EncoderOnly):
        inputs = {"ids": torch.ones(2, 5, dtype=torch.long), "real": torch.ones(2, 5, dtype=torch.bool)}
        axes = {name: {0: "batch", 1: "length"} for name in inputs}
        output = "vector" if model.config.head == "embedding" else "logits"
        return [Program("model", EncoderOnlyProgram(model), inputs, axes, (output,), longest)]
    decoder = decoder_program(model)
    if isinstance(model, DecoderOnly):
        return [decoder]
    inputs = {"source": torch.ones(2, 5, dtype=torch.long), "source_real": torch.ones(2, 5, dtype=torch.bool)}
    axes = {name: {0: "batch", 1: "source"} for name in inputs}
    return [Program("encoder", EncoderProgram(model), inputs, axes, ("source_keys", "source_values"), longest), decoder]


def decoder_program(model: EncoderDecoder | DecoderOnly) -> Program:
    """The decode step of a model; the example has 3 new tokens and 4 in the cache."""
    config = model.config
    longest = config.position_limit or LARGEST_AXIS
    cache = torch.zeros(config.layers, 2, config.kv_heads or config.heads, 4, config.head_size)
    inputs = {"ids": torch.ones(2, 3, dtype=torch.long), "padding": torch.zeros(2, dtype=torch.long)}
    inputs |= {"keys": cache, "values": cache.clone()}
    axes = {"ids": {0: "batch", 1: "length"}, "padding": {0: "batch"}}
    axes |= {name: {1: "batch", 3: "past"} for name in ("keys", "values")}
    if isinstance(model, EncoderDecoder):
        source_keys = torch.zeros(config.layers, 2, config.kv_heads or config.heads, 5, config.head_size)
        inputs |= {"source_real": torch.ones(2, 5, dtype=torch.bool)}
        inputs |= {"source_keys": source_keys, "source_values": source_keys.clone()}
        axes |= {"source_real": {0: "batch", 1: "source"}}
        axes |= {name: {1: "batch", 3: "source"} for name in ("source_keys", "source_values")}
    return Program("decoder", DecoderProgram(model), inputs, axes, ("logits", "new_keys", "new_values"), longest)


# --- folders ----------------------------------------------------------------------------------------------------------


def write_programs(run_folder: Path, folder: Path, write: Callable[[Program, Path], None]) -> None:
    """Write each program of a run into a new folder by `write(program, folder)`, with tokenizers and settings."""
    run = open_run(run_folder)
    with new_folder(folder) as hidden:
        for program in programs_of(run.model):
            write(program, hidden)
        write_tokenizers(run, hidden)
        write_file(hidden / "settings.json", json.dumps(settings_of(run), ensure_ascii=False, indent=1))


def write_tokenizers(run: Run, folder: Path) -> None:
    """Write the tokenizer, or those of source and target, two files even if they are the same."""
    if run.recipe.model.family == "encoder-decoder":
        run.tokenizers.source.save(folder / "tokenizer.source.json")
        run.tokenizers.target.save(folder / "tokenizer.target.json")
    else:
        run.tokenizers.target.save(folder / "tokenizer.json")


def settings_of(run: Run) -> dict[str, Any]:
    """What a user of the programs needs: ids of special tokens, limits, and labels."""
    tokenizer = run.tokenizers.target
    settings = {"task": run.recipe.data.task, "start": tokenizer.start, "end": tokenizer.end, "pad": tokenizer.pad}
    settings |= {"max_length": run.recipe.data.max_length}
    if run.recipe.model.family == "encoder-decoder":
        source = run.tokenizers.source
        settings |= {"source_end": source.end, "source_pad": source.pad}
        settings |= {"max_tokens": min(tokens_left(run.recipe.model, 1), LARGEST_AXIS), "extra_tokens": EXTRA_TOKENS}
    return settings | ({"labels": list(run.labels)} if run.labels else {})
