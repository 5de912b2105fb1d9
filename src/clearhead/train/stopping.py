"""The signals that stop a training: Ctrl-C, SIGTERM, and SIGHUP when its terminal is closed."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

STOP_SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


@contextmanager
def handle_stop_signals(handler: Callable[[int, FrameType | None], object]) -> Iterator[dict[int, Any]]:
    """Handle stop signals by a function; yield how each was handled before. One that is ignored stays so: see nohup."""
    before = {kind: signal.getsignal(kind) for kind in STOP_SIGNALS}
    handled = [kind for kind in before if before[kind] is not signal.SIG_IGN]
    for kind in handled:
        signal.signal(kind, handler)
    try:
        yield before
    finally:
        for kind in handled:
            signal.signal(kind, before[kind])
