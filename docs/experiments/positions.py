"""Chapter 4: which positions still work for sequences longer than those of the training.

The task is to name, for each token, the token before it, on sequences of 8 to 24 tokens; then sequences of up to 96.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from small import BLUE, GREEN, ORANGE, RED, Batch, accuracy, main, panels, report, small_model, table, train

KINDS = {"none": RED, "learned": ORANGE, "sinusoidal": GREEN, "rotary": BLUE}
LENGTHS = [8, 24, 32, 48, 96]


def previous(shortest: int, longest: int, batch: int = 32) -> Iterator[Batch]:
    """Random sequences; the right answer to a token is the one before it, to the first one itself."""
    generator = torch.Generator().manual_seed(longest)
    while True:
        length = int(torch.randint(shortest, longest + 1, (), generator=generator))
        ids = torch.randint(16, (batch, length), generator=generator)
        yield ids, torch.cat([ids[:, :1], ids[:, :-1]], dim=1)


def compare() -> None:
    """Train with each kind of position; measure at each length."""
    right: dict[str, list[float]] = {}
    for kind in KINDS:
        model = small_model(position=kind, max_length=128)
        train(model, previous(8, 24), 500)
        right[kind] = [accuracy(model, previous(length, length)) for length in LENGTHS]
    figure, (axis,) = panels(1, 5.5)
    for kind, colour in KINDS.items():
        axis.plot(LENGTHS, right[kind], "o-", color=colour, label=kind)
    axis.axvspan(8, 24, color="#00000010", label="lengths of the training")
    axis.set(title="tokens that are right (%)", xlabel="length of the sequence", ylim=(0, 104))
    axis.legend(frameon=False)
    rows = [[kind, *(f"{value:.0f} %" for value in right[kind])] for kind in KINDS]
    report("positions", table(["positions", *(f"{n} tokens" for n in LENGTHS)], rows), figure)


if __name__ == "__main__":
    main(compare)
