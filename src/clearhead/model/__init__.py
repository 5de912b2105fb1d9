"""The paper, in PyTorch: read norm, attention, block, stack, families, in this order."""

from clearhead.model.cache import State
from clearhead.model.families import DecoderOnly, EncoderDecoder, EncoderOnly, Model, build_model

__all__ = ["DecoderOnly", "EncoderDecoder", "EncoderOnly", "Model", "State", "build_model"]
