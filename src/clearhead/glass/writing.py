"""Writing, watched: the candidates at each step of a greedy search, and a beam as the tree that it grows.

Shapes: W hypotheses, T tokens written, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from clearhead.config import UserError, require
from clearhead.decode.search import Beams, Decoder, Ending, Prefill, beam
from clearhead.glass.passes import Pass
from clearhead.glass.patch import patch
from clearhead.glass.trace import vocabulary
from clearhead.model import EncoderDecoder, EncoderOnly
from clearhead.model.block import to_float32
from clearhead.runs import Run

CANDIDATES = 6
LONGEST = 60  # tokens written, the end included
WIDEST = 8


def begin_writing(watched: Pass, run: Run) -> tuple[Decoder, Prefill, Ending]:
    """The model after it has read the text: a translation begins, a text goes on."""
    model, tokenizer = run.model, run.tokenizers.target
    if isinstance(model, EncoderOnly):
        raise UserError("an encoder-only model writes nothing; look at its answer instead")
    *source, target = watched.inputs.tensors(run.device)
    prompt = target[:, :1] if isinstance(model, EncoderDecoder) else target
    limit = run.recipe.model.position_limit
    longest = LONGEST if limit is None else min(LONGEST, limit - prompt.size(1))
    require(longest > 0, f"the text fills all {limit} places of this model; shorten it to see it go on")
    prefill = model.start(source[0], prompt) if isinstance(model, EncoderDecoder) else model.start(prompt)
    return model, prefill, Ending((tokenizer.end,), tokenizer.pad, longest)


@torch.inference_mode()
def write_watched(watched: Pass, run: Run) -> Iterator[dict[str, Any]]:
    """Step by step: the likeliest tokens with their probabilities; the first of them is written."""
    with patch(run, watched.changes):
        model, (logits, state), ending = begin_writing(watched, run)
        names = vocabulary(run.tokenizers.target, logits.size(-1))
        for _ in range(int(ending.max_tokens)):
            best = to_float32(logits)[0].softmax(-1).topk(CANDIDATES)
            ids = best.indices.tolist()
            yield {"words": [names[number] for number in ids], "probabilities": best.values.tolist()}
            if ids[0] in ending.end:
                return
            logits = model.step(best.indices[None, :1], state)


@torch.inference_mode()
def beam_tree(watched: Pass, run: Run, width: int) -> dict[str, Any]:
    """All hypotheses that a beam search held: as nodes with their parents, and the complete ones with their scores.

    The search is decode/search.py's own.
    """
    require(1 <= width <= WIDEST, f"width = {width}: expected 1 to {WIDEST}")
    with patch(run, watched.changes):
        model, prefill, ending = begin_writing(watched, run)
        seen: dict[tuple[int, ...], float] = {}
        [best] = beam(model, prefill, ending, width, nbest=width, on_step=lambda beams: seen.update(unfinished(beams)))
    names = vocabulary(run.tokenizers.target, prefill[0].size(-1))
    end = run.tokenizers.target.end
    complete = {(*found.ids, *([end] if found.ended else [])): found for found in best}
    for ids, found in complete.items():
        seen.setdefault(ids, found.log_probability)
    places = {ids: place for place, ids in enumerate(sorted(seen, key=len))}
    nodes = [
        {
            "word": names[ids[-1]],
            "parent": places.get(ids[:-1], -1),
            "depth": len(ids),
            "total": seen[ids],
            "rank": list(complete).index(ids) if ids in complete else -1,
            "score": complete[ids].score if ids in complete else None,
        }
        for ids in places
    ]
    return {"nodes": nodes, "texts": [run.tokenizers.target.decode(found.ids) for found in best]}


def unfinished(beams: Beams) -> dict[tuple[int, ...], float]:
    """The hypotheses of one sentence that go on: their ids, and their log-probabilities."""
    rows = zip(beams.ids[0].tolist(), beams.log_probabilities[0].tolist(), strict=True)
    return {tuple(ids): total for ids, total in rows if total > -torch.inf}
