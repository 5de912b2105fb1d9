"""The answers of OpenAI's API: completions and chat, whole or as chunks of a stream."""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from clearhead.serve.answers import collect, pieces_of
from clearhead.serve.rows import Token
from clearhead.serve.service import Piece, Text
from clearhead.text.tokenizer import Tokenizer

Json = dict[str, Any]


@dataclass
class Completion:
    """One or more texts that answer a request."""

    model: str
    texts: Sequence[Text]
    tokenizer: Tokenizer
    prompt_tokens: int
    log_probabilities: bool  # whether the answer contains them
    chat: bool  # chat, or completions
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    created: int = field(default_factory=lambda: int(time.time()))

    def head(self, chunk: bool) -> Json:
        """The fields that all answers have."""
        if not self.chat:
            return {"id": f"cmpl-{self.id}", "object": "text_completion", "created": self.created, "model": self.model}
        kind = "chat.completion.chunk" if chunk else "chat.completion"
        return {"id": f"chatcmpl-{self.id}", "object": kind, "created": self.created, "model": self.model}

    def usage(self) -> Json:
        """The numbers of prompt tokens and generated tokens."""
        written = sum(text.written for text in self.texts)
        total = self.prompt_tokens + written
        return {"prompt_tokens": self.prompt_tokens, "completion_tokens": written, "total_tokens": total}

    async def whole(self) -> Json:
        """The answer when all texts are complete."""
        choices = [self.choice(number, pieces) for number, pieces in enumerate(await collect(self.texts))]
        return {**self.head(chunk=False), "choices": choices, "usage": self.usage()}

    def choice(self, number: int, pieces: Sequence[Piece]) -> Json:
        """One complete text."""
        text = "".join(piece.text for piece in pieces)
        content: Json = (
            {"message": {"role": "assistant", "content": text, "refusal": None}} if self.chat else {"text": text}
        )
        reason = finish_reason(pieces[-1])
        return {"index": number, **content, "logprobs": self.log_probabilities_of(pieces), "finish_reason": reason}

    async def chunks(self, with_usage: bool) -> AsyncIterator[Json]:
        """The chunks of the texts as they are generated."""
        more = {"usage": None} if with_usage else {}
        if self.chat:
            for number in range(len(self.texts)):
                yield self.chunk(number, {"delta": {"role": "assistant", "content": ""}}, None, None) | more
        async for number, piece in pieces_of(self.texts):
            if not (piece.text or piece.reason or self.log_probabilities):
                continue
            content: Json = (
                {"delta": {"content": piece.text} if piece.text else {}} if self.chat else {"text": piece.text}
            )
            logprobs = self.log_probabilities_of([piece]) if piece.token else None
            yield self.chunk(number, content, logprobs, finish_reason(piece)) | more
        if with_usage:
            yield {**self.head(chunk=True), "choices": [], "usage": self.usage()}

    def chunk(self, number: int, content: Json, logprobs: Json | None, reason: str | None) -> Json:
        """A part of one text."""
        choice = {"index": number, **content, "logprobs": logprobs, "finish_reason": reason}
        return {**self.head(chunk=True), "choices": [choice]}

    def log_probabilities_of(self, pieces: Sequence[Piece]) -> Json | None:
        """The log-probabilities of a text's tokens, in the form of chat or of completions."""
        if not self.log_probabilities:
            return None
        tokens = [(piece.token, piece.offset) for piece in pieces if piece.token]
        if self.chat:
            return {"content": [self.described(token) for token, _ in tokens], "refusal": None}
        top = [
            (*token.top, (token.id, token.log_probability)) for token, _ in tokens
        ]  # the token itself is one of them
        return {
            "tokens": [self.spelling(token.id) for token, _ in tokens],
            "token_logprobs": [token.log_probability for token, _ in tokens],
            "top_logprobs": [{self.spelling(number): value for number, value in each} for each in top],
            "text_offset": [offset for _, offset in tokens],
        }

    def described(self, token: Token) -> Json:
        """A token of a chat with the most likely ones."""
        top = [self.entry(number, value) for number, value in token.top]
        return {**self.entry(token.id, token.log_probability), "top_logprobs": top}

    def entry(self, number: int, value: float) -> Json:
        """A token, its bytes and its log-probability."""
        known = number < self.tokenizer.vocab
        content = list(self.tokenizer.token_bytes(number)) if known else None
        return {"token": self.spelling(number), "bytes": content, "logprob": value}

    def spelling(self, number: int) -> str:
        """A token as readable text, or its id as a number if the tokenizer does not have it."""
        return self.tokenizer.piece(number) if number < self.tokenizer.vocab else f"<{number}>"


def finish_reason(piece: Piece) -> str | None:
    """Why a text ended, in OpenAI's words: at the end or a stop sequence, or at a limit."""
    return None if piece.reason is None else ("stop" if piece.reason == "stop" else "length")
