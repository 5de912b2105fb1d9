"""Chapter 18: what width, heads and depth change: how many steps a model needs to learn one task.

The task is to reverse 12 tokens.
"""

from __future__ import annotations

from small import BLUE, QUICK, main, panels, report, reversals, small_model, steps_until, table, train

LENGTH = 12
LIMIT = 0.1
CHOICES = [  # d_model, heads, layers
    (16, 4, 1), (32, 4, 1), (64, 4, 1), (32, 1, 1), (32, 2, 1), (32, 8, 1), (32, 4, 2), (32, 4, 4), (64, 4, 2),
]  # fmt: skip


def compare() -> None:
    """Train each."""
    rows, sizes, needed = [], [], []
    for width, heads, layers in CHOICES[:2] if QUICK else CHOICES:
        model = small_model(d_model=width, d_ff=2 * width, heads=heads, layers=layers)
        losses = train(model, reversals(LENGTH), 300)
        sizes.append(sum(p.numel() for p in model.parameters()))
        needed.append(steps_until(losses, LIMIT))
        rows.append([str(width), str(heads), str(width // heads), str(layers), f"{sizes[-1]:,}", needed[-1]])
    figure, (axis,) = panels(1, 5.5)
    for size, steps, (width, heads, layers) in zip(sizes, needed, CHOICES, strict=False):
        if steps != "never":
            axis.plot(size, int(steps), "o", color=BLUE)
            right = (width, heads, layers) != (32, 1, 1)  # its dot is beside that of two heads
            label = f"  {width}, {heads}, {layers}  "
            axis.annotate(label, (size, int(steps)), fontsize=7, ha="left" if right else "right", va="center")
    axis.set(title=f"steps until the loss is below {LIMIT}; d_model, heads, layers", xlabel="parameters", xscale="log")
    axis.set_xlim(6000, 100_000)
    header = ["d_model", "heads", "channels a head", "layers", "parameters", f"steps until the loss is below {LIMIT}"]
    report("sizes", table(header, rows), figure)


if __name__ == "__main__":
    main(compare)
