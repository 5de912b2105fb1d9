"""`clearhead classify`: the class of each text."""

from __future__ import annotations

from dataclasses import asdict

from clearhead.terminal.pipes import write_lines, write_objects
from clearhead.verbs.options import Flag, LoadOptions, RunFolder, read_texts_for, show_progress


def classify(run: RunFolder, *texts: str, load: LoadOptions = LoadOptions(), json: Flag = False) -> None:
    """Print the class of each text and its probability; without texts, of each line of stdin.

    Parameters
    ----------
    texts
        What to classify; a text that is too long is read in windows, whose logits are averaged.
    json
        Write one JSON object per line, with the probabilities of all classes.

    """
    from clearhead.decode.embed import classify as classify_batch

    opened = load.open(run, "classify")
    for batch in read_texts_for(opened, texts, empty=False):
        found = classify_batch(opened, batch, show_progress)
        if json:
            write_objects({"text": text, **asdict(each)} for text, each in zip(batch, found, strict=True))
        else:
            write_lines(f"{each.label}\t{each.probabilities[each.label]:.4f}" for each in found)
