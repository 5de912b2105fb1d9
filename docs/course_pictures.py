"""The pictures of the course that show a trained model, and the texts beside them, from a run of the phrasebook recipe.

clearhead train phrasebook
python docs/course_pictures.py runs/phrasebook

writes docs/course/pictures/*.png and docs/course/computed/*.txt. Each picture is a function in docs/course_drawings,
named as its file.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "experiments"))

import torch
from course_drawings.attention import attention, cross_attention, families, heads, masks
from course_drawings.blocks import layer_norm, neurons, stream
from course_drawings.changes import knocked_out, rounded
from course_drawings.inputs import embeddings, sinusoids, tokens
from course_drawings.outputs import next_tokens, training
from course_drawings.shared import Result
from small import save

import clearhead
from clearhead.library import Loaded

COURSE = Path(__file__).parent / "course"
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
