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

from torch import Tensor

from clearhead.config import UserError, require, suggest
from clearhead.files import read_metrics
from clearhead.inspect.answer import importance_cost
from clearhead.inspect.explain import explain
from clearhead.inspect.formula import NOTHING, equals
from clearhead.inspect.graph import parents
from clearhead.inspect.inputs import continue_text, encode_inputs
from clearhead.inspect.names import names_of
from clearhead.inspect.passes import THUMBNAIL_SIZE, Pass, Passes, fits, shrunk
from clearhead.inspect.patch import from_json, patch
from clearhead.inspect.paths import block_of
from clearhead.inspect.story import story
from clearhead.inspect.trace import Trace
from clearhead.inspect.web.diagram import draw_diagram
from clearhead.inspect.web.facts import describe, entries_of, outcome, snapshots_of, stack_of, tokenizer_of, tokens
from clearhead.inspect.web.merges import replay
from clearhead.inspect.web.output import MOST_TOKENS, Answer, OutputRequests, output_of, stream_of, whole
from clearhead.inspect.web.pictures import losses, neighbours, position_vectors, word_map
from clearhead.runs import Run, load_weights, model_to_load, open_run

LONGEST_TEXT = 20_000  # characters
OVERFLOW = (
    "with this change the numbers overflow, and the model has no output any more; choose a smaller factor, or undo it"
)
MOST_WRITTEN = 64  # tokens by which a language model continues a text
MOST_AT_ONCE = 20 * 10**9  # multiplications that the page starts without being asked to
UNLOCKED = ("saliency", "milestones", "decode", "beam", "effect", "importance", "roles")  # locked in part only
MOST_TERMS = 8  # of the sum that gives a cell


class Explorer:
    """Answers the page's requests about one run, or about two runs to compare."""

    def __init__(self, folders: Sequence[str | Path]) -> None:
        self.runs = [open_run(folder) for folder in folders]
        kinds = {f"{run.recipe.model.family} ({run.recipe.model.head})" for run in self.runs}
        require(len(kinds) == 1, f"only runs of one family and head can be compared, not {' and '.join(sorted(kinds))}")
        self.passes = Passes()
        self.at_step: dict[tuple[str, str], Run] = {}  # (run, snapshot) -> the run with its weights; at most one
        self.lock = threading.RLock()
        about_run = (self.run, self.metrics, self.waves, self.merges)
        about_text = (self.trace, self.diagram, self.words, self.near, self.lengths)
        about_tensors = (self.tensor, self.tensors, self.story, self.cell)
        about_output = OutputRequests(self.passes, self.lock).methods()
        requests: tuple[Callable[..., Answer], ...] = (*about_run, *about_text, *about_tensors, *about_output)
        self.requests = {method.__name__: method for method in requests}

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
        return {"runs": [describe(run) for run in self.runs]}

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
            require(
                len(value) <= LONGEST_TEXT,
                f"{name} has {len(value):,} characters; at most {LONGEST_TEXT:,} fit",
            )
        key = self.begin(run, text, target, snapshot, changes, whole("write", write, MOST_WRITTEN + 1))
        output = output_of(self.runs[int(run)])
        part = self.passes.part(key, output)
        require(bool(part[output].isfinite().all()), OVERFLOW)
        named: dict[str, Any] = {"id": key, "names": entries_of(part.run)}
        named |= {"text": part.text, "target": part.target_text, "before": self.passes[key].before}
        named |= {"quick": importance_cost(part) <= MOST_AT_ONCE, "unchanged": named["before"] if changes else key}
        return named | {"written": part.inputs.written} | tokens(part) | outcome(part)

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
            self.passes.add(key, Pass(find, self.passes[before].inputs, from_json(read_json(changes)), before))
            return key
        count = max(map(len, find().tokenizers.source.encode_batch([text, target])))
        require(count <= MOST_TOKENS, f"the text has {count:,} tokens; at most {MOST_TOKENS:,} can be shown")
        with patch(find(), {}):  # waits until no other request changes the model
            inputs = encode_inputs(find(), text, target or None)
            read = continue_text(find(), inputs, write) if write else inputs
        self.passes.add(key, Pass(find, read, {}))
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
        run = self.passes[trace].run()
        side = "source" if stack == "encoder" else "target"
        return word_map(stack_of(run, stack), tokenizer_of(run, side), self.passes[trace].inputs.ids[side])

    def near(self, trace: str, stack: str) -> Answer:
        """For each token of the text, the tokens with the most similar embeddings: id -> tokens and cosines."""
        run = self.passes[trace].run()
        side = "source" if stack == "encoder" else "target"
        return neighbours(stack_of(run, stack), tokenizer_of(run, side), self.passes[trace].inputs.ids[side])

    def merges(self, run: str, side: str, text: str) -> Answer:
        """The merges of byte-pair encoding that lead to the tokens of a text."""
        require(len(text) <= LONGEST_TEXT, f"text has {len(text):,} characters; at most {LONGEST_TEXT:,} fit")
        tokenizer = tokenizer_of(self.chosen(run), side)
        return {"pieces": tokenizer.pieces(text), "words": replay(tokenizer, text)}

    def close(self, traces: Sequence[str]) -> None:
        """Free the tensors of traces that no page shows any more."""
        with self.lock:
            for trace in traces:
                self.passes.drop(trace)


def read_json(text: str) -> Any:
    """Parse JSON; an empty text is an empty object."""
    try:
        return json.loads(text or "{}")
    except (ValueError, RecursionError) as error:
        raise UserError(f"changes {text[:80]!r}: expected JSON: {error}") from error
