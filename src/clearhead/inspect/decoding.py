"""Decoding step by step: the candidates of a greedy search, and the tree of hypotheses of a beam search.

Both are the searches of decode/search.py, observed. Shapes: B sentences (1), V vocabulary.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeVar

import torch
from torch import Tensor

from clearhead.config import UserError, require
from clearhead.decode.beam import Beams, beam_steps
from clearhead.decode.search import Choose, Hypothesis, Prefill, write
from clearhead.decode.steps import Decoder, StopCriteria, run_steps
from clearhead.inspect.passes import TracedPass
from clearhead.inspect.patch import Change, Changes, as_list, patch
from clearhead.inspect.trace import vocabulary
from clearhead.model import EncoderDecoder, EncoderOnly
from clearhead.runs import Run

Step = TypeVar("Step")
Found = TypeVar("Found")
CANDIDATES = 6  # of a greedy step
MOST_TOKENS = 60  # written, the end included
MOST_IN_WHOLE_PASSES = 12  # tokens by which a text is continued without a cache, or as a tree
WIDEST_BEAM = 8
NO_POSITIONS = (
    "beam search reads one token at a time, so a change at single positions of the decoder cannot be applied to it; "
    "undo that change, or look at Decoding"
)


def start_search(text: TracedPass, run: Run, most: int = MOST_TOKENS) -> tuple[Decoder, Prefill, StopCriteria]:
    """Read the text: a translator starts its target, a language model continues the text."""
    model = run.model
    tokenizer = run.tokenizers.target
    if isinstance(model, EncoderOnly):
        raise UserError("an encoder-only model writes no text; look at its answer instead")
    *source, target = text.inputs.tensors(run.device)
    prompt = target[:, :1] if isinstance(model, EncoderDecoder) else target
    limit = run.recipe.model.position_limit
    max_tokens = most if limit is None else min(most, limit - prompt.size(1))
    require(max_tokens > 0, f"the text has all {limit} positions that this model can read; shorten it to continue it")
    prefill = model.start(source[0], prompt) if isinstance(model, EncoderDecoder) else model.start(prompt)
    return model, prefill, StopCriteria((tokenizer.end,), tokenizer.pad, max_tokens)


@torch.inference_mode()
def greedy_steps(text: TracedPass, run: Run, most: int = MOST_TOKENS) -> list[dict[str, Any]]:
    """The steps of a greedy search: the likeliest tokens with their probabilities; the first of them is written."""
    steps: list[dict[str, Any]] = []

    def choose(logits: Tensor, _rows: Tensor, _step: Tensor) -> Tensor:
        best = logits[0].softmax(-1).topk(CANDIDATES)
        words = [names[number] for number in best.indices.tolist()]
        steps.append({"id": int(best.indices[0]), "words": words, "probabilities": best.values.tolist()})
        return best.indices[:1]

    names = vocabulary(run.tokenizers.target, run.recipe.model.vocab)
    in_whole_passes = at_positions(text.changes)
    search = write_in_whole_passes(text, run, choose) if in_whole_passes else write_tokens(text, run, most, choose)
    run_steps(patched(search, text, run))
    return steps


def patched(search: Generator[Step, None, Found], text: TracedPass, run: Run) -> Generator[Step, None, Found]:
    """A search whose steps are computed with the changes of a pass; between two steps, others can use the model."""
    while True:
        with patch(run, text.changes):
            try:
                step = next(search)
            except StopIteration as ended:
                found: Found = ended.value
                return found
        yield step


def write_tokens(text: TracedPass, run: Run, most: int, choose: Choose) -> Generator[None, None, None]:
    """Write up to `most` tokens, with a cache: the first step reads the text."""
    for _ in write(*start_search(text, run, most), choose):
        yield


def at_positions(changes: Changes) -> bool:
    """Whether changes hold for single positions of the decoder, which a decode step of one token does not have."""
    inside = (change for name, some in changes.items() if not name.startswith("encoder") for change in as_list(some))
    axes = {"token", "query", "key"}
    return any(isinstance(each, Change) and (each.kind == "shuffle" or axes & each.at.keys()) for each in inside)


def write_in_whole_passes(text: TracedPass, run: Run, choose: Choose) -> Generator[None, None, None]:
    """Write greedily without a cache: a whole forward pass for each token, so that every position is there.

    The target is padded to its final length, which changes nothing before the padding. A translation can become as long
    as the target that was traced, so that the changes fit.
    """
    tokenizer = run.tokenizers.target
    *source, target = text.inputs.tensors(run.device)
    read = 1 if source else target.size(1)
    length = target.size(1) if source else read + MOST_IN_WHOLE_PASSES
    ids = target.new_full((1, length), tokenizer.pad)
    ids[:, :read] = target[:, :read]
    for place in range(read, length + 1):
        logits = run.model(*source, ids)[:, place - 1]
        written = choose(logits, logits, logits)
        if written == tokenizer.end or place == length:
            return
        ids[:, place] = written
        yield


def most_written(run: Run) -> int:
    """How many tokens are shown of what a model writes: a whole translation, or the beginning of a continuation."""
    return MOST_TOKENS if run.recipe.model.family == "encoder-decoder" else MOST_IN_WHOLE_PASSES


def written_by(text: TracedPass, run: Run) -> tuple[str, bool]:
    """What a model writes greedily, with the changes of a pass, and whether it came to an end.

    A translation is written as a whole, a text is continued by a few tokens.
    """
    ids = [step["id"] for step in greedy_steps(text, run, most_written(run))]
    end = run.tokenizers.target.end
    return run.tokenizers.target.decode([number for number in ids if number != end]), ids[-1:] == [end]


@torch.inference_mode()
def beam_tree(text: TracedPass, run: Run, width: int) -> dict[str, Any]:
    """All hypotheses of a beam search as nodes of a tree, and the texts of the complete ones, the best first."""
    require(1 <= width <= WIDEST_BEAM, f"width = {width}: expected 1 to {WIDEST_BEAM}")
    require(not at_positions(text.changes), NO_POSITIONS)
    totals: dict[tuple[int, ...], float] = {}  # ids of a hypothesis -> its log-probability
    [best] = run_steps(
        patched(search_beams(text, run, width), text, run), lambda beams: totals.update(unfinished(beams))
    )
    end = run.tokenizers.target.end
    complete = {(*found.ids, *([end] if found.ended else [])): found for found in best}
    for ids, found in complete.items():
        totals.setdefault(ids, found.log_probability)
    numbers = {ids: number for number, ids in enumerate(sorted(totals, key=len))}
    names = vocabulary(run.tokenizers.target, run.recipe.model.vocab)
    nodes = [
        {
            "word": names[ids[-1]],
            "parent": numbers.get(ids[:-1], -1),
            "depth": len(ids),
            "total": totals[ids],
            "rank": list(complete).index(ids) if ids in complete else -1,
            "score": complete[ids].score if ids in complete else None,
        }
        for ids in numbers
    ]
    return {"nodes": nodes, "texts": [run.tokenizers.target.decode(found.ids) for found in best]}


def search_beams(text: TracedPass, run: Run, width: int) -> Generator[Beams, None, list[list[Hypothesis]]]:
    """A beam search: the first step reads the text."""
    return (yield from beam_steps(*start_search(text, run, most_written(run)), width, nbest=width))


def unfinished(beams: Beams) -> dict[tuple[int, ...], float]:
    """The hypotheses of one sentence that are not complete: their ids, and their log-probabilities."""
    rows = zip(beams.ids[0, :, : beams.length].tolist(), beams.log_probabilities[0].tolist(), strict=True)
    return {tuple(ids): total for ids, total in rows if total > -torch.inf}
