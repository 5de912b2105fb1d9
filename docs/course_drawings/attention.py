"""Pictures of attention: scores, weights, masks, heads, and who sees whom in each family."""

from __future__ import annotations

import torch
from course_drawings.shared import CAR, Result, grid, names, text_grid
from matplotlib import pyplot as plt
from small import panels
from torch import Tensor

from clearhead.library import Loaded
from clearhead.model.attention import causal_mask


def attention(model: Loaded) -> Result:
    """One head of the encoder on "the car is red": queries, keys, scores, weights."""
    seen = model.trace(CAR)
    tokens = names(seen.tokens["source"])
    layer, head = clearest_head(seen["encoder.blocks.0.attention.weights"], seen["encoder.blocks.1.attention.weights"])
    inside = f"encoder.blocks.{layer}.attention"
    scores = seen[f"{inside}.scores"][0, head]
    weights = seen[f"{inside}.weights"][0, head]
    figure, axes = panels(2, 3.6, 3.2)
    axes[0].imshow(scores, cmap="RdBu", vmin=-scores.abs().max(), vmax=scores.abs().max(), aspect="auto")
    axes[0].set_xticks(range(len(tokens)), tokens, rotation=60, ha="right", fontsize=8)
    axes[0].set_yticks(range(len(tokens)), tokens, fontsize=8)
    axes[0].set_title("scores: q · k / √d_k (blue: above 0)", fontsize=9)
    grid(axes[1], weights, tokens, tokens, "weights: softmax of each row, in %")
    where = f"Encoder, block {layer}, head {head}, of the demo's translator. Rows are queries, columns keys."
    text = f"scores\n{text_grid(scores, tokens, tokens)}\n\nweights\n{text_grid(weights, tokens, tokens)}\n\n{where}"
    return figure, text


def clearest_head(*weights: Tensor) -> tuple[int, int]:
    """The layer and head that attends most sharply to other tokens than a token itself."""
    best = (0.0, 0, 0)
    for layer, each in enumerate(weights):
        for head, matrix in enumerate(each[0]):
            off = matrix - torch.diag(torch.diag(matrix))
            best = max(best, (float(off.amax(-1).mean()), layer, head))
    return best[1], best[2]


def masks(_model: Loaded) -> Result:
    """The masks of the three kinds of attention."""
    rows = ["<start>", "la", "voiture", "est", "rouge"]
    padded = torch.tensor([True, True, True, True, False, False])
    figure, axes = panels(3, 2.6, 2.5)
    grid(axes[0], causal_mask(5, torch.device("cpu")).float(), rows, rows, "decoder: causal")
    source = ["the", "car", "is", "red", "<pad>", "<pad>"]
    grid(axes[1], padded.expand(6, 6).float(), source, source, "encoder: real tokens")
    grid(axes[2], padded.expand(5, 6).float(), rows, source, "cross-attention")
    for axis in axes:
        for label in axis.texts:
            label.set_text("yes" if label.get_text() == "100" else "no")
    return figure, "yes: this query (row) may attend to this key (column)"


def heads(model: Loaded) -> Result:
    """All heads of the encoder for one sentence."""
    seen = model.trace("the red car is fast")
    tokens = names(seen.tokens["source"])
    layers = model.run.recipe.model.encoder_layers or model.run.recipe.model.layers
    count = model.run.recipe.model.heads
    figure, axes = plt.subplots(layers, count, figsize=(2.0 * count, 2.1 * layers), layout="constrained", squeeze=False)
    lines = []
    for layer in range(layers):
        weights = seen[f"encoder.blocks.{layer}.attention.weights"][0]
        for head in range(count):
            grid(axes[layer, head], weights[head], tokens, tokens, f"block {layer}, head {head}")
            strongest = weights[head].argmax(-1).tolist()
            found = ", ".join(f"{tokens[i]} → {tokens[j]}" for i, j in enumerate(strongest))
            lines.append(f"block {layer}, head {head}: {found}")
    return figure, "\n".join(lines)


def cross_attention(model: Loaded) -> Result:
    """Which source words the decoder attends to as it writes."""
    seen = model.trace("the red car is fast")
    source = names(seen.tokens["source"])
    target = names(seen.tokens["target"])
    best = aligned_head(
        seen["decoder.blocks.0.cross_attention.weights"], seen["decoder.blocks.1.cross_attention.weights"]
    )
    layer, head = best
    weights = seen[f"decoder.blocks.{layer}.cross_attention.weights"][0, head]
    figure, (axis,) = panels(1, 4.6, 3.6)
    grid(axis, weights, target, source, f"decoder block {layer}, head {head}: weights in %")
    axis.set(ylabel="read so far", xlabel="source")
    return figure, f"{text_grid(weights, target, source)}\n\nDecoder, block {layer}, head {head}."


def aligned_head(*weights: Tensor) -> tuple[int, int]:
    """The layer and head of cross-attention with the sharpest rows."""
    sharp = [(float(each[0, head].amax(-1).mean()), layer, head)
             for layer, each in enumerate(weights) for head in range(each.size(1))]  # fmt: skip
    _, layer, head = max(sharp)
    return layer, head


def families(_model: Loaded) -> Result:
    """Who sees whom in the three families."""
    source, target = list("abcd"), list("wxyz")
    figure, axes = panels(3, 2.6, 2.6)
    both = torch.zeros(8, 8)
    both[:4, :4] = 1
    both[4:, :4] = 1
    both[4:, 4:] = torch.ones(4, 4).tril()
    grid(axes[0], both, source + target, source + target, "encoder-decoder")
    grid(axes[1], torch.ones(8, 8).tril(), list("abcdefgh"), list("abcdefgh"), "decoder-only")
    grid(axes[2], torch.ones(8, 8), list("abcdefgh"), list("abcdefgh"), "encoder-only")
    for axis in axes:
        for label in axis.texts:
            label.set_text("")
    return figure, "dark: the token of the row sees the token of the column"
