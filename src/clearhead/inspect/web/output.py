"""The explorer's requests about a model's output: likely tokens and reasons for them, texts, the effect of a change."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from clearhead.config import require
from clearhead.inspect.answer import answer_of, importance, log_probabilities
from clearhead.inspect.decoding import beam_tree, greedy_steps, written_by
from clearhead.inspect.graph import residual_stream
from clearhead.inspect.kinds import kind_at
from clearhead.inspect.lens import contributions, likeliest, logit_lens, rollout, saliency
from clearhead.inspect.milestones import milestones
from clearhead.inspect.names import names_of
from clearhead.inspect.passes import Pass, Passes, fits
from clearhead.inspect.paths import Node
from clearhead.inspect.roles import alignment, head_roles
from clearhead.inspect.trace import vocabulary
from clearhead.inspect.web.facts import snapshots_of, stack_of
from clearhead.runs import Run

Answer = dict[str, Any] | Tensor | list[Tensor]
MOST_TOKENS = 2_000  # of one side
MOST_CANDIDATES = 100
MOST_PARTS = 14  # contributions to a logit
MOST_PARAMETERS = 30_000_000  # of a model whose snapshots are all looked at
MOST_LINKED = 80  # tokens that lines are drawn between


class OutputRequests:
    """Answers requests about the output of the passes that a page shows."""

    def __init__(self, passes: Passes, lock: threading.RLock) -> None:
        self.passes = passes
        self.lock = lock

    def methods(self) -> tuple[Callable[..., Answer], ...]:
        """All requests."""
        about_logits = (self.next, self.lens, self.why, self.saliency, self.rollout)
        return (*about_logits, self.decode, self.beam, self.effect, self.importance, self.roles, self.milestones)

    def next(self, trace: str, token: str) -> Answer:
        """The likeliest tokens at a position; their logits are a row of the tensor `head.logits`."""
        part = self.passes.part(trace, "head.logits")
        logits = part["head.logits"][0]
        best = logits[whole("token", token, len(logits))].topk(min(MOST_CANDIDATES, logits.size(-1)))
        names = vocabulary(part.run.tokenizers.target, logits.size(-1))
        return {"ids": best.indices.tolist(), "words": [names[n] for n in best.indices.tolist()]}

    def lens(self, trace: str, token: str) -> Answer:
        """The logit lens: the likeliest tokens, or classes, after each layer."""
        run = self.passes[trace].run()
        stack, side = ("encoder", "source") if run.recipe.model.family == "encoder-only" else ("decoder", "target")
        part = self.passes.part(trace, "head.logits", *stream_of(run, stack))
        labels = part.named("head.logits").labels[-1]
        found = logit_lens(part, [whole("token", token, len(part.tokens[side]))])
        layers = [{"name": name, "best": likeliest(logits.flatten(), labels, 3)} for name, logits in found.items()]
        return {"layers": layers}

    def why(self, trace: str, token: str, choice: str) -> Answer:
        """The largest contributions to a logit, positive and negative."""
        run = self.passes[trace].run()
        config = run.recipe.model
        names = [name for name in names_of(run.model, config) if kind_at(Node(name, config)).in_logit]
        part = self.passes.part(trace, *names)
        found = contributions(part, whole("choice", choice, 10**8), whole("token", token, MOST_TOKENS))
        parts = sorted(found.parts.items(), key=lambda pair: -abs(pair[1]))[:MOST_PARTS]
        return {"logit": found.logit, "parts": parts}

    def saliency(self, trace: str, token: str, choice: str) -> Answer:
        """Gradient × input of each token; gradients take much memory, so a long text gets no answer."""
        with self.lock:
            part = self.passes.part(trace, "head.logits") if fits(self.passes[trace]) else None
        if part is None:
            return {}
        found = saliency(part, whole("choice", choice, 10**8), whole("token", token, MOST_TOKENS))
        return {side: values.tolist() for side, values in found.items()}

    def rollout(self, trace: str, stack: str) -> Answer:
        """Attention rollout after the last layer, for the first tokens."""
        require(
            fits(self.passes[trace]),
            "this text is too long for rollout, which needs all attention weights at once",
        )
        found = rollout(self.passes.part(trace, f"{stack}.blocks.0.attention.weights"), stack)[-1]
        found = found[:MOST_LINKED, :MOST_LINKED]
        return {"shape": list(found.shape), "data": found.flatten().tolist()}

    def find(self, trace: str) -> tuple[Pass, Run]:
        """A pass, and the run whose model it goes through."""
        with self.lock:
            return self.passes[trace], self.passes[trace].run()

    def decode(self, trace: str) -> Answer:
        """Greedy decoding: the candidates of each step."""
        return {"steps": greedy_steps(*self.find(trace))}

    def beam(self, trace: str, width: str) -> Answer:
        """Beam search: the tree of its hypotheses."""
        return beam_tree(*self.find(trace), whole("width", width, 100))

    def effect(self, trace: str) -> Answer:
        """What a change does to the answer: its probabilities before and after, and what the model writes instead."""
        with self.lock:
            after = self.passes[trace]
            before = self.passes[after.before or trace]
            output = output_of(after.run())
            first = self.passes.part(after.before or trace, output)
            second = self.passes.part(trace, output)
        if output == "pooled":
            return {"cosine": torch.cosine_similarity(first["pooled"], second["pooled"]).item()}
        answer = answer_of(first)
        probabilities = [log_probabilities(part, answer).exp().tolist() for part in (first, second)]
        rows = zip(answer.rows, answer.words, *probabilities, strict=True)
        found: dict[str, Any] = {
            "parts": [dict(zip(("row", "word", "before", "after"), row, strict=True)) for row in rows]
        }
        if second.run.recipe.model.family == "encoder-only":
            return found
        wrote, _ = written_by(before, first.run) if after.before else ("", False)
        writes, ended = written_by(after, second.run)
        return found | {"wrote": wrote, "writes": writes, "ended": ended}

    def importance(self, trace: str, name: str) -> Answer:
        """How much the answer's log-probability changes without each head of a sublayer, and without all of it."""
        with self.lock:
            part = self.passes.part(trace, output_of(self.passes[trace].run()))
        *heads, whole_of_it = importance(part, name)
        return {"heads": heads, "whole": whole_of_it}

    def roles(self, trace: str, name: str) -> Answer:
        """What each head of an attention attends to most."""
        require(
            name.rpartition(".")[2] in ("attention", "cross_attention"), f"name {name[:99]!r}: expected an attention"
        )
        with self.lock:
            part = self.passes.part(trace, f"{name}.weights", output_of(self.passes[trace].run()))
        aligned = alignment(part) if Node(name, part.run.recipe.model).in_cross_attention else None
        return {"heads": [role._asdict() for role in head_roles(part, name, aligned)]}

    def milestones(self, trace: str) -> Answer:
        """The milestones of training for the text of a pass; a large model, which would take long, has none."""
        with self.lock:
            pass_id = trace
            while self.passes[pass_id].before:
                pass_id = self.passes[pass_id].before
            finished = self.passes[pass_id].run()
            size = sum(parameter.numel() for parameter in finished.model.parameters())
            if size > MOST_PARAMETERS or not fits(self.passes[pass_id]):
                return {"found": []}
            part = self.passes.part(pass_id, output_of(finished))
        folder = finished.folder / "snapshots"
        paths = {step: folder / f"step-{step:08d}.safetensors" for step in snapshots_of(finished)}
        return {"found": [milestone._asdict() for milestone in milestones(part, paths)]}


def output_of(run: Run) -> str:
    """The tensor that a model's output is."""
    return "pooled" if run.recipe.model.head == "embedding" else "head.logits"


def stream_of(run: Run, stack: str) -> list[str]:
    """The states of a stack's residual stream, from the input of the first block on."""
    stack_of(run, stack)  # refuses a stack that does not exist
    return residual_stream(stack, run.recipe.model)


def whole(name: str, value: str, limit: int) -> int:
    """Parse a whole number below a limit."""
    require(
        value.isdecimal() and len(value) < 9 and int(value) < limit, f"{name} = {value!r}: expected 0 to {limit - 1}"
    )
    return int(value)
