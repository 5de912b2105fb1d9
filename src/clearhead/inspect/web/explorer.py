"""The requests of the explorer's page and their answers: JSON data, or a tensor. No HTTP here."""

from __future__ import annotations

import hashlib
import inspect
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from clearhead.config import UserError, require, suggest
from clearhead.files import read_metrics
from clearhead.inspect.answer import answer_of, importance, importance_cost, log_probabilities, output_of
from clearhead.inspect.decoding import beam_tree, greedy_steps, written_by
from clearhead.inspect.explain import explain
from clearhead.inspect.formula import NOTHING, equals
from clearhead.inspect.inputs import continue_text, encode_inputs
from clearhead.inspect.kinds import kind_at
from clearhead.inspect.lens import contributions, likeliest, logit_lens, rollout, saliency
from clearhead.inspect.names import names_of, parents
from clearhead.inspect.passes import THUMBNAIL_SIZE, Passes, TracedPass, fits, shrunk
from clearhead.inspect.patch import from_json, patch
from clearhead.inspect.paths import Node, block_of, kind_of
from clearhead.inspect.roles import alignment, head_roles, milestones
from clearhead.inspect.story import story
from clearhead.inspect.trace import Trace, vocabulary
from clearhead.inspect.web import facts
from clearhead.inspect.web.diagram import draw_diagram
from clearhead.inspect.web.facts import snapshots_of, stack_of, stream_of, tokenizer_of
from clearhead.inspect.web.merges import replay
from clearhead.inspect.web.pictures import losses, neighbours, position_vectors, word_map
from clearhead.model.stack import Stack
from clearhead.runs import Run, load_weights, model_to_load, open_run
from clearhead.text.tokenizer import Tokenizer

Answer = dict[str, Any] | Tensor | list[Tensor]
REQUESTS = (
    *("run", "metrics", "waves", "merges"),
    *("trace", "diagram", "words", "near", "lengths"),
    *("tensor", "tensors", "story", "cell"),
    *("next", "lens", "why", "saliency", "rollout", "decode", "beam", "effect", "importance", "roles", "milestones"),
)
UNLOCKED = ("saliency", "milestones", "decode", "beam", "effect", "importance", "roles")  # locked in part only
LONGEST_TEXT = 20_000  # characters
MOST_TOKENS = 2_000  # of one side
MOST_WRITTEN = 64  # tokens by which a language model continues a text
MOST_AT_ONCE = 20 * 10**9  # multiplications that the page starts without being asked to
MOST_TERMS = 8  # of the sum that gives a cell
MOST_CANDIDATES = 100
MOST_PARTS = 14  # contributions to a logit
MOST_PARAMETERS = 30_000_000  # of a model whose snapshots are all looked at
MOST_LINKED = 80  # tokens that lines are drawn between
OVERFLOW = (
    "with this change the numbers overflow, and the model has no output any more; choose a smaller factor, or undo it"
)
TOO_LONG_FOR_ROLLOUT = "this text is too long for rollout, which needs all attention weights at once"


