"""`clearhead explore`: a run's model in the browser, or as one self-contained file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter


def explore(
    run: Path | None = None,
    other: str = "",
    *,
    html: Path | None = None,
    host: str = "127.0.0.1",
    port: int = 8642,
    browser: Annotated[bool, Parameter(name="--open", negative="--no-open")] = True,
) -> None:
    """Look inside a run's model in the browser: see every number, switch parts off, watch it learn.

    Parameters
    ----------
    run
        The folder of a run; by default the newest in runs/.
    other
        A second run to compare with; with --html, the text to show.
    html
        Write one self-contained file instead: clearhead explore RUN --html out.html "the red car is fast"
    host
        The address to listen on; 127.0.0.1 can be reached from this machine only.
    port
        The port to listen on; 0: any free port.
    browser
        Open the page in the browser.

    """
    from clearhead.glass.web.server import newest_run, serve

    chosen = run or newest_run(Path("runs"))
    if html:
        from clearhead.glass.web.share import write_page

        write_page(chosen, other, html)
    else:
        serve([chosen, Path(other)] if other else [chosen], host, port, browser)
