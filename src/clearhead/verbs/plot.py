"""`clearhead plot`: the curves of runs, in the terminal or as a picture."""

from __future__ import annotations

from pathlib import Path

from clearhead.bundled import find_run


def plot(*runs: Path, out: Path | None = None) -> None:
    """Plot the loss of runs in the terminal, or loss, learning rate and gradient norm as a picture.

    Parameters
    ----------
    runs
        Run folders; several are drawn into the same axes.
    out
        Write the picture to this .png, .svg or .pdf file.

    """
    from clearhead.train.watching.plot import plot_runs

    plot_runs([find_run(run) for run in runs], out)
