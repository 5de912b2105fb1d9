"""`python -m clearhead` is `clearhead`. Ctrl-C is handled before anything that takes time is imported."""

import os
import signal
import sys
from types import FrameType

interrupts: list[int] = []  # that this process has received


def interrupt(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, but exit at once during an import: many modules do not survive an exception there."""
    interrupts.append(number)
    while frame:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            os._exit(130)
        frame = frame.f_back
    raise KeyboardInterrupt


def main() -> None:
    """Run the command line. Where Ctrl-C is ignored, as in a background job of a shell, it stays ignored."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupt)
    from clearhead.cli import main as run

    try:
        run()
    except Exception as error:  # C code of torch that is interrupted can replace KeyboardInterrupt by an error
        if not interrupts:
            raise
        sys.stderr.write(f"clearhead: interrupted ({error})\n")
        sys.exit(130)


if __name__ == "__main__":
    main()
