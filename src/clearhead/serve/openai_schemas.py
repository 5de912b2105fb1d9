"""Requests of OpenAI's API: the supported fields; others are refused if they would change the answer, or ignored."""

# Annotations are evaluated here, unlike elsewhere: pydantic reads them.

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, model_validator

from clearhead.decode.defaults import ANSWER_TOKENS
from clearhead.decode.sampling import SamplingSettings
from clearhead.serve.schemas import LARGEST_INTEGER, Seed
from clearhead.text.dialogue import Dialogue, Message

COMPLETION_TOKENS = 16  # OpenAI's default
NOT_SUPPORTED: dict[str, tuple[Any, ...]] = {  # unsupported settings -> the values that have no effect and are accepted
    "best_of": (1,),
    "echo": (False,),
    "frequency_penalty": (0,),
    "presence_penalty": (0,),
    "functions": ([],),
    "tools": ([],),
    "logit_bias": ({},),
    "response_format": ({"type": "text"},),
    "suffix": ("",),
    "dimensions": (),
}

Stop = Annotated[list[Annotated[str, Field(min_length=1)]], Field(max_length=16)]


class OpenAIRequest(BaseModel):
    """The fields that all requests have."""

    model: str

    @model_validator(mode="before")
    @classmethod
    def refuse_unsupported(cls, given: Any) -> Any:
        """Refuse settings that would change the answer, instead of ignoring them."""
        for name, harmless in NOT_SUPPORTED.items():
            value = given.get(name) if isinstance(given, dict) else None
            if value is not None and value not in harmless:
                raise ValueError(f"{name} is not supported; leave it out")
        return given


class StreamOptions(BaseModel):
    """What a stream contains besides the text."""

    include_usage: bool = False


class WritingRequest(OpenAIRequest):
    """How texts are generated."""

    temperature: float | None = Field(None, ge=0, le=2, allow_inf_nan=False)
    top_p: float | None = Field(None, gt=0, le=1, allow_inf_nan=False)
    n: int | None = Field(None, ge=1, le=16)
    seed: Seed | None = None
    stop: str | Stop | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None

    def choice(self) -> SamplingSettings | None:
        """How to sample; None for a temperature of 0, which is greedy decoding."""
        temperature = 1.0 if self.temperature is None else self.temperature
        top_p = 1.0 if self.top_p is None else self.top_p
        return SamplingSettings(max(temperature, 1e-6), top_p=top_p) if temperature > 0 else None

    def stops(self) -> list[str]:
        """The stop sequences."""
        return [self.stop] if isinstance(self.stop, str) else self.stop or []

    @property
    def with_usage(self) -> bool:
        """Whether a stream ends with the numbers of tokens."""
        return self.stream_options is not None and self.stream_options.include_usage


class CompletionRequest(WritingRequest):
    """Prompts to continue."""

    prompt: str | list[str] = ""
    max_tokens: int | None = Field(None, ge=1, le=LARGEST_INTEGER)
    logprobs: int | None = Field(None, ge=0, le=20)

    @property
    def tokens(self) -> int:
        """New tokens at most."""
        return self.max_tokens or COMPLETION_TOKENS


class ContentPart(BaseModel):
    """A part of a message: text."""

    type: Literal["text"]
    text: str


class ChatMessage(BaseModel):
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
    logprobs: bool | None = None
    top_logprobs: int | None = Field(None, ge=0, le=20)

    @property
    def tokens(self) -> int:
        """New tokens at most."""
        return self.max_completion_tokens or self.max_tokens or ANSWER_TOKENS

    @property
    def top(self) -> int | None:
        """How many of the most likely tokens to report; None: no log-probabilities."""
        return (self.top_logprobs or 0) if self.logprobs else None

    def dialogue(self) -> Dialogue:
        """The conversation."""
        return Dialogue(tuple(each.message() for each in self.messages))


class EmbeddingRequest(OpenAIRequest):
    """Texts to embed."""

    input: str | list[str]
    encoding_format: Literal["float", "base64"] | None = None
