"""The token ids with which a run's model is called for a text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from clearhead.config import require
from clearhead.decode.fill import encode_masked
from clearhead.decode.generate import document_prompt
from clearhead.decode.limits import tokens_left
from clearhead.decode.search import greedy
from clearhead.decode.steps import StopCriteria
from clearhead.decode.translate import EXTRA_TOKENS
from clearhead.model import DecoderOnly, EncoderDecoder
from clearhead.runs import Run
from clearhead.tasks import TASKS
from clearhead.text.chat import render_prompt
from clearhead.text.dialogue import Dialogue, Message


@dataclass(frozen=True)
class ModelInputs:
    """The tokens of one text: `source` for the encoder, `target` for the decoder; a family has one of them or both."""

    text: str
    target: str
    ids: dict[str, tuple[int, ...]]
    tokens: dict[str, tuple[str, ...]]
    written: int = 0  # of a language model's text: the number of tokens at its end that the model wrote itself

    def tensors(self, device: torch.device) -> list[Tensor]:
        """The arguments of the model's forward pass, a batch of one."""
        return [torch.tensor([ids], device=device) for ids in self.ids.values()]


def encode_inputs(run: Run, text: str, target: str | None = None) -> ModelInputs:
    """Encode a text as in training.

    An encoder-decoder without a target writes its own. In a language model the target is appended to the text.
    """
    source_tokenizer = run.tokenizers.source
    tokenizer = run.tokenizers.target
    family = run.recipe.model.family
    ids: dict[str, tuple[int, ...]] = {}
    if family == "encoder-decoder":
        ids["source"] = (*source_tokenizer.encode(text), source_tokenizer.end)
        written = write_target(run, ids["source"]) if target is None else tokenizer.encode(target)
        ids["target"] = (tokenizer.start, *written)
        target = tokenizer.decode(written)
    elif family == "decoder-only":
        ids["target"] = (*encode_prompt(run, text), *tokenizer.encode(target or ""))
    else:
        require(target is None, f"target {target!r}: an encoder-only model reads one text; leave the target out")
        masked = run.recipe.model.head == "vocabulary"
        inside = encode_masked(text, tokenizer) if masked else tokenizer.encode(text)
        ids["source"] = (tokenizer.start, *inside, tokenizer.end)
    sides = {"source": source_tokenizer if family == "encoder-decoder" else tokenizer, "target": tokenizer}
    tokens = {side: tuple(map(sides[side].piece, numbers)) for side, numbers in ids.items()}
    return ModelInputs(text, target or "", ids, tokens)


def encode_prompt(run: Run, text: str) -> list[int]:
    """The ids of a language model's prompt: a document, or the first message of the user."""
    if TASKS[run.recipe.data.task].example == "dialogue":
        return render_prompt(Dialogue((Message("user", text),)), run.tokenizers.target)
    return document_prompt(run, text)


@torch.inference_mode()
def continue_text(run: Run, inputs: ModelInputs, count: int) -> ModelInputs:
    """Append up to `count` tokens that a language model writes greedily; it stops at the end token and at its limit."""
    assert isinstance(run.model, DecoderOnly)
    tokenizer = run.tokenizers.target
    read = inputs.ids["target"]
    limit = min(count, tokens_left(run.recipe.model, read=len(read)))
    if limit < 1:
        return inputs
    [best] = greedy(
        run.model,
        run.model.start(torch.tensor([read], device=run.device)),
        StopCriteria((tokenizer.end,), tokenizer.pad, limit),
    )
    ids = (*read, *best.ids)
    return replace(
        inputs, ids={"target": ids}, tokens={"target": tuple(map(tokenizer.piece, ids))}, written=len(best.ids)
    )


@torch.inference_mode()
def write_target(run: Run, source: Sequence[int]) -> list[int]:
    """Write the target of an encoder-decoder greedily: its ids without the end token."""
    assert isinstance(run.model, EncoderDecoder)
    ids = torch.tensor([source], device=run.device)
    start = torch.tensor([[run.tokenizers.target.start]], device=run.device)
    limit = min(len(source) + EXTRA_TOKENS, tokens_left(run.recipe.model, read=1))
    ending = StopCriteria((run.tokenizers.target.end,), run.tokenizers.target.pad, limit)
    [best] = greedy(run.model, run.model.start(ids, start), ending)
    return best.ids
