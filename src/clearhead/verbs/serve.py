"""`clearhead serve`: runs behind an HTTP API."""

# Annotations are evaluated here, unlike elsewhere: see options.py.

from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from clearhead.bundled import TRANSLATOR
from clearhead.config import UserError
from clearhead.serve.limits import Limits
from clearhead.terminal.pipes import note
from clearhead.verbs.options import LoadOptions


@Parameter(name="*")
@dataclass(frozen=True)
class LimitOptions:
    """What a request may ask for."""

    batch: Annotated[int, Parameter(help="Texts that are generated at the same time.")] = Limits.batch
    queue: Annotated[int, Parameter(help="Requests that may wait; further ones are answered with 429.")] = Limits.queue
    texts: Annotated[int, Parameter(help="Texts of one request.")] = Limits.texts
    characters: Annotated[int, Parameter(help="Characters of all texts of one request.")] = Limits.characters
    tokens: Annotated[int, Parameter(help="New tokens of one text.")] = Limits.tokens
    seconds: Annotated[float, Parameter(help="Time limit of a request, including the queue.")] = Limits.seconds
    connections: Annotated[int, Parameter(help="Connections at the same time.")] = Limits.connections
    client_seconds: Annotated[
        int, Parameter(help="For a client to send the headers or the body of a request, or to read on.")
    ] = Limits.client_seconds

    def limits(self) -> Limits:
        """Return the limits themselves."""
        return Limits(**{field.name: getattr(self, field.name) for field in fields(self)})


def serve(
    *runs: Path,
    host: str = "127.0.0.1",
    port: int = 8000,
    name: Annotated[tuple[str, ...], Parameter(negative="", show_default=False)] = (),
    limit: LimitOptions = LimitOptions(),
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
    limits = limit.limits()
    opened = [load.open(folder) for folder in runs or (TRANSLATOR,)]
    with suppress(KeyboardInterrupt):
        run_server(opened, limits, host, port, name, note)
