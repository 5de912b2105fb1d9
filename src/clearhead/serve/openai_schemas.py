"""Requests of OpenAI's API; fields that are not supported are refused, if they would change the answer.

`top_k`, `min_p` and `repetition_penalty` are not OpenAI's, but those of other servers of its API.
"""

# Annotations are evaluated here, unlike elsewhere: pydantic reads them.

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from clearhead.config import require
from clearhead.decode.defaults import ANSWER_TOKENS
from clearhead.decode.sampling import SamplingSettings
from clearhead.serve.schemas import LARGEST_INTEGER, Probability, RepetitionPenalty, Seed, TopK
from clearhead.text.dialogue import Dialogue, Message

COMPLETION_TOKENS = 16  # OpenAI's default
LEAST = 1e-6  # temperature or top_p, below which only the most likely token is left
WITHOUT_EFFECT = (  # whatever their value
    *("include_obfuscation", "metadata", "parallel_tool_calls", "prompt_cache_key"),
    *("safety_identifier", "service_tier", "user"),
)
WITHOUT_EFFECT_IF_EMPTY = (  # false, 0, "", [] or {}
    *("annotations", "echo", "frequency_penalty", "functions", "logit_bias", "presence_penalty"),
    *("store", "suffix", "tool_calls", "tools"),
)
WITHOUT_EFFECT_IF: dict[str, tuple[Any, ...]] = {
    "best_of": (1,),
    "modalities": (["text"],),
    "reasoning_effort": ("none",),
    "response_format": ({"type": "text"},),
    "tool_choice": ("none", "auto"),
}

Stop = Annotated[list[Annotated[str, Field(min_length=1)]], Field(max_length=16)]


def has_no_effect(name: str, value: Any) -> bool:
    """Whether a field changes nothing, although it is not supported."""
    if name in WITHOUT_EFFECT_IF_EMPTY:
        return not value
    return name in WITHOUT_EFFECT or value in WITHOUT_EFFECT_IF.get(name, ())


class OpenAIModel(BaseModel):
    """An object of OpenAI's API; fields are known, or have no effect, or are refused."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def drop_without_effect(cls, given: Any) -> Any:
        """Drop fields that are null, and those that are not supported but change nothing."""
        if not isinstance(given, dict):
            return given
        return {name: value for name, value in given.items() if not (value is None or has_no_effect(name, value))}


class OpenAIRequest(OpenAIModel):
    """The fields that all requests have."""

    model: str


class StreamOptions(OpenAIModel):
    """What a stream contains besides the text."""

    include_usage: bool = False


class WritingRequest(OpenAIRequest):
    """How texts are generated."""

    temperature: float = Field(1.0, ge=0, le=2, allow_inf_nan=False)
    top_p: float = Field(1.0, ge=0, le=1, allow_inf_nan=False)
    top_k: TopK = 0
    min_p: Probability = 0.0
    repetition_penalty: RepetitionPenalty = 1.0
    n: int = Field(1, ge=1, le=16)
    seed: Seed | None = None
    stop: str | Stop = []
    stream: bool = False
    stream_options: StreamOptions = StreamOptions()

    def choice(self) -> SamplingSettings | None:
        """How to sample; None for greedy decoding: a temperature of 0 takes the most likely token."""
        if self.temperature == 0 and self.repetition_penalty == 1:
            return None
        return SamplingSettings(
            max(self.temperature, LEAST),
            1 if self.temperature == 0 else self.top_k,
            max(self.top_p, LEAST),
            self.min_p,
            self.repetition_penalty,
        )


class CompletionRequest(WritingRequest):
    """Prompts to continue."""

    prompt: str | list[str] = ""
    max_tokens: int = Field(COMPLETION_TOKENS, ge=1, le=LARGEST_INTEGER)
    logprobs: int | None = Field(None, ge=0, le=20)


class ContentPart(OpenAIModel):
    """A part of a message: text."""

    type: Literal["text"]
    text: str


class ChatMessage(OpenAIModel):
    """A message of a conversation."""

    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[ContentPart]

    def message(self) -> Message:
        """The message as the tokenizer encodes it."""
        parts = [self.content] if isinstance(self.content, str) else [part.text for part in self.content]
        return Message("system" if self.role == "developer" else self.role, "".join(parts))


class ChatRequest(WritingRequest):
    """A conversation to answer."""

    messages: list[ChatMessage] = Field(min_length=1)
    max_tokens: int | None = Field(None, ge=1, le=LARGEST_INTEGER)
    max_completion_tokens: int | None = Field(None, ge=1, le=LARGEST_INTEGER)
    logprobs: bool = False
    top_logprobs: int = Field(0, ge=0, le=20)

    @property
    def tokens(self) -> int:
        """New tokens at most."""
        return self.max_completion_tokens or self.max_tokens or ANSWER_TOKENS

    @property
    def top(self) -> int | None:
        """How many of the most likely tokens to report; None: no log-probabilities."""
        require(self.logprobs or not self.top_logprobs, "top_logprobs needs logprobs: true")
        return self.top_logprobs if self.logprobs else None

    def dialogue(self) -> Dialogue:
        """The conversation."""
        return Dialogue(tuple(each.message() for each in self.messages))


class EmbeddingRequest(OpenAIRequest):
    """Texts to embed."""

    input: str | list[str]
    encoding_format: Literal["float", "base64"] = "float"
