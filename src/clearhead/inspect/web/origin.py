"""Where a request may come from: the server's own pages, and programs. Other sites cannot use a visitor's browser.

A page of another site can send requests to this machine through a browser. The browser says so in `Origin` and
`Sec-Fetch-Site`. With DNS rebinding it does not, because the name of that site then leads to this machine; but the name
is in `Host`. So `Host` must be an address, which cannot be rebound, or a name that the server knows.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from urllib.parse import urlsplit

HERE = ("127.0.0.1", "localhost")


class Gate:
    """Decides which requests a server accepts."""

    def __init__(self, host: str, port: int, names: Sequence[str] = ()) -> None:
        """`host` is what the server listens on; `names` are further names under which it is reached, on any port."""
        self.only_here = host in HERE
        self.here = {f"{name}:{port}" for name in HERE} | (set(HERE) if port == 80 else set())
        self.names = {name.lower() for name in (*names, *(() if self.only_here else (host, *HERE)))}

    def accepts(self, host: str | None, origin: str | None, site: str | None) -> bool:
        """Whether a request with these headers (Host, Origin, Sec-Fetch-Site) may come from the server's own page."""
        if site == "cross-site" or (origin is not None and netloc(origin) != host):
            return False
        return self.knows(host or "")

    def knows(self, host: str) -> bool:
        """Whether this is an address or a name of the server."""
        name = host_name(host)
        return host in self.here or name in self.names or (not self.only_here and is_address(name))


def netloc(origin: str) -> str | None:
    """The host and port of an origin."""
    try:
        return urlsplit(origin).netloc
    except ValueError:  # of a malformed address
        return None


def host_name(host: str) -> str:
    """A Host header without its port."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:  # of a malformed address
        return ""


def is_address(name: str) -> bool:
    """Whether a name is an IP address."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
