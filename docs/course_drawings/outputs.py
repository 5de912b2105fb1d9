"""Pictures of training and of what a trained model writes."""

from __future__ import annotations

import math

from course_drawings.shared import CAR, Result, names
from small import BLUE, GREEN, ORANGE, panels

from clearhead.files import read_metrics
from clearhead.library import Loaded
from clearhead.train.schedule import learning_rate


def training(model: Loaded) -> Result:
    """The loss of the run and its learning rate; and the paper's schedule."""
    metrics = [line for line in read_metrics(model.run.folder) if "loss" in line]
    figure, axes = panels(3, 3.6)
    axes[0].plot([m["step"] for m in metrics], [m["loss"] for m in metrics], color=BLUE)
    axes[0].set(title="training loss of the demo", xlabel="step", ylim=(0, None))
    config = model.run.recipe.train
    d_model = model.run.recipe.model.d_model
    axes[1].plot([learning_rate(config, d_model, step) for step in range(1, config.steps)], color=ORANGE)
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
