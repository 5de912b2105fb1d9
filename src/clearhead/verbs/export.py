"""`clearhead export`: a run as a model for another library."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from clearhead.exchange.targets import Target
from clearhead.terminal.pipes import note
from clearhead.terminal.progress import progress_bar
from clearhead.verbs.options import NewRunFolder, RunFolder


def export(
    run: RunFolder,
    folder: NewRunFolder,
    *,
    to: Annotated[Target, Parameter(help="The library or format to write for.")],
) -> None:
    """Write a run for transformers, onnxruntime, torch or llama.cpp, or as a smaller run.

    Parameters
    ----------
    folder
        The folder to write, which must be empty or missing.

    """
    from clearhead.exchange.targets import export_run

    with progress_bar(f"writing for {to}"):  # tracing and compiling take a while
        notes = export_run(run, folder, to)
    for line in notes:
        note(line)
    note(f"{folder}: {', '.join(sorted(path.name for path in folder.iterdir()))}")
