"""`clearhead generate`: what a language model writes after a prompt."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

from clearhead.decode.defaults import TOKENS
from clearhead.terminal.pipes import write_lines, write_objects, write_text
from clearhead.verbs.options import (
    JsonLines,
    LoadOptions,
    RunFolder,
    SamplingOptions,
    Temperature,
    TopK,
    TopP,
    read_texts_for,
)


@Parameter(name="*")
@dataclass(frozen=True)
class TextSamplingOptions(SamplingOptions):
    """How the next token of a text is chosen."""

    temperature: Temperature = 0.8
    top_p: TopP = 0.95
    top_k: TopK = 0
    min_p: Annotated[
        float, Parameter(help="Sample from tokens at least this fraction as likely as the most likely one.")
    ] = 0.0
    repetition_penalty: Annotated[
        float, Parameter(help="Above 1 makes tokens that have already occurred less likely.")
    ] = 1.0


def generate(
    run: RunFolder,
    *prompts: str,
    tokens: int = TOKENS,
    sampling: TextSamplingOptions = TextSamplingOptions(),
    load: LoadOptions = LoadOptions(),
    json: JsonLines = False,
) -> None:
    """Continue a prompt with a language model, as it is generated; without a prompt, each line of stdin.

    Parameters
    ----------
    prompts
        How the text begins; "" for a text from nothing.
    tokens
        Generate at most this many tokens.

    """
    from clearhead.decode.generate import generate as generate_batch
    from clearhead.decode.generate import generate_stream

    choice = sampling.choice()
    seed = sampling.seed
    opened = load.open(run, "generate")
    if len(prompts) == 1 and not json:
        [[prompt]] = read_texts_for(opened, prompts)
        for part in itertools.chain([prompt], generate_stream(opened, prompt, tokens, choice, seed), ["\n"]):
            write_text(part)
        return
    for batch in read_texts_for(opened, prompts):
        found = generate_batch(opened, batch, tokens, choice, seed)
        if json:
            write_objects({"prompt": prompt, "text": text} for prompt, text in zip(batch, found, strict=True))
        else:
            write_lines(prompt + text for prompt, text in zip(batch, found, strict=True))
        if seed is not None:
            seed += len(batch)  # each text has its own seed
