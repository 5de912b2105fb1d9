"""Requests of the API; unknown fields are refused."""

# Annotations are evaluated here, unlike elsewhere: pydantic reads them.

from dataclasses import fields
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from clearhead.config import require
from clearhead.decode.defaults import BEAM, LENGTH_PENALTY, TOKENS
from clearhead.decode.sampling import SamplingSettings

OneOrMore = Annotated[str | list[str], Field(description="One text, or a list of texts.")]
LARGEST_INTEGER = 2**31 - 1
Probability = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
TopK = Annotated[int, Field(ge=0, le=LARGEST_INTEGER)]
RepetitionPenalty = Annotated[float, Field(ge=0.01, le=100, allow_inf_nan=False)]
Seed = Annotated[int, Field(ge=-(2**62), lt=2**62)]


class Asked(BaseModel):
    """The fields that all requests have."""

    model_config = ConfigDict(extra="forbid")

    model: str | None = Field(None, description="The name of a run; default: the first run that supports the verb.")


class TranslateRequest(Asked):
    """Texts to translate."""

    text: OneOrMore
    beam: int = Field(BEAM, ge=1, le=64)
    length_penalty: float = Field(LENGTH_PENALTY, ge=0, le=10, allow_inf_nan=False)
    nbest: int = Field(1, ge=1, le=64)
    prefix: str = Field("", description="Each translation begins with it.")


class GenerateRequest(Asked):
    """Prompts to continue."""

    prompt: OneOrMore = ""
    tokens: int = Field(TOKENS, ge=1, le=LARGEST_INTEGER)
    greedy: bool = Field(False, description="Take the most likely token at each step; nothing is sampled.")
    temperature: float = Field(0.8, ge=0.001, le=100, allow_inf_nan=False)
    top_k: TopK = 0
    top_p: float = Field(0.95, gt=0, le=1, allow_inf_nan=False)
    min_p: Probability = 0.0
    repetition_penalty: RepetitionPenalty = 1.0
    seed: Seed | None = None
    stop: list[str] = Field([], max_length=16)
    stream: bool = Field(False, description="Answer with server-sent events, as the text is generated.")

    def choice(self) -> SamplingSettings | None:
        """How to sample, or None for greedy decoding."""
        rules = [each.name for each in fields(SamplingSettings) if each.name in self.model_fields_set]
        require(not (self.greedy and rules), f"greedy: nothing is sampled; leave out greedy, or {', '.join(rules)}")
        if self.greedy:
            return None
        return SamplingSettings(self.temperature, self.top_k, self.top_p, self.min_p, self.repetition_penalty)


class TextsRequest(Asked):
    """Texts to classify or to embed."""

    text: OneOrMore


class TraceRequest(Asked):
    """A text to trace through the model."""

    text: str
    target: str | None = None
    names: list[str] = Field([], max_length=64, description="Tensors to return: names, or patterns such as *.weights.")


def as_list(text: str | list[str]) -> list[str]:
    """Return a single text as a list."""
    return [text] if isinstance(text, str) else text
