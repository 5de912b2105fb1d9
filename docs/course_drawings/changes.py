"""Pictures of what is left of a model's translations when its weights or heads are changed."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from course_drawings.shared import Result
from small import BLUE, panels, table
from torch import Tensor

from clearhead.inspect.patch import knock_out
from clearhead.library import Loaded

SENTENCES = 200  # that are translated for every head that is switched off


def exact_translations(model: Loaded) -> Callable[[], float]:
    """A function that measures how many validation sentences are translated exactly, in percent."""
    from clearhead.data.sources import open_corpus

    pairs = list(open_corpus(model.run.recipe.data).read("valid"))[:SENTENCES]
    sources = [pair.source for pair in pairs]
    targets = [pair.target for pair in pairs]

    def exact() -> float:
        found = model.translate(sources, beam=1)
        return 100 * sum(a == b for a, b in zip(found, targets, strict=True)) / len(targets)

    return exact


def rounded(model: Loaded) -> Result:
    """The share of exact translations with weights of fewer and fewer bits, one scale for each row of a matrix."""
    exact = exact_translations(model)
    results = {32: exact()}
    for bits in (8, 6, 5, 4, 3):
        with model.patch({"*.weight": lambda weight, bits=bits: round_rows(weight, bits)}):
            results[bits] = exact()
    figure, (axis,) = panels(1, 5)
    axis.bar([str(bits) for bits in results], list(results.values()), color=BLUE)
    axis.set(title="exact translations of the demo (%)", xlabel="bits of each weight", ylim=(0, 104))
    rows = [[str(bits), f"{2**bits - 1:,}" if bits < 32 else "", f"{value:.1f} %"] for bits, value in results.items()]
    return figure, table(["bits", "values", "exact translations"], rows)


def round_rows(weight: Tensor, bits: int) -> Tensor:
    """A matrix whose rows have 2^bits - 1 different values each; vectors stay as they are."""
    if weight.dim() != 2:
        return weight
    scale = weight.abs().amax(dim=1, keepdim=True).clamp(min=1e-12) / (2 ** (bits - 1) - 1)
    return (weight / scale).round() * scale


def knocked_out(model: Loaded) -> Result:
    """The share of exact translations when one head is switched off, for every head."""
    exact = exact_translations(model)
    whole = exact()
    config = model.run.recipe.model
    parts = {
        "encoder self-attention": "encoder.blocks.{}.attention",
        "decoder self-attention": "decoder.blocks.{}.attention",
        "cross-attention": "decoder.blocks.{}.cross_attention",
    }
    figure, axes = panels(3, 3.4, 2.6)
    rows = []
    worst: tuple[float, str, dict[str, Any]] = (math.inf, "", {})
    for axis, (title, pattern) in zip(axes, parts.items(), strict=True):
        scores = torch.zeros(config.layers, config.heads)
        for layer in range(config.layers):
            for head in range(config.heads):
                off = {f"{pattern.format(layer)}.head_outputs": knock_out(head=head)}
                with model.patch(off):
                    scores[layer, head] = exact()
                worst = min(worst, (float(scores[layer, head]), f"{title}, block {layer}, head {head}", off))
            rows.append([f"{title}, block {layer}", *(f"{value:.0f} %" for value in scores[layer].tolist())])
        axis.imshow(scores, cmap="Oranges_r", vmin=0, vmax=100, aspect="auto")
        axis.set_title(title, fontsize=9)
        axis.set_xticks(range(config.heads), [f"head {n}" for n in range(config.heads)], fontsize=8)
        axis.set_yticks(range(config.layers), [f"block {n}" for n in range(config.layers)], fontsize=8)
        for layer in range(config.layers):
            for head in range(config.heads):
                axis.text(head, layer, f"{scores[layer, head]:.0f}", ha="center", va="center", fontsize=9)
    figure.suptitle(f"exact translations in %, with one head switched off (with all heads: {whole:.0f})", fontsize=10)
    text = table(["switched off", *(f"head {n}" for n in range(config.heads))], rows)
    with model.patch(worst[2]):
        written = model.translate("the red car is fast", beam=1)
    note = f'Without {worst[1]}, "the red car is fast" becomes "{written}".'
    return figure, f"{text}\n\nWith all heads {whole:.1f} %, on {SENTENCES} validation sentences, greedy. {note}"
