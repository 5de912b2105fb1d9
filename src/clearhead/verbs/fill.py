"""`clearhead fill`: what a masked language model would put in the place of <mask>."""

from __future__ import annotations

from dataclasses import asdict

from clearhead.terminal.pipes import write_lines, write_objects
from clearhead.verbs.options import JsonLines, LoadOptions, RunFolder, read_texts_for


def fill(run: RunFolder, *texts: str, top: int = 5, load: LoadOptions = LoadOptions(), json: JsonLines = False) -> None:
    """Fill each <mask> in a text with a masked language model; without texts, in each line of stdin.

    Parameters
    ----------
    texts
        Texts with <mask> in the place of a word: "the <mask> barks"
    top
        How many candidates to show for each mask.

    """
    from clearhead.decode.fill import fill as fill_batch

    opened = load.open(run, "fill")
    for batch in read_texts_for(opened, texts, empty=False):
        found = fill_batch(opened, batch, top)
        if json:
            pairs = zip(batch, found, strict=True)
            write_objects({"text": text, "filled": each.text, "masks": asdict(each)["masks"]} for text, each in pairs)
            continue
        for each in found:
            masks = [candidate for mask in each.masks for candidate in mask]
            write_lines([each.text, *(f"  {candidate.probability:.4f}  {candidate.token}" for candidate in masks)])
