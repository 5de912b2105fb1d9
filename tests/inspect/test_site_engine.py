"""The published page: its engine in JavaScript answers every request as the explorer in Python does."""

from __future__ import annotations

import base64
import itertools
import json
import math
import random
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
import torch

from clearhead.config import UserError
from clearhead.exchange.compact import export
from clearhead.exchange.huggingface import import_model
from clearhead.inspect.web.explorer import Explorer
from clearhead.inspect.web.server import finite
from clearhead.inspect.web.site import write_site
from clearhead.runs import load_weights
from explored_runs import KINDS, STEPS, folder_of, write_folder
from patience import PATIENCE
from real_corpora import SHARED, needs_shared
from tiny_runs import TEXT

ENGINE = Path(__file__).parents[1] / "helpers" / "site_engine.mjs"
MORE_KINDS: dict[str, dict[str, Any]] = {  # all options that the kinds of the explorer's tests do not have
    "llama": {
        "family": "decoder-only",
        "position": "rotary",
        "norm": "rms",
        "norm_order": "pre",
        "activation": "swiglu",
        "bias": False,
        "qkv_bias": True,
        "query_key_norm": True,
        "kv_heads": 2,
        "head_channels": 6,
        "window": 4,
        "rotary_factor": 4.0,
        "rotary_length": 20,
        "rotary_base": 100.0,
        "tied": "none",
        "scale_embedding": False,
    },
    "modern": {
        "family": "encoder-decoder",
        "norm_order": "pre",
        "position": "learned",
        "activation": "gelu-tanh",
        "kv_heads": 1,
        "encoder_layers": 1,
        "tied": "output",
        "head_bias": True,
    },
    "bert": {
        "family": "encoder-only",
        "head_dense": True,
        "activation": "gelu",
        "position": "learned",
        "embedding_norm": True,
        "segments": 2,
        "head_bias": True,
    },
    "judge": {
        "family": "encoder-only",
        "head": "classes",
        "head_dense": True,
        "pool": "first",
        "activation": "silu",
        "position": "rotary",
    },
}
TEXTS = (TEXT, "a cat's <house>, zebras & 12 éléphants")
TOLERANCE = 1e-4
NUMBER = re.compile(r"(?<=<mn>)[^<]*(?=</mn>)")
BRACKETS = re.compile(r"<mrow><mo>\(</mo>(<mn>[^<]*</mn>)<mo>\)</mo></mrow>")
pytestmark = pytest.mark.skipif(not shutil.which("node"), reason="needs node")


@cache
def folder(kind: str) -> Path:
    return folder_of(kind) if kind in KINDS else write_folder(kind, 0, MORE_KINDS[kind])


@cache
def site(kind: str) -> Path:
    path = Path(mkdtemp(prefix=f"site-{kind}-")) / "site"
    write_site([folder(kind)], path)
    return path


