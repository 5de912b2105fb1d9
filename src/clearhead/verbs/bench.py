"""`clearhead bench`: how fast training, decoding and start-up are on this machine, beside other implementations."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from clearhead.files import require_output, write_file
from clearhead.terminal.console import plain_console
from clearhead.terminal.pipes import note
from clearhead.terminal.progress import progress_bar
from clearhead.verbs.options import Flag


def bench(
    *,
    only: Annotated[list[str] | None, Parameter(negative="")] = None,
    rounds: int = 5,
    threads: int = 0,
    peers: bool = True,
    quick: Flag = False,
    json: Path | None = None,
    plot: Path | None = None,
) -> None:
    """Measure training, decoding and start-up on this machine, in turns with other implementations.

    Parameters
    ----------
    only
        Measure only this row, or the rows of a group: gpu, cpu. May be given several times.
    rounds
        How often each case is measured, after a first call that is not counted; results are medians.
    threads
        Threads of torch on a CPU; 0: as many as it takes. With 1, CPU time is measured.
    peers
        Compare with transformers, CTranslate2 (pip install 'clearhead[bench]') and PyTorch's nn.Transformer.
    quick
        Measure tiny sizes, to see that everything works; the numbers mean nothing.
    json
        Write all numbers to this file, after every row.
    plot
        Write a picture of the ratios to this .png, .svg or .pdf file.

    """
    from clearhead.bench.report import Measured, as_json, check_plot, circumstances, show, write_plot
    from clearhead.bench.runner import choose_rows, measure, summary

    rows = choose_rows(only or [])
    if json:
        require_output(json, "--json", (".json",))
    if plot:
        check_plot(plot)
    facts = circumstances(quick, threads)
    results: list[Measured] = []
    with progress_bar("", len(rows), "rows") as bar:
        for measured in measure(rows, rounds, threads, quick, peers, bar.rename):
            results.append(measured)
            note(f"{measured.row.name}: {summary(measured)}")
            bar.advance()
            if json:
                write_file(json, as_json(results, facts))
    show(results, plain_console(), facts)
    if plot:
        write_plot(results, plot, facts)
