"""`clearhead export`: a run as a model for another library."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from clearhead.exchange.targets import Target
from clearhead.terminal.pipes import note
from clearhead.verbs.options import NewRunFolder, RunFolder


def export(
    run: RunFolder,
    folder: NewRunFolder,
    *,
    to: Annotated[Target, Parameter(help="The library or format to write for.")],
) -> None:
    """Write a run for another library: transformers, onnxruntime, or torch without clearhead.

    Parameters
    ----------
    folder
        The folder to write, which must be empty or missing.

    """
    from clearhead.exchange.targets import export_run

    for line in export_run(run, folder, to):
        note(line)