class Conversation:
    """Requests that both backends answer; a trace is named by the number of its request."""

    def __init__(self, run: Path, site: Path) -> None:
        self.explorer = Explorer([run])
        self.site = site
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.found: list[Any] = []  # what Python answers, or the message of its error

    def ask(self, path: str, **query: str) -> Any:
        self.asked.append((path, query))
        named = query | ({"trace": self.found[int(query["trace"])]["id"]} if "trace" in query else {})
        try:
            self.found.append(self.explorer.answer(path, named))
        except UserError as error:
            self.found.append(error)
        return self.found[-1]

    def trace(self, **query: str) -> tuple[str, dict[str, Any]]:
        found = self.ask("trace", run="0", **query)
        return str(len(self.found) - 1), found

    def compare(self) -> None:
        """Ask the engine of the site the same, and compare all answers."""
        result = subprocess.run(
            ["node", str(ENGINE), str(self.site)],
            input=json.dumps(self.asked),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert result.returncode == 0, result.stderr
        answers = json.loads(result.stdout)
        ids: dict[str, str] = {"": ""}
        for number, (theirs, ours) in enumerate(zip(self.found, answers, strict=True)):
            if isinstance(theirs, dict) and "id" in theirs and "found" in ours:
                ids[theirs["id"]] = ids.get(theirs["id"], str(number))
                ids[ours["found"]["id"]] = ids[theirs["id"]]
        for asked, theirs, ours in zip(self.asked, self.found, answers, strict=True):
            compare_answers(str(asked), theirs, ours, ids)


def compare_answers(where: str, theirs: Any, ours: dict[str, Any], ids: dict[str, str]) -> None:
    if isinstance(theirs, UserError):
        assert "error" in ours, f"{where}: Python refuses it: {theirs}"
    elif isinstance(theirs, dict):
        assert "error" not in ours, f"{where}: {ours['error']}"
        plain = json.loads(json.dumps(finite(theirs)))
        compare_values(where, renamed(plain, ids), renamed(ours["found"], ids))
    else:
        assert "error" not in ours, f"{where}: {ours['error']}"
        tensors = theirs if isinstance(theirs, list) else [theirs]
        assert ours["shapes"] == [list(tensor.shape) for tensor in tensors], where
        expected = torch.cat([tensor.float().flatten() for tensor in tensors])
        found = torch.frombuffer(bytearray(base64.b64decode(ours["data"])), dtype=torch.float32)
        torch.testing.assert_close(found, expected, atol=TOLERANCE, rtol=TOLERANCE, msg=lambda text: f"{where}: {text}")


def renamed(found: dict[str, Any], ids: dict[str, str]) -> dict[str, Any]:
    """An answer with the numbers of traces in place of their ids."""
    return found | {
        key: ids.get(found[key], "?") for key in ("id", "before", "unchanged") if isinstance(found.get(key), str)
    }


def compare_values(where: str, theirs: Any, ours: Any) -> None:
    if isinstance(theirs, dict):
        assert theirs.keys() == ours.keys(), where
        for key in theirs:
            compare_values(f"{where} {key}", theirs[key], ours[key])
    elif isinstance(theirs, list):
        assert len(theirs) == len(ours), f"{where}: {theirs} {ours}"
        for number, pair in enumerate(zip(theirs, ours, strict=True)):
            compare_values(f"{where}[{number}]", *pair)
    elif isinstance(theirs, float):
        rounding = 1.01e-3 if where.startswith("('diagram'") else 2e-4  # its numbers have three decimals
        assert math.isclose(theirs, ours, rel_tol=1e-3, abs_tol=rounding), f"{where}: {theirs} {ours}"
    elif isinstance(theirs, str) and theirs.startswith("<math"):
        theirs, ours = (BRACKETS.sub(r"\1", text) for text in (theirs, ours))  # 0 is −0 or −0.00000001
        assert NUMBER.sub("", theirs) == NUMBER.sub("", ours), where
        numbers = (map(as_float, NUMBER.findall(text)) for text in (theirs, ours))
        assert all(itertools.starmap(are_close, zip(*numbers, strict=True))), f"{where}: {theirs} {ours}"
    else:
        assert theirs == ours, where


def are_close(theirs: float, ours: float) -> bool:
    return math.isclose(theirs, ours, rel_tol=5e-3, abs_tol=1e-5)


def as_float(text: str) -> float:
    return float(text.replace("−", "-"))


def changes_of(names: list[str]) -> list[dict[str, Any]]:
    """Changes of all sorts: a head, a sublayer, a mask, positions, a row of a matrix, several at once."""
    stack = "decoder" if any(name.startswith("decoder") for name in names) else "encoder"
    off: dict[str, Any] = {"kind": "scale", "value": 0, "at": {}}
    found: list[dict[str, Any]] = [
        {f"{stack}.blocks.0.attention.head_outputs": [off | {"at": {"head": [1]}}]},
        {f"{stack}.blocks.1.feed_forward": [off]},
        {f"{stack}.blocks.1.attention.mask": [off | {"at": {"query": [2], "key": [1]}}]},
        {f"{stack}.blocks.0.attention.mask": [{"kind": "replace", "value": 1, "at": {"query": [1]}}]},
        {f"{stack}.blocks.0.attention.query.weight": [{"kind": "scale", "value": 3, "at": {"row": [2, 5]}}]},
        {
            f"{stack}.blocks.*.attention": [{"kind": "scale", "value": -0.5, "at": {}}],
            f"{stack}.sum": [{"kind": "shuffle", "value": 3, "at": {}}],
        },
        {f"{stack}.blocks.1.feed_forward.inner": [{"kind": "replace", "value": [0.5] * 24, "at": {"token": [0]}}]},
    ]
    if f"{stack}.position" in names:
        found.append({f"{stack}.position": [{"kind": "shuffle", "value": 1, "at": {}}]})
    if stack == "decoder" and "decoder.blocks.0.cross_attention" in names:
        found.append(
            {"decoder.blocks.1.cross_attention": [off], "encoder.embedding.weight": [off | {"at": {"row": [50]}}]}
        )
        found.append({"decoder.blocks.0.cross_attention.weights": [off | {"at": {"key": [1, -1]}}]})
    return found


def ask_about_tensors(talk: Conversation, number: str, found: dict[str, Any]) -> None:
    talk.ask("tensors", trace=number, names=",".join(found["names"]))


def ask_views(talk: Conversation, number: str, found: dict[str, Any], run: dict[str, Any]) -> None:
    """The requests of all views about one trace."""
    names = list(found["names"])
    for stack in run["stacks"]:
        for path in ("words", "near", "lengths", "rollout"):
            talk.ask(path, trace=number, stack=stack["name"])
        for layer, part in itertools.product(range(stack["layers"]), stack["sublayers"]):
            name = f"{stack['name']}.blocks.{layer}.{part}"
            talk.ask("importance", trace=number, name=name)
            talk.ask("roles", trace=number, name=name)
    for block, first in (("", "0"), ("1", "3")):
        talk.ask("diagram", trace=number, layer=block, first=first)
    weights = [name for name in names if name.endswith(".weights")]
    talk.ask("tensors", trace=number, names=",".join(weights[:2]), indices="0,1;1", small="1")
    ask_output(talk, number, run)


def ask_output(talk: Conversation, number: str, run: dict[str, Any]) -> None:
    """The requests about what a model predicts and writes."""
    for token in ("1", "2"):
        talk.ask("lens", trace=number, token=token)
        talk.ask("why", trace=number, token=token, choice="1")
        if run["head"] == "vocabulary":
            talk.ask("next", trace=number, token=token)
    talk.ask("decode", trace=number)
    talk.ask("beam", trace=number, width="3")
    talk.ask("effect", trace=number)


def ask_cells(talk: Conversation, number: str, found: dict[str, Any], most: int) -> None:
    """How a few cells of every tensor were computed, and the story of each."""
    pick = random.Random(0)
    for name in found["names"]:
        talk.ask("story", trace=number, name=name)
        shape = talk.explorer.answer("tensor", {"trace": found["id"], "name": name}).shape
        for _ in range(most):
            talk.ask("cell", trace=number, name=name, index=",".join(str(pick.randrange(size)) for size in shape))


@pytest.mark.parametrize("kind", [*KINDS, *MORE_KINDS])
def test_the_engine_answers_as_python_does(kind: str) -> None:
    talk = Conversation(folder(kind), site(kind))
    [run] = talk.ask("run")["runs"]
    talk.ask("metrics", run="0")
    for stack in run["stacks"]:
        talk.ask("waves", run="0", stack=stack["name"], count="20") if run["position"] != "none" else None
    for text in TEXTS:
        number, found = talk.trace(text=text)
        ask_about_tensors(talk, number, found)
        ask_views(talk, number, found, run)
        ask_cells(talk, number, found, 6)
        for side in found["tokens"]:
            talk.ask("merges", run="0", side=side, text=text)
    talk.compare()


@pytest.mark.parametrize("kind", [*KINDS, *MORE_KINDS])
def test_changes_have_the_same_effects(kind: str) -> None:
    talk = Conversation(folder(kind), site(kind))
    [run] = talk.ask("run")["runs"]
    _, plain = talk.trace(text=TEXT)
    for change in changes_of(list(plain["names"])):
        number, found = talk.trace(text=TEXT, changes=json.dumps(change))
        ask_about_tensors(talk, number, found)
        talk.ask("effect", trace=number)
        talk.ask("why", trace=number, token="1", choice="1")
        talk.ask("importance", trace=number, name=f"{run['stacks'][-1]['name']}.blocks.1.attention")
    ask_output(talk, number, run)
    ask_cells(talk, number, found, 1)
    talk.compare()


@pytest.mark.parametrize("kind", KINDS)
def test_snapshots_are_the_same(kind: str) -> None:
    talk = Conversation(folder(kind), site(kind))
    number, _ = talk.trace(text=TEXT)
    talk.ask("milestones", trace=number)
    for step in STEPS:
        number, found = talk.trace(text=TEXT, snapshot=str(step))
        ask_about_tensors(talk, number, found)
        talk.ask("effect", trace=number)
        talk.trace(
            text=TEXT,
            snapshot=str(step),
            changes=json.dumps({"*.blocks.0.feed_forward": [{"kind": "scale", "value": 0}]}),
        )
        talk.ask("effect", trace=str(len(talk.found) - 1))
    talk.compare()


@needs_shared
def test_a_real_llama_is_the_same(tmp_path: Path) -> None:
    import_model(str(SHARED / "stories260k"), tmp_path / "llama")
    write_site([tmp_path / "llama"], tmp_path / "site")
    talk = Conversation(tmp_path / "llama", tmp_path / "site")
    for text in ("Once upon a time", "Lily’s dog ran 12 miles! <s>"):
        number, found = talk.trace(text=text, write="5")
        ask_about_tensors(talk, number, found)
        ask_cells(talk, number, found, 1)
        talk.ask("decode", trace=number)
    talk.compare()


@pytest.mark.parametrize("smaller", ["half", "compact"])
def test_smaller_weights_are_read(smaller: str, tmp_path: Path) -> None:
    run = folder("llama")
    if smaller == "compact":
        export(run, tmp_path / "compact")
        run = tmp_path / "compact"
    write_site([run], tmp_path / "site", half=smaller == "half")
    own, written = (path / "model.safetensors" for path in (folder("llama"), tmp_path / "site" / "runs" / "0"))
    assert written.stat().st_size < 0.6 * own.stat().st_size
    talk = Conversation(run, tmp_path / "site")
    if smaller == "half":
        load_weights(talk.explorer.runs[0].model, written)
    number, found = talk.trace(text=TEXT)
    ask_about_tensors(talk, number, found)
    talk.compare()


def test_what_python_refuses_the_engine_refuses() -> None:
    talk = Conversation(folder("modern"), site("modern"))
    number, _ = talk.trace(text=TEXT)
    name = "decoder.blocks.0.attention"
    wrong = [
        *(("tensor", {"name": "nothing"}), ("tensor", {"name": name, "index": "99"}), ("story", {"name": "nothing"})),
        *(("cell", {"name": name, "index": "0"}), ("next", {"token": "999"}), ("lens", {"token": "x"})),
        *(("why", {"token": "1", "choice": "99999"}), ("beam", {"width": "9"}), ("lengths", {"stack": "head"})),
        *(("importance", {"name": "decoder.blocks.0"}), ("roles", {"name": "decoder.blocks.0.feed_forward"})),
    ]
    for path, query in wrong:
        assert isinstance(talk.ask(path, trace=number, **query), UserError)
    changes = [
        {name: [{"kind": "scale", "value": 0, "at": {"head": [1]}}]},
        {name: [{"kind": "replace", "value": [1, 2]}]},
    ]
    changes += [{"nothing": [{"kind": "scale", "value": 0}]}, {name: [{"kind": "double", "value": 0}]}]
    for change in changes:
        assert isinstance(talk.ask("trace", run="0", text=TEXT, changes=json.dumps(change)), UserError)
    for query in ({"snapshot": "6"}, {"run": "1"}, {"text": "a " * 200}, {"text": "a" * 20_001}):
        assert isinstance(talk.ask("trace", **{"run": "0", "text": TEXT} | query), UserError)
    talk.compare()
