"""Prompt to continuation: what a language model writes, all at once or as it is written.

A prompt that is too long for the model is refused, not cut.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from clearhead.decode.batching import padded_batches
from clearhead.decode.defaults import TOKENS
from clearhead.decode.limits import check_prompt_length, check_tokens
from clearhead.decode.sampling import SamplingSettings, check_seed
from clearhead.decode.search import greedy, sample, stream
from clearhead.decode.steps import StopCriteria
from clearhead.decode.stream import stream_text
from clearhead.fast.choose import decoder_for
from clearhead.model import DecoderOnly
from clearhead.runs import Run


def generate(
    run: Run,
    prompts: Sequence[str],
    tokens: int = TOKENS,
    choice: SamplingSettings | None = None,
    seed: int | None = None,
) -> list[str]:
    """Continue each prompt by at most `tokens` tokens, greedily or as `choice` says; return the new text only."""
    model = run.model
    assert isinstance(model, DecoderOnly)
    tokenizer = run.tokenizers.target
    prompt_ids = [[tokenizer.start, *ids] for ids in tokenizer.encode_batch(prompts)]
    longest = max(map(len, prompt_ids), default=0)
    check_tokens(run.recipe.model, longest, tokens)
    check_prompt_length(run.recipe, longest)
    ending = StopCriteria((tokenizer.end,), tokenizer.pad, tokens)
    found = [""] * len(prompt_ids)
    decoder = decoder_for(model)
    for batch in padded_batches(prompt_ids, tokenizer.pad, run.device, left=True):
        with torch.inference_mode():
            prefill = decoder.start(batch.ids, batch.mask)
        read = [prompt_ids[member] for member in batch.members]
        if choice:
            seeds = None if seed is None else [seed + member for member in batch.members]
            best = sample(decoder, prefill, ending, choice, seeds, read)
        else:
            best = greedy(decoder, prefill, ending)
        for member, text in zip(batch.members, tokenizer.decode_after(read, [each.ids for each in best]), strict=True):
            found[member] = text
    return found


def generate_stream(
    run: Run, prompt: str, tokens: int = TOKENS, choice: SamplingSettings | None = None, seed: int | None = None
) -> Iterator[str]:
    """Yield the continuation of a prompt as it is written."""
    return continue_ids(run, document_prompt(run, prompt), tokens, choice, seed)


def document_prompt(run: Run, text: str) -> list[int]:
    """The ids of a prompt: the start token of a document, then the text."""
    tokenizer = run.tokenizers.target
    return [tokenizer.start, *(tokenizer.encode(text) if text else [])]


def continue_ids(
    run: Run, prompt: Sequence[int], tokens: int, choice: SamplingSettings | None, seed: int | None
) -> Iterator[str]:
    """Yield the text that follows a prompt of ids, as it is written."""
    model = run.model
    assert isinstance(model, DecoderOnly)
    tokenizer = run.tokenizers.target
    check_tokens(run.recipe.model, len(prompt), tokens)
    check_prompt_length(run.recipe, len(prompt))
    if seed is not None:
        check_seed(seed)
    ids = torch.tensor([prompt], device=run.device)
    ending = StopCriteria((tokenizer.end,), tokenizer.pad, tokens)

    def new_ids() -> Iterator[int]:
        decoder = decoder_for(model)
        with torch.inference_mode():
            prefill = decoder.start(ids)
        for number in stream(decoder, prefill, ending, choice, None if seed is None else [seed], [prompt]):
            if int(number) in ending.end:
                return
            yield int(number)

    return stream_text(new_ids(), tokenizer, prompt)
