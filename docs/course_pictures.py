"""The pictures of the course that show a trained model, and the texts beside them, from a run of the phrasebook recipe.

clearhead train phrasebook
python docs/course_pictures.py runs/phrasebook

writes docs/course/pictures/*.png and docs/course/computed/*.txt. Each function below is one picture, named as its file.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "experiments"))

import torch
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from small import BLUE, GREEN, ORANGE, panels, save, table
from torch import Tensor

import clearhead
from clearhead.files import read_metrics
from clearhead.glass.patch import knock_out
from clearhead.library import Loaded
from clearhead.model.attention import causal_mask
from clearhead.train.schedule import learning_rate

COURSE = Path(__file__).parent / "course"
CAR = "the car is red"
MAT = "there is a cat on the mat"
SENTENCES = 200  # that are translated for every head that is switched off
WORDS = {
    "colours": ["red", "blue", "green", "white", "black"],
    "animals": ["cat", "dog", "horse", "bird", "cow"],
    "people": ["man", "woman", "boy", "girl", "teacher"],
    "verbs": ["sees", "eats", "buys", "writes", "hears"],
}
GROUPS = ("#b3263b", GREEN, BLUE, ORANGE)
Result = tuple[Figure, str]


def grid(axis: Axes, values: Tensor, rows: Sequence[str], columns: Sequence[str], title: str = "") -> None:
    """A matrix with its numbers in percent and its tokens at the edges."""
    axis.imshow(values, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    axis.set_xticks(range(len(columns)), columns, rotation=60, ha="right", fontsize=8)
    axis.set_yticks(range(len(rows)), rows, fontsize=8)
    axis.set_title(title, fontsize=9)
    for row, line in enumerate(values.tolist()):
        for column, value in enumerate(line):
            axis.text(column, row, f"{100 * value:.0f}", ha="center", va="center", fontsize=6.5,
                      color="white" if value > 0.6 else "#333333")  # fmt: skip


def text_grid(values: Tensor, rows: Sequence[str], columns: Sequence[str], digits: int = 2) -> str:
    """A matrix as text."""
    width = max(len(name) for name in [*columns, "-00.00"]) + 1
    left = max(len(name) for name in rows)
    lines = [" " * left + "".join(name.rjust(width) for name in columns)]
    for name, line in zip(rows, values.tolist(), strict=True):
        lines.append(name.ljust(left) + "".join(f"{value:{width}.{digits}f}" for value in line))
    return "\n".join(lines)


def names(tokens: Sequence[str]) -> list[str]:
    """Tokens without the space before them."""
    return [token.strip() or token for token in tokens]


# --- the pictures, in the order of the course -------------------------------------------------------------------------


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
            axis.add_patch(plt.Rectangle((left, -row), width - 0.06, 0.7, color=(BLUE, ORANGE)[index % 2], alpha=0.25))
            axis.text(left + width / 2, 0.35 - row, piece.replace(" ", "␣"), ha="center", va="center", fontsize=9)
            left += width
        lines.append(f"{len(pieces):2} tokens: " + " | ".join(piece.replace(" ", "␣") for piece in pieces))
    axis.set(xlim=(0, 9), ylim=(-2.1, 0.9))
    axis.axis("off")
    return figure, "\n".join(lines)


def embeddings(model: Loaded) -> Result:
    """Words on the first two principal components, and the nearest words of one of them."""
    tokenizer = model.run.tokenizers.source
    table_of = model.model.encoder.embedding.weight.detach()  # type: ignore[union-attr]
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
    rows = []
    for word in ("red", "sees", "cat", "man", "woman"):
        if word in labels:
            at = labels.index(word)
            best = similar[at].argsort(descending=True)[1:4].tolist()
            rows.append([word, ", ".join(f"{labels[i]} ({similar[at, i]:.2f})" for i in best)])
    return figure, table(["word", f"most similar of the {len(single)} (cosine)"], rows)


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


def training(model: Loaded) -> Result:
    """The loss of the run and its learning rate; and the paper's schedule."""
    metrics = [line for line in read_metrics(model.run.folder) if "loss" in line]
    figure, axes = panels(3, 3.6)
    axes[0].plot([m["step"] for m in metrics], [m["loss"] for m in metrics], color=BLUE)
    axes[0].set(title="training loss of the demo", xlabel="step", ylim=(0, None))
    count = model.run.recipe.train.steps
    config = model.run.recipe.train
    axes[1].plot(
        [learning_rate(config, model.run.recipe.model.d_model, step, count) for step in range(1, count)], color=ORANGE
    )
    axes[1].set(title="its learning rate: cosine", xlabel="step")
    steps = range(1, 40_000, 50)
    axes[2].plot(steps, [512**-0.5 * min(s**-0.5, s * 4000**-1.5) for s in steps], color=GREEN)
    axes[2].set(title="the paper's, d_model 512", xlabel="step", xticks=[0, 20_000, 40_000])
    first = metrics[0]["loss"]
    last = metrics[-1]["loss"]
    vocabulary = model.model.config.vocab
    return figure, f"first loss {first:.2f}; ln({vocabulary:,}) = {math.log(vocabulary):.2f}; last loss {last:.3f}"


def next_tokens(model: Loaded) -> Result:
    """The five likeliest next tokens at each step of greedy decoding."""
    seen = model.trace(CAR)
    words = seen.named("head.logits").labels[2]
    target = names(seen.tokens["target"])
    lines = []
    figure, axes = panels(len(target), 1.7, 1.8)
    for row, axis in enumerate(axes):
        best = seen["head.logits"][0, row].softmax(-1).topk(5)
        labels = [words[i].replace(" ", "␣") for i in best.indices.tolist()]
        axis.barh(range(5), best.values, color=BLUE, log=True)
        axis.set_yticks(range(5), labels, fontsize=7)
        axis.invert_yaxis()
        axis.set(title=f"after {target[row]}", xlim=(1e-7, 1), xticks=[1e-6, 1e-3, 1])
        axis.minorticks_off()
        three = zip(labels[:3], (100 * best.values).tolist(), strict=False)
        chances = ", ".join(f"{word} {chance:.{1 if chance > 1 else 3}f} %" for word, chance in three)
        lines.append(f"{target[row]:10} → {chances}")
    return figure, "\n".join(lines)


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


def exact_translations(model: Loaded) -> Callable[[], float]:
    """A function that measures how many validation sentences are translated exactly, in percent."""
    from clearhead.data.sources import open_corpus

    pairs = list(open_corpus(model.run.recipe.data).examples("valid"))[:SENTENCES]
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
    worst = (math.inf, "", {})
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


PICTURES: dict[str, Callable[[Loaded], Result]] = {
    function.__name__: function
    for function in (
        tokens, embeddings, sinusoids, attention, masks, heads, stream, layer_norm, neurons, cross_attention, training,
        next_tokens, families, rounded, knocked_out,
    )
}  # fmt: skip


def draw(run: str | Path, folder: Path, chosen: Sequence[str] = ()) -> None:
    """Write the pictures and texts of a run into a folder like docs/course."""
    torch.set_num_threads(1)
    model = clearhead.load(run)
    (folder / "computed").mkdir(parents=True, exist_ok=True)
    for name in chosen or PICTURES:
        figure, text = PICTURES[name](model)
        save(figure, folder / "pictures" / f"{name}.png")
        (folder / "computed" / f"{name}.txt").write_text(text.rstrip() + "\n", encoding="utf8")


if __name__ == "__main__":
    draw(sys.argv[1], COURSE, sys.argv[2:])