class Explorer:
    """Answers the page's requests about one run, or about two runs to compare."""

    def __init__(self, folders: Sequence[str | Path]) -> None:
        self.runs = [open_run(folder) for folder in folders]
        kinds = {f"{run.recipe.model.family} ({run.recipe.model.head})" for run in self.runs}
        require(len(kinds) == 1, f"only runs of one family and head can be compared, not {' and '.join(sorted(kinds))}")
        self.passes = Passes()
        self.at_step: dict[tuple[str, str], Run] = {}  # (run, snapshot) -> the run with its weights; at most one
        self.lock = threading.RLock()
        self.requests: dict[str, Callable[..., Answer]] = {name: getattr(self, name) for name in REQUESTS}

    def answer(self, path: str, query: Mapping[str, str]) -> Answer:
        """Answer a request. Requests are answered one at a time, except those that take long: others need not wait."""
        if path not in self.requests:
            raise UserError(f"there is no request {path!r}; {suggest(path, self.requests)}")
        method = self.requests[path]
        try:
            inspect.signature(method).bind(**query)
        except TypeError as error:
            raise UserError(f"{path}: {error}") from error
        with nullcontext() if path in UNLOCKED else self.lock:
            return method(**query)

    def run(self) -> Answer:
        """The settings, stacks and kinds of tensors of the runs."""
        return {"runs": [facts.describe(run) for run in self.runs]}

    def metrics(self, run: str) -> Answer:
        """The training and validation loss of a run over its steps."""
        rows = read_metrics(self.chosen(run).folder)
        return {kind: losses(rows, kind) for kind in ("train", "valid")}

    def chosen(self, run: str, snapshot: str = "") -> Run:
        """A run by its number; with a snapshot, the run with the weights of that training step."""
        found = self.runs[whole("run", run, len(self.runs))]
        if not snapshot:
            return found
        known = snapshots_of(found)
        require(snapshot in map(str, known), f"snapshot {snapshot!r}: of this run there are {known or 'none'}")
        if (run, snapshot) not in self.at_step:
            self.passes.drop_where(lambda _, trace: trace.run not in self.runs)  # frees the last snapshot's weights
            model = model_to_load(found.recipe.model)
            load_weights(model, found.folder / "snapshots" / f"step-{int(snapshot):08d}.safetensors")
            model.requires_grad_(requires_grad=False).eval()
            self.at_step = {(run, snapshot): replace(found, model=model.to(found.device))}
        return self.at_step[run, snapshot]

    def trace(
        self, run: str, text: str, target: str = "", snapshot: str = "", changes: str = "", write: str = "0"
    ) -> Answer:
        """Trace a text: its tokens, the model's output, and an id for requests about its tensors.

        A language model first continues the text by `write` tokens.
        """
        for name, value in (("text", text), ("target", target), ("changes", changes)):
            require(len(value) <= LONGEST_TEXT, f"{name} has {len(value):,} characters; at most {LONGEST_TEXT:,} fit")
        key = self.begin(run, text, target, snapshot, changes, whole("write", write, MOST_WRITTEN + 1))
        output = output_of(self.runs[int(run)])
        part = self.passes.part(key, output)
        require(bool(part[output].isfinite().all()), OVERFLOW)
        named: dict[str, Any] = {"id": key, "names": facts.entries_of(part.run)}
        named |= {"text": part.text, "target": part.target_text, "before": self.passes[key].before}
        named |= {"quick": importance_cost(part) <= MOST_AT_ONCE, "unchanged": named["before"] if changes else key}
        return named | {"written": part.inputs.written} | facts.tokens(part) | facts.outcome(part)

    def begin(self, run: str, text: str, target: str, snapshot: str, changes: str, write: int) -> str:
        """Tokenize a text: the id of its pass.

        A model that is changed, or not yet trained, reads the same tokens as the finished one without changes, so that
        every cell can be compared; what it would write itself is another request.
        """
        asked = json.dumps([run, text, target, snapshot, changes, write])
        key = hashlib.blake2b(asked.encode(), digest_size=12).hexdigest()
        before = self.begin(run, text, target, snapshot if changes else "", "", write) if snapshot or changes else ""
        if key in self.passes:
            return key
        find = partial(self.chosen, run, snapshot)
        if before:
            find()  # refuses a snapshot that does not exist
            self.passes.add(key, TracedPass(find, self.passes[before].inputs, from_json(read_json(changes)), before))
            return key
        count = max(map(len, find().tokenizers.source.encode_batch([text, target])))
        require(count <= MOST_TOKENS, f"the text has {count:,} tokens; at most {MOST_TOKENS:,} can be shown")
        with patch(find(), {}):  # waits until no other request changes the model
            inputs = encode_inputs(find(), text, target or None)
            read = continue_text(find(), inputs, write) if write else inputs
        self.passes.add(key, TracedPass(find, read, {}))
        return key

    def diagram(self, trace: str, layer: str = "", first: str = "0") -> Answer:
        """The tensors in the boxes of the diagram; `layer`: only this block of each stack is drawn in full."""
        block = whole("layer", layer, 1000) if layer else None
        return draw_diagram(self.passes, trace, block, whole("first", first, MOST_TOKENS))

    def tensor(self, trace: str, name: str, index: str = "", small: str = "") -> Tensor:
        """A tensor of a trace without its batch axis, indexed along its first axes; `small`: a thumbnail."""
        [found] = self.tensors(trace, name, index, small)
        return found

    def tensors(self, trace: str, names: str, indices: str = "", small: str = "") -> list[Tensor]:
        """Several tensors, "NAME,NAME", each with an index, "0,3;1"; thumbnails of large ones are made in one pass."""
        wanted = names.split(",")
        places = indices.split(";") if indices else [""] * len(wanted)
        require(len(places) == len(wanted), f"indices {indices[:99]!r}: {len(places)} for {len(wanted)} tensors")
        several = len({block_of(name) for name in wanted}) > 1
        if not several or not small or fits(self.passes[trace]):
            parts = [self.passes.part(trace, name) for name in wanted]
        else:
            for name in wanted:
                self.check_name(trace, name)
            parts = [self.passes.thumbnails(trace, wanted)] * len(wanted)
        return list(map(partial(self.cut_out, small=bool(small)), parts, wanted, places))

    def cut_out(self, part: Trace, name: str, index: str, small: bool) -> Tensor:
        """A tensor of a trace, or what is at an index of its first axes."""
        value = part[name]
        axes = part.axes(name)
        if "batch" in axes:
            value = value.select(axes.index("batch"), 0)
        for each in filter(None, index.split(",")):
            value = value.select(0, whole("index", each, value.size(0)))
        return shrunk(value, THUMBNAIL_SIZE) if small and value.dim() > 1 else value

    def story(self, trace: str, name: str) -> Answer:
        """What a tensor is, what it is computed from, and by which lines of code."""
        self.check_name(trace, name)
        return asdict(story(self.passes.part(trace, name), name))

    def cell(self, trace: str, name: str, index: str) -> Answer:
        """How one cell was computed; the index leaves out the batch axis."""
        self.check_name(trace, name)
        part = self.passes.part(trace, name, *parents(name, self.passes[trace].run().recipe.model))
        indices = [whole("index", each, 10**8) for each in filter(None, index.split(","))]
        axes = part.axes(name)
        if "batch" in axes:
            indices.insert(axes.index("batch"), 0)
        explained = explain(part, name, indices)
        terms = sorted(explained.terms, key=lambda term: -abs(term.value))[:MOST_TERMS]
        return {
            "place": explained.place,
            "value": explained.value,
            "traced": explained.traced,
            "changed": explained.changed,
            "formula": explained.computation.formula.math(),
            "numbers": equals(NOTHING, explained.computation.numbers).math(),
            "terms": [{"label": term.label, "value": term.value} for term in terms],
        }

    def check_name(self, trace: str, name: str) -> None:
        """Refuse a name that no tensor of this trace has."""
        run = self.passes[trace].run()
        known = names_of(run.model, run.recipe.model)
        if name not in known:  # a suggestion takes long
            raise UserError(f"there is no tensor {name[:99]!r}; {suggest(name[:99], known)}")

    def lengths(self, trace: str, stack: str) -> Answer:
        """The norm of each token's vector, at each state of the residual stream: name -> norms."""
        names = stream_of(self.passes[trace].run(), stack)
        part = self.passes.part(trace, *names)
        return {name: part[name][0].norm(dim=-1).tolist() for name in names}

    def waves(self, run: str, stack: str, count: str) -> Answer:
        """The vectors of the first positions of a stack; with rotary positions, the cosines of their angles."""
        found = position_vectors(stack_of(self.chosen(run), stack), whole("count", count, 513))
        return {"shape": list(found.shape), "data": [[round(x, 4) for x in row] for row in found.tolist()]}

    def words(self, trace: str, stack: str) -> Answer:
        """A table of embeddings projected to two dimensions, with the tokens of the text in it."""
        return word_map(*self.embeddings(trace, stack))

    def near(self, trace: str, stack: str) -> Answer:
        """For each token of the text, the tokens with the most similar embeddings: id -> tokens and cosines."""
        return neighbours(*self.embeddings(trace, stack))

    def embeddings(self, trace: str, stack: str) -> tuple[Stack, Tokenizer, tuple[int, ...]]:
        """A stack, the tokenizer of its text, and the ids of the text."""
        run = self.passes[trace].run()
        side = "source" if stack == "encoder" else "target"
        return stack_of(run, stack), tokenizer_of(run, side), self.passes[trace].inputs.ids[side]

    def merges(self, run: str, side: str, text: str) -> Answer:
        """The merges of byte-pair encoding that lead to the tokens of a text."""
        require(len(text) <= LONGEST_TEXT, f"text has {len(text):,} characters; at most {LONGEST_TEXT:,} fit")
        tokenizer = tokenizer_of(self.chosen(run), side)
        return {"pieces": tokenizer.pieces(text), "words": replay(tokenizer, text)}

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
        require(fits(self.passes[trace]), TOO_LONG_FOR_ROLLOUT)
        weights = self.passes.part(trace, f"{stack}.blocks.0.attention.weights")
        found = rollout(weights, stack)[-1, :MOST_LINKED, :MOST_LINKED]
        return {"shape": list(found.shape), "data": found.flatten().tolist()}

    def find(self, trace: str) -> tuple[TracedPass, Run]:
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
        columns = ("row", "word", "before", "after")
        found: dict[str, Any] = {"parts": [dict(zip(columns, row, strict=True)) for row in rows]}
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
        require(kind_of(name) in ("attention", "cross_attention"), f"name {name[:99]!r}: expected an attention")
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

    def close(self, traces: Sequence[str]) -> None:
        """Free the tensors of traces that no page shows any more."""
        with self.lock:
            for trace in traces:
                self.passes.drop(trace)


def whole(name: str, value: str, limit: int) -> int:
    """Parse a whole number below a limit."""
    require(
        value.isdecimal() and len(value) < 9 and int(value) < limit, f"{name} = {value!r}: expected 0 to {limit - 1}"
    )
    return int(value)


def read_json(text: str) -> Any:
    """Parse JSON; an empty text is an empty object."""
    try:
        return json.loads(text or "{}")
    except (ValueError, RecursionError) as error:
        raise UserError(f"changes {text[:80]!r}: expected JSON: {error}") from error
