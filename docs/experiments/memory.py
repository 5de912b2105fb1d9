"""Chapter 20: what the memory of a training step is used for, computed for models of several sizes."""

from __future__ import annotations

from dataclasses import replace

from small import BLUE, GREEN, ORANGE, RED, main, panels, report, table

from clearhead.presets import preset
from clearhead.train.cost import BatchShape, all_trained, memory_lines

MODELS = ("gpt2", "modern-1b", "modern-7b")
SHAPE = BatchShape(batch=8, length=1024)
PARTS = {"weights": BLUE, "gradients": GREEN, "optimiser state": ORANGE, "activations and logits": RED}


def memory(name: str) -> dict[str, float]:
    """The GiB of each part, in float32 with AdamW."""
    found = dict.fromkeys(PARTS, 0.0)
    config = replace(preset(name), dropout=0.0)
    for line in memory_lines(config, SHAPE, all_trained(config)):
        part = {"weights": "weights", "gradients": "gradients", "AdamW's two averages": "optimiser state"}.get(
            line.what
        )
        found[part or "activations and logits"] += line.value / 2**30
    return found


def compute() -> None:
    """All models."""
    figure, (axis,) = panels(1, 6)
    rows = []
    for place, name in enumerate(MODELS):
        parts = memory(name)
        left = 0.0
        for part, size in parts.items():
            axis.barh(place, size, left=left, color=PARTS[part], label=part if place == 0 else None)
            left += size
        rows.append([name, *(f"{size:.1f}" for size in parts.values()), f"{left:.1f}"])
    axis.set_yticks(range(len(MODELS)), MODELS)
    axis.invert_yaxis()
    axis.set(title=f"GiB of a step with {SHAPE.batch} × {SHAPE.length} tokens, float32, AdamW")
    axis.legend(frameon=False, fontsize=8)
    report("memory", table(["GiB", *PARTS, "together"], rows), figure)


if __name__ == "__main__":
    main(compute)
