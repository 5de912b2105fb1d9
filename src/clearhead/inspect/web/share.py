"""The explorer's page as one file, with the tensors of one text inside: it opens without a server, offline.

The file contains all scripts, styles and data.
"""

from __future__ import annotations

import base64
import gzip
import itertools
import json
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from posixpath import dirname, join, normpath
from typing import Any

import torch
from torch import Tensor

from clearhead.config import require
from clearhead.files import require_output, write_file
from clearhead.inspect.paths import kind_of
from clearhead.inspect.web.diagram import LANES
from clearhead.inspect.web.explorer import Explorer
from clearhead.inspect.web.server import PAGE, page_files
from clearhead.terminal.pipes import note

MOST_TENSOR_BYTES = 64 * 2**20  # bytes of tensors
MOST_OPEN = 3  # blocks of a stack that the diagram draws in full, as in parts.js
LANE_STEP = 8  # as in diagram.js
MOST_CELLS = 6_000  # of scores and weights, with their computation
MOST_LOGITS = 150  # with their contributions
ABSENT = "This file has only one text in the finished model; `clearhead explore RUN` shows everything else."
POLICY = """<meta http-equiv="Content-Security-Policy" content="\
default-src 'none'; script-src 'unsafe-inline' data:; style-src 'unsafe-inline'">"""  # the file can fetch nothing
STYLESHEET = re.compile(r'<link rel="stylesheet" href="([^"]+)">')
IMPORT = re.compile(r'(?<= from ")\.{1,2}/[^"]+(?=";)')

PUBLISHED = ("engine/", "offline.js")  # what only a published page needs

PageRequest = tuple[str, dict[str, str]]


def write_page(run: str | Path, text: str, path: Path) -> None:
    """Write the page for one text as a self-contained HTML file."""
    require(bool(text), f'--html {path} needs a text: clearhead explore {run} --html {path} "the red car is fast"')
    require_output(path, "--html", (".html",))
    saved = {"absent": ABSENT, **gather(Explorer([run]), text)}
    data = base64.b64encode(gzip.compress(json.dumps(saved).encode(), mtime=0)).decode()
    page = (PAGE / "index.html").read_text(encoding="utf8")
    modules = f'{import_map()}<script type="module">import "main.js";</script>'
    for link, inside in {
        '<meta charset="utf-8">': f'<meta charset="utf-8">\n{POLICY}',
        '<link rel="icon" href="icon.svg" type="image/svg+xml">\n': "",
        '<script type="module" src="main.js"></script>': modules,
        "</body>": f'<script type="text/plain" id="saved">{data}</script>\n</body>',
    }.items():
        assert link in page, link
        page = page.replace(link, inside)
    write_file(path, STYLESHEET.sub(inline_style, page))
    note(f"wrote {path} ({path.stat().st_size / 1e6:.1f} MB)")


def inline_style(link: re.Match[str]) -> str:
    """A stylesheet as an element, in place of a link to it."""
    return f"<style>\n{(PAGE / link[1]).read_text(encoding='utf8')}</style>"


def import_map() -> str:
    """An import map with all modules of the page as data: URLs under their names."""
    modules = {}
    for name, path in page_files().items():
        if name.endswith(".js") and not name.startswith(PUBLISHED):
            code = IMPORT.sub(partial(absolute, dirname(name)), path.read_text("utf8"))
            modules[name] = f"data:text/javascript;base64,{base64.b64encode(code.encode()).decode()}"
    return f'<script type="importmap">{json.dumps({"imports": modules})}</script>\n'


def absolute(folder: str, found: re.Match[str]) -> str:
    """The name of a module from a relative import in a folder."""
    return normpath(join(folder, found[0]))


