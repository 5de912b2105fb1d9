"""`clearhead explore`: a run's model in the browser, as one self-contained file, or as a site of static files."""

from __future__ import annotations

import webbrowser
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from clearhead.bundled import TRANSLATOR, find_run, run_and_texts
from clearhead.config import require
from clearhead.terminal.pipes import note


def explore(
    *runs: str,
    html: Path | None = None,
    site: Path | None = None,
    half: bool = False,
    host: str = "127.0.0.1",
    port: int = 8642,
    browser: Annotated[bool, Parameter(name="--open", negative="--no-open")] = True,
) -> None:
    """Look inside a run's model in the browser: see every number, switch parts off, watch it learn.

    Parameters
    ----------
    runs
        The folder of a run, or the name of one that comes with clearhead, by default english-french; and a second one
        to compare with, or with --html, the text to show.
    html
        Write one self-contained file instead: clearhead explore RUN --html out.html "the red car is fast"
    site
        Write a folder of static files instead, for any web space: the page and the run, which compute in the browser.
    half
        Of --site: write weights of float32 in half precision, half the size.
    host
        The address to listen on; 127.0.0.1 can be reached from this machine only.
    port
        The port to listen on; 0: any free port.
    browser
        Open the page in the browser.

    """
    require(not (html and site), "--html and --site write two different pages; give one of them")
    require(bool(site) or not half, "--half is about the weights of a site; add --site FOLDER")
    if html:
        from clearhead.inspect.web.share import write_page

        run, texts = run_and_texts(runs)
        write_page(find_run(run), " ".join(texts), html)
        return
    folders = [find_run(run) for run in runs or (TRANSLATOR,)]
    require(len(folders) <= 2, f"{len(folders)} runs: at most two can be compared; leave out the others")
    if site:
        from clearhead.inspect.web.site import write_site

        write_site(folders, site, half)
    else:
        serve(folders, host, port, browser)


def serve(folders: Sequence[Path], host: str, port: int, browser: bool) -> None:
    """Serve the page until Ctrl-C; with `browser`, open it."""
    from clearhead.inspect.web.explorer import Explorer
    from clearhead.inspect.web.origin import HERE
    from clearhead.inspect.web.server import Server

    server = Server(Explorer(folders), host, port)
    note(f"{' and '.join(map(str, folders))}: {server.address} (Ctrl-C to stop)")
    if host not in HERE:
        note(f"--host {host}: everyone who can reach this machine can see the run")
    if browser:
        webbrowser.open(server.address)
    with server, suppress(KeyboardInterrupt):
        server.serve_forever()
