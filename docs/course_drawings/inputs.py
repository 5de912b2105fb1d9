"""Pictures of what enters a model: tokens, embeddings, positions."""

from __future__ import annotations

import torch
from course_drawings.shared import Result
from matplotlib.patches import Rectangle
from small import BLUE, GREEN, ORANGE, panels, table

from clearhead.library import Loaded

WORDS = {
    "colours": ["red", "blue", "green", "white", "black"],
    "animals": ["cat", "dog", "horse", "bird", "cow"],
    "people": ["man", "woman", "boy", "girl", "teacher"],
    "verbs": ["sees", "eats", "buys", "writes", "hears"],
}
GROUPS = ("#b3263b", GREEN, BLUE, ORANGE)


def tokens(model: Loaded) -> Result:
    """Sentences with a box for each token: common words are one token, names are in pieces."""
    tokenizer = model.run.tokenizers.source
    figure, (axis,) = panels(1, 8, 2.2)
    lines = []
    for row, sentence in enumerate(("the red car is fast", "Quentin sees the mountain", "there is a zebra on the mat")):
        pieces = [text for text, _ in tokenizer.pieces(sentence)]
        left = 0.0
        for index, piece in enumerate(pieces):
            width = 0.35 + 0.2 * len(piece)
            axis.add_patch(Rectangle((left, -row), width - 0.06, 0.7, color=(BLUE, ORANGE)[index % 2], alpha=0.25))
            axis.text(left + width / 2, 0.35 - row, piece.replace(" ", "␣"), ha="center", va="center", fontsize=9)
            left += width
        lines.append(f"{len(pieces):2} tokens: " + " | ".join(piece.replace(" ", "␣") for piece in pieces))
    axis.set(xlim=(0, 9), ylim=(-2.1, 0.9))
    axis.axis("off")
    return figure, "\n".join(lines)


def embeddings(model: Loaded) -> Result:
    """Words on the first two principal components, and the nearest words of one of them."""
    tokenizer = model.run.tokenizers.source
    table_of = model.model.encoder.embedding.weight.detach()
    shown = [(group, word, tokenizer.encode(f" {word}")) for group, words in WORDS.items() for word in words]
    single = [(group, word, ids[0]) for group, word, ids in shown if len(ids) == 1]
    vectors = table_of[torch.tensor([number for _, _, number in single])]
    unit = vectors / vectors.norm(dim=-1, keepdim=True)
    centred = unit - unit.mean(0)
    plane = centred @ torch.linalg.svd(centred, full_matrices=False).Vh[:2].T
    figure, (axis,) = panels(1, 6, 4.5)
    for group, colour in zip(WORDS, GROUPS, strict=True):
        rows = [row for row, (other, _, _) in enumerate(single) if other == group]
        axis.scatter(plane[rows, 0], plane[rows, 1], color=colour, label=group, s=18)
        for row in rows:
            axis.annotate(f" {single[row][1]}", plane[row].tolist(), fontsize=8, color=colour)
    axis.set(xticks=[], yticks=[])
    axis.set_title(f"{len(single)} rows of the embedding matrix, on their first two principal components", fontsize=10)
    axis.legend(frameon=False, fontsize=8, handletextpad=0.1)
    similar = unit @ unit.T
    labels = [word for _, word, _ in single]
    nearest: list[list[str]] = []
    for word in ("red", "sees", "cat", "man", "woman"):
        if word in labels:
            at = labels.index(word)
            best = similar[at].argsort(descending=True)[1:4].tolist()
            nearest.append([word, ", ".join(f"{labels[i]} ({similar[at, i]:.2f})" for i in best)])
    return figure, table(["word", f"most similar of the {len(single)} (cosine)"], nearest)


def sinusoids(_model: Loaded) -> Result:
    """The sinusoidal positions, and the dot product of two positions by their distance."""
    from clearhead.config import ModelConfig
    from clearhead.model.stack import SinusoidalPosition

    position = SinusoidalPosition(ModelConfig(d_model=64))(torch.arange(64), torch.float32)
    figure, axes = panels(2, 4.6)
    axes[0].imshow(position, cmap="RdBu", aspect="auto")
    axes[0].set(title="sines (even channels) and cosines (odd)", xlabel="channel", ylabel="position")
    products = position @ position.T
    for start, colour, width in ((16, BLUE, 7), (32, ORANGE, 4), (48, GREEN, 1.5)):
        axes[1].plot(torch.arange(64) - start, products[start], color=colour, lw=width, label=f"position {start}")
    axes[1].set(title="dot product with the other positions", xlabel="distance", xlim=(-30, 30))
    axes[1].legend(frameon=False, fontsize=8)
    near = [products[20, 20 + d].item() for d in (0, 1, 2, 4, 8)]
    far = [products[40, 40 + d].item() for d in (0, 1, 2, 4, 8)]
    rows = [["20", *(f"{x:.2f}" for x in near)], ["40", *(f"{x:.2f}" for x in far)]]
    return figure, table(["position", *(f"distance {d}" for d in (0, 1, 2, 4, 8))], rows)
