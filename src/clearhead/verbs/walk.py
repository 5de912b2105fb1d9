"""`clearhead walk`: a text on its way through a run's model, step by step, in the terminal."""

from __future__ import annotations

from clearhead.verbs.options import Flag, RunFolder


def walk(
    run: RunFolder,
    text: str,
    *,
    target: str | None = None,
    layer: int | None = None,
    step: Flag = False,
) -> None:
    """Follow a text through a run's model: every shape, attention as grids, likely next tokens, the search.

    Parameters
    ----------
    text
        What the model reads; for a masked language model, with <mask> in place of a word.
    target
        The translation or continuation to follow; by default what the model itself generates.
    layer
        Show only this block of each stack, counted from 0.
    step
        Pause after each part.

    """
    from clearhead.glass.terminal.walk import walk as walk_through

    walk_through(run, text, target, layer, step)
