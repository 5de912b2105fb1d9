"""`clearhead walk`: what a run's model computes for a text, step by step, in the terminal."""

from __future__ import annotations

from clearhead.bundled import run_and_texts
from clearhead.config import require
from clearhead.terminal.console import plain_console
from clearhead.verbs.options import Flag


def walk(
    *text: str,
    target: str | None = None,
    layer: int | None = None,
    step: Flag = False,
) -> None:
    """Follow a text through a run's model: every shape, attention as grids, likely next tokens, the search.

    Parameters
    ----------
    text
        What the model reads; for a masked language model, with <mask> in place of a word. Before it, a run: its
        folder, or the name of one that comes with clearhead; by default english-french.
    target
        The translation or continuation to follow; by default what the model itself generates.
    layer
        Show only this block of each stack, counted from 0.
    step
        Pause after each part.

    """
    from clearhead.inspect.terminal.walk import NARROWEST, WIDEST, Walk, show
    from clearhead.inspect.trace import trace
    from clearhead.runs import open_run

    run, texts = run_and_texts(text)
    require(bool("".join(texts).strip()), 'there is no text to follow; give one: clearhead walk RUN "the cat sleeps"')
    require(len(texts) == 1, f"{len(texts)} texts: only one can be followed; put it in quotes")
    opened = open_run(run)
    layers = max(opened.recipe.model.layers, opened.recipe.model.encoder_layers)
    require(layer is None or 0 <= layer < layers, f"--layer {layer}: this model has layers 0 to {layers - 1}")
    width = max(NARROWEST, min(plain_console().width, WIDEST))
    show(Walk(trace(opened, texts[0], target), width, layer), plain_console(width=width), step)
