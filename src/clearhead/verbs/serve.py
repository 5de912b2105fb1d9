"""`clearhead serve`: runs behind an HTTP API."""

# Annotations are evaluated here, unlike elsewhere: see options.py.

from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from clearhead.box import TRANSLATOR
from clearhead.config import UserError
from clearhead.terminal.pipes import note
from clearhead.verbs.options import LoadOptions

if TYPE_CHECKING:
    from clearhead.serve.limits import Limits


@Parameter(name="*")
@dataclass(frozen=True)
class LimitOptions:
    """What a request may ask for; the defaults are those of `Limits`."""

    batch: Annotated[int, Parameter(help="Texts that are written at the same time.")] = 64
    queue: Annotated[int, Parameter(help="Requests that may wait; further ones are answered with 429.")] = 256
    texts: Annotated[int, Parameter(help="Texts of one request.")] = 128
    characters: Annotated[int, Parameter(help="Characters of all texts of one request.")] = 100_000
    tokens: Annotated[int, Parameter(help="New tokens of one text.")] = 2048
    seconds: Annotated[float, Parameter(help="Time that a request may take, in the queue and after it.")] = 120.0

    def limits(self) -> "Limits":
        """Return the limits themselves."""
        from clearhead.serve.limits import Limits

        return Limits(**{field.name: getattr(self, field.name) for field in fields(self)})


def serve(
    *runs: Path,
    host: str = "127.0.0.1",
    port: int = 8000,
    name: tuple[str, ...] = (),
    limit: LimitOptions = LimitOptions(),
    load: LoadOptions = LoadOptions(),
) -> None:
    """Serve runs over HTTP, with continuous batching: a page, one address per verb, and OpenAI's API.

    The environment variable CLEARHEAD_API_KEY, if it is set, is the key that every request needs.

    Parameters
    ----------
    runs
        The folders of one or more runs, or the names of runs that come with clearhead; requests choose one by the
        folder's name. By default english-french.
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
