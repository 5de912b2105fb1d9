"""`clearhead embed`: a vector for each text, or how similar texts are."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from clearhead.config import require
from clearhead.terminal.pipes import write, write_lines, write_objects
from clearhead.verbs.options import Flag, JsonLines, LoadOptions, RunFolder, read_texts_for, show_progress

if TYPE_CHECKING:
    from torch import Tensor

    from clearhead.runs import Run


def embed(
    run: RunFolder,
    *texts: str,
    similar: Flag = False,
    load: LoadOptions = LoadOptions(),
    json: JsonLines = False,
) -> None:
    """Compute a vector for each text, or each line of stdin: an .npy file on stdout, or JSON lines.

    Parameters
    ----------
    texts
        What to embed; a text that is too long is read in windows, whose vectors are averaged.
    similar
        Compare the texts instead: print the cosine similarity of each with every other, from -1 to 1.

    """
    opened = load.open(run, "embed")
    if similar:
        write_similarities(opened, texts, json)
    elif json:
        write_json(opened, texts)
    else:
        write_npy(opened, texts)


def write_json(run: Run, texts: Sequence[str]) -> None:
    """Write the vector of each text as JSON lines."""
    from clearhead.decode.embed import embed

    for batch in read_texts_for(run, texts, empty=False):
        vectors = embed(run, batch, show_progress).tolist()
        write_objects({"text": text, "vector": vector} for text, vector in zip(batch, vectors, strict=True))


def write_npy(run: Run, texts: Sequence[str]) -> None:
    """Write the vectors of all texts as one .npy file."""
    import torch

    from clearhead.decode.embed import embed

    require(not sys.stdout.isatty(), "an .npy file is binary: redirect it to a file, `> vectors.npy`, or add --json")
    none = torch.zeros(0, run.recipe.model.d_model)
    vectors = [embed(run, batch, show_progress) for batch in read_texts_for(run, texts, empty=False)]
    write(npy(torch.cat([none, *vectors])))


def npy(vectors: Tensor) -> bytes:
    """Return vectors in numpy's file format."""
    import numpy as np

    file = io.BytesIO()
    np.save(file, vectors.numpy())
    return file.getvalue()


def write_similarities(run: Run, texts: Sequence[str], json: bool) -> None:
    """Write, for each text, its cosine similarity with every other, the most similar first."""
    from clearhead.decode.embed import embed

    every = [text for batch in read_texts_for(run, texts, empty=False) for text in batch]
    require(len(every) > 1, "--similar compares texts with each other: give two or more")
    vectors = embed(run, every, show_progress)
    cosines = vectors @ vectors.T
    for row, text in enumerate(every):
        order = [other for other in cosines[row].argsort(descending=True).tolist() if other != row]
        if json:
            others = [{"text": every[other], "cosine": round(cosines[row, other].item(), 6)} for other in order]
            write_objects([{"text": text, "similar": others}])
        else:
            write_lines([text, *(f"  {cosines[row, other]:.4f}  {every[other]}" for other in order)])
