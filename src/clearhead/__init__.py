"""clearhead: a Transformer with nothing hidden."""

__version__ = "0.1.0"