def gather(explorer: Explorer, text: str) -> dict[str, Any]:
    """The answers to all requests of the page about one text, and every tensor."""
    answers: dict[str, Any] = {}

    def ask(path: str, **query: str) -> Any:
        key = f"{path}?" + "&".join(f"{name}={value}" for name, value in query.items())  # as data.js writes it
        answers[key] = explorer.answer(path, query)
        return answers[key]

    [run] = ask("run")["runs"]
    run["examples"] = [text]
    run["snapshots"] = []  # the file has the tensors of the finished model only
    trace = ask("trace", run="0", text=text, target="", snapshot="", changes="")
    trace_id = trace["id"]
    size = explorer.passes.bytes()
    require(
        size <= MOST_TENSOR_BYTES,
        f"the tensors of this text take {size >> 20} MB, more than {MOST_TENSOR_BYTES >> 20}; shorten the text",
    )
    tensors = {name: explorer.tensor(trace_id, name) for name in trace["names"]}
    for path, query in requests(run, trace, tensors):
        ask(path, **query)
    for position in range(len(tensors["head.logits"]) if run["head"] == "vocabulary" else 0):
        ask("next", trace=trace_id, token=str(position))
    if run["head"] == "classes":
        best = int(tensors["head.logits"].argmax())
        ask("saliency", trace=trace_id, token="0", choice=str(best))
    for token, choice in explained_logits(run, answers):
        for path in ("why", "saliency"):
            ask(path, trace=trace_id, token=token, choice=choice)
    return {"answers": answers, "tensors": {f"{trace_id} {name}": encoded(value) for name, value in tensors.items()}}


def requests(run: dict[str, Any], trace: dict[str, Any], tensors: dict[str, Tensor]) -> Iterator[PageRequest]:
    """All requests of the views, except for tensors and those that depend on other answers."""
    trace_id = trace["id"]
    for name in tensors:
        yield "story", {"trace": trace_id, "name": name}
    for name, index in itertools.islice(cells(tensors), MOST_CELLS):
        yield "cell", {"trace": trace_id, "name": name, "index": index}
    yield from diagrams(run, trace)
    for stack in run["stacks"]:
        for path in ("words", "near", "rollout", "lengths"):
            yield path, {"trace": trace_id, "stack": stack["name"]}
        if run["position"] != "none":
            yield "waves", {"run": "0", "stack": stack["name"], "count": "64"}
    for name in sublayers(run) if trace["quick"] else ():
        yield "importance", {"trace": trace_id, "name": name}
        if kind_of(name) != "feed_forward":
            yield "roles", {"trace": trace_id, "name": name}
    for side in trace["tokens"]:
        written = side == "target" and run["family"] == "encoder-decoder"
        yield "merges", {"run": "0", "side": side, "text": trace["target"] if written else trace["text"]}
    if run["head"] != "embedding":
        for token in range(len(tensors["head.logits"]) if run["head"] == "vocabulary" else 1):
            yield "lens", {"trace": trace_id, "token": str(token)}
    if run["family"] != "encoder-only":
        yield "decode", {"trace": trace_id}
        for width in range(1, 9):
            yield "beam", {"trace": trace_id, "width": str(width)}


def diagrams(run: dict[str, Any], trace: dict[str, Any]) -> Iterator[PageRequest]:
    """The requests of the first screen: each block that can be open, each part of a long text; as in diagram.js."""
    depth = max(stack["layers"] for stack in run["stacks"])
    last = max(0, len(list(trace["tokens"].values())[-1]) - LANES)
    for layer in ("",) if depth <= MOST_OPEN else range(depth):
        for first in sorted({*range(0, last, LANE_STEP), last}):
            yield "diagram", {"trace": trace["id"], "layer": str(layer), "first": str(first)}


def sublayers(run: dict[str, Any]) -> Iterator[str]:
    """The names of all attentions and feed-forwards."""
    for stack in run["stacks"]:
        for layer, part in itertools.product(range(stack["layers"]), stack["sublayers"]):
            yield f"{stack['name']}.blocks.{layer}.{part}"


def cells(tensors: dict[str, Tensor]) -> Iterator[tuple[str, str]]:
    """All cells of attention weights, then of scores: name and index."""
    for kind in ("weights", "scores"):
        for name, value in tensors.items():
            if kind_of(name) == kind:
                for index in itertools.product(*map(range, value.shape)):
                    yield name, ",".join(map(str, index))


def explained_logits(run: dict[str, Any], answers: dict[str, Any]) -> list[tuple[str, str]]:
    """The logits whose contributions are saved: the likeliest at each position, then the second likeliest, ..."""
    if run["head"] != "vocabulary" or run["head_dense"]:
        return []
    places = [(key.rpartition("=")[2], found["ids"][:6]) for key, found in answers.items() if key.startswith("next?")]
    ranked = [(token, str(ids[rank])) for rank in range(6) for token, ids in places if rank < len(ids)]
    return ranked[:MOST_LOGITS]


def encoded(value: Tensor) -> dict[str, Any]:
    """A tensor as JSON data."""
    data = value.to(torch.float32).contiguous().numpy().tobytes()
    return {"shape": list(value.shape), "data": base64.b64encode(data).decode()}
