"""Pictures of the other parts of a block: the residual stream, the norms, the neurons."""

from __future__ import annotations

from course_drawings.shared import CAR, MAT, Result, names
from small import BLUE, ORANGE, panels, table
from torch import Tensor

from clearhead.library import Loaded


def stream(model: Loaded) -> Result:
    """The size of the residual stream and of what each sublayer adds to it."""
    seen = model.trace(CAR)
    labels, sizes, added = ["embedding"], [norm(seen["encoder.sum"])], [0.0]
    for layer in range(model.run.recipe.model.encoder_layers or model.run.recipe.model.layers):
        for part in ("attention", "feed_forward"):
            name = f"encoder.blocks.{layer}.{part}"
            labels.append(f"{part.replace('_', '-')} {layer}")
            sizes.append(norm(seen[f"{name}_add_norm"]))
            added.append(norm(seen[name]))
    figure, (axis,) = panels(1, 6)
    axis.bar([i - 0.2 for i in range(len(labels))], sizes, 0.4, color=BLUE, label="the stream after it")
    axis.bar([i + 0.2 for i in range(len(labels))], added, 0.4, color=ORANGE, label="what it added")
    axis.set_xticks(range(len(labels)), labels, rotation=25, ha="right")
    axis.set_title('length of the vectors, mean over "the car is red"')
    axis.legend(frameon=False)
    rows = [[n, f"{a:.1f}" if a else "", f"{s:.1f}"] for n, a, s in zip(labels, added, sizes, strict=True)]
    return figure, table(["after", "length of what was added", "length of the stream"], rows)


def norm(x: Tensor) -> float:
    """The mean length of the vectors of all tokens."""
    return float(x[0].norm(dim=-1).mean())


def layer_norm(model: Loaded) -> Result:
    """The channels of each token before and after a norm."""
    seen = model.trace(CAR)
    tokens = names(seen.tokens["source"])
    last = (model.run.recipe.model.encoder_layers or model.run.recipe.model.layers) - 1
    before = seen[f"encoder.blocks.{last}.feed_forward_add_norm"][0]
    after = seen["encoder.norm.normalized"][0]
    figure, axes = panels(2, 4.2)
    axes[0].sharey(axes[1])
    for axis, values, title in ((axes[0], before, "before"), (axes[1], after, "normalised, before gain and bias")):
        axis.boxplot(values.tolist(), tick_labels=tokens, showfliers=False)
        axis.set_title(title, fontsize=10)
    rows = [
        [t, *(f"{float(x):z.3f}" for x in (b.mean(), b.std(correction=0), a.mean(), a.std(correction=0)))]
        for t, b, a in zip(tokens, before, after, strict=True)
    ]
    return figure, table(["token", "mean before", "std before", "mean after", "std after"], rows)


def neurons(model: Loaded) -> Result:
    """The strongest neurons of a feed-forward network for each token of a sentence."""
    seen = model.trace(MAT)
    tokens = names(seen.tokens["source"])
    inner = seen["encoder.blocks.1.feed_forward.inner"][0]  # (T, F)
    chosen = sorted(set(inner.topk(3).indices.flatten().tolist()))
    figure, (axis,) = panels(1, 8, 3.2)
    axis.imshow(inner[:, chosen], cmap="Oranges", vmin=0, aspect="auto")
    axis.set_yticks(range(len(tokens)), tokens)
    axis.set_xticks(range(len(chosen)), [str(n) for n in chosen], rotation=90, fontsize=7)
    axis.set(title="the three strongest neurons of each token, encoder block 1", xlabel="neuron")
    rows = []
    for row, token in enumerate(tokens):
        best = inner[row].topk(3)
        found = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        share = 100 * float((inner[row] > 0.1).float().mean())
        rows.append([token, ", ".join(f"{number} ({value:.1f})" for number, value in found), f"{share:.0f} %"])
    return figure, table(["token", "strongest neurons (activation)", "neurons above 0.1"], rows)
