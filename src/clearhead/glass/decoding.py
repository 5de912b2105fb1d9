"""Decoding step by step: the candidates of a greedy search, and the tree of hypotheses of a beam search.

Both are the searches of decode/search.py, observed. Shapes: B sentences (1), V vocabulary.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from clearhead.config import UserError, require
from clearhead.decode.beam import Beams, beam
from clearhead.decode.search import Prefill, write
from clearhead.decode.steps import Decoder, Ending
from clearhead.glass.passes import Pass
from clearhead.glass.patch import patch
from clearhead.glass.trace import vocabulary
from clearhead.model import EncoderDecoder, EncoderOnly
from clearhead.runs import Run

CANDIDATES = 6  # of a greedy step
MOST_TOKENS = 60  # written, the end included
WIDEST_BEAM = 8


def start_search(text: Pass, run: Run) -> tuple[Decoder, Prefill, Ending]:
    """Read the text: a translator starts its target, a language model continues the text."""
    model = run.model
    tokenizer = run.tokenizers.target
    if isinstance(model, EncoderOnly):
        raise UserError("an encoder-only model writes no text; look at its answer instead")
    *source, target = text.inputs.tensors(run.device)
    prompt = target[:, :1] if isinstance(model, EncoderDecoder) else target
    limit = run.recipe.model.position_limit
    max_tokens = MOST_TOKENS if limit is None else min(MOST_TOKENS, limit - prompt.size(1))
    require(max_tokens > 0, f"the text has all {limit} positions that this model can read; shorten it to continue it")
    prefill = model.start(source[0], prompt) if isinstance(model, EncoderDecoder) else model.start(prompt)
    return model, prefill, Ending((tokenizer.end,), tokenizer.pad, max_tokens)


@torch.inference_mode()
def greedy_steps(text: Pass, run: Run) -> list[dict[str, Any]]:
    """The steps of a greedy search: the likeliest tokens with their probabilities; the first of them is written."""
    steps: list[dict[str, Any]] = []

    def choose(logits: Tensor, _rows: Tensor, _step: Tensor) -> Tensor:
        best = logits[0].softmax(-1).topk(CANDIDATES)
        words = [names[number] for number in best.indices.tolist()]
        steps.append({"words": words, "probabilities": best.values.tolist()})
        return best.indices[:1]

    with patch(run, text.changes):
        model, prefill, ending = start_search(text, run)
        names = vocabulary(run.tokenizers.target, prefill[0].size(-1))
        for _ in write(model, prefill, ending, choose):
            pass
    return steps


@torch.inference_mode()
def beam_tree(text: Pass, run: Run, width: int) -> dict[str, Any]:
    """All hypotheses of a beam search as nodes of a tree, and the texts of the complete ones, the best first."""
    require(1 <= width <= WIDEST_BEAM, f"width = {width}: expected 1 to {WIDEST_BEAM}")
    totals: dict[tuple[int, ...], float] = {}  # ids of a hypothesis -> its log-probability
    with patch(run, text.changes):
        model, prefill, ending = start_search(text, run)
        [best] = beam(
            model, prefill, ending, width, nbest=width, on_step=lambda beams: totals.update(unfinished(beams))
        )
    end = run.tokenizers.target.end
    complete = {(*found.ids, *([end] if found.ended else [])): found for found in best}
    for ids, found in complete.items():
        totals.setdefault(ids, found.log_probability)
    numbers = {ids: number for number, ids in enumerate(sorted(totals, key=len))}
    names = vocabulary(run.tokenizers.target, prefill[0].size(-1))
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


def unfinished(beams: Beams) -> dict[tuple[int, ...], float]:
    """The hypotheses of one sentence that are not complete: their ids, and their log-probabilities."""
    rows = zip(beams.ids[0, :, : beams.length].tolist(), beams.log_probabilities[0].tolist(), strict=True)
    return {tuple(ids): total for ids, total in rows if total > -torch.inf}
