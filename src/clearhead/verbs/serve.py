"""`clearhead serve`: runs behind an HTTP API."""

# Annotations are evaluated here, unlike elsewhere: see options.py.

from contextlib import suppress
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from clearhead.bundled import TRANSLATOR
from clearhead.config import UserError
from clearhead.serve.limits import Limits
from clearhead.terminal.pipes import note
from clearhead.verbs.options import LoadOptions


def serve(
    *runs: Path,
    host: str = "127.0.0.1",
    port: int = 8000,
    name: Annotated[tuple[str, ...], Parameter(negative="", show_default=False)] = (),
    limits: Annotated[Limits, Parameter(name="*")] = Limits(),
    load: LoadOptions = LoadOptions(),
) -> None:
    """Serve runs over HTTP, with continuous batching: a page, one endpoint per verb, and OpenAI's API.

    If the environment variable CLEARHEAD_API_KEY is set, requests need it as their API key.

    Parameters
    ----------
    runs
        Folders of runs, or names of runs that come with clearhead; requests name the folder. Default: english-french.
    host
        The address to listen on; 127.0.0.1 can be reached from this machine only.
    port
        The port to listen on; 0: any free port.
    name
        A host name under which the server is reached, as behind a proxy; can be given several times.

    """
    try:
        from clearhead.serve.server import run_server
    except ModuleNotFoundError as error:
        raise UserError(f"`clearhead serve` needs {error.name}: pip install 'clearhead[serve]'") from error
    opened = [load.open(folder) for folder in runs or (TRANSLATOR,)]
    with suppress(KeyboardInterrupt):
        run_server(opened, limits, host, port, name, note)
