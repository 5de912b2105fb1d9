"""clearhead: a Transformer with nothing hidden."""

TYPE_CHECKING = False  # importing `typing` would take a third of the time in which Ctrl-C is not handled yet
if TYPE_CHECKING:
    from typing import Any

__version__ = "0.1.0"


def __getattr__(name: str) -> "Any":
    """`clearhead.load` on demand: `import clearhead` alone does not wait for torch."""
    if name == "load":
        from clearhead.library import load

        return load
    raise AttributeError(f"module 'clearhead' has no attribute {name!r}")
