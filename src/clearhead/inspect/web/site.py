"""The explorer's page as a folder of static files that computes in the browser: for any web space, without a server.

The page asks `page/engine/`, the model in JavaScript, what it asks the server otherwise. What Python knows as tables
(kinds of tensors, formulas, lines of code) is written as data.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from clearhead.files import new_folder, write_file
from clearhead.inspect.kinds import kind_at
from clearhead.inspect.kinds.kind import Kind
from clearhead.inspect.names import names_of, parents
from clearhead.inspect.paths import Node
from clearhead.inspect.story import COUNTED, parameters_in, source_lines
from clearhead.inspect.web import facts
from clearhead.inspect.web.explorer import Explorer
from clearhead.inspect.web.server import finite, page_files
from clearhead.runs import Run, write_weights
from clearhead.tasks import TASKS

POLICY = (
    "default-src 'none'; script-src 'self'; worker-src 'self'; connect-src 'self'; style-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'none'"
)
HALVED = "float32, from weights that were rounded to float16: the run's own numbers differ in the last digits"


def write_site(runs: Sequence[str | Path], folder: Path, half: bool = False) -> None:
    """Write the page for these runs; `half`: with weights of float32 in half precision."""
    explorer = Explorer(runs)
    with new_folder(folder) as hidden:
        for name, path in page_files().items():
            (hidden / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, hidden / (name or "index.html"))
        write_file(hidden / "index.html", with_policy(hidden / "index.html", len(runs)))
        for number, run in enumerate(explorer.runs):
            write_run(run, finite(explorer.metrics(str(number))), hidden / "runs" / str(number), half)
        files = sorted(path.relative_to(hidden) for path in hidden.rglob("*") if path.is_file())
        kept = [".", *(path.as_posix() for path in files if "snapshots" not in path.parts)]  # for offline.js
        write_file(hidden / "files.json", json.dumps(kept))
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    sys.stderr.write(f"wrote {folder} ({size / 1e6:.1f} MB); to see it: python3 -m http.server --directory {folder}\n")


def with_policy(path: Path, runs: int) -> str:
    """The page with the number of its runs, which can load nothing from elsewhere."""
    charset = '<meta charset="utf-8">'
    page = path.read_text(encoding="utf8")
    assert charset in page
    policy = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
    return page.replace(charset, f'{charset}\n{policy}\n<meta name="runs" content="{runs}">')


def write_run(run: Run, metrics: Any, folder: Path, half: bool) -> None:
    """Write what the engine needs of a run."""
    folder.mkdir(parents=True)
    files = {}
    for side, tokenizer in {"source": run.tokenizers.source, "target": run.tokenizers.target}.items():
        files[side] = "tokenizer.json" if run.tokenizers.shared else f"tokenizer.{side}.json"
        write_file(folder / files[side], tokenizer.backend.to_str())
    data = tables(run) | {"metrics": metrics}
    data["tokenizers"] = {
        side: {"file": file, **getattr(run.tokenizers, side).settings} for side, file in files.items()
    }
    stored = run.folder / "model.safetensors"
    if half and stored.stat().st_size > 3 * data["about"]["parameters"]:  # bytes: it is float32
        write_weights(dict(run.model.named_parameters()), folder / stored.name, torch.float16)
        data["about"]["arithmetic"] = HALVED
    else:
        shutil.copyfile(stored, folder / stored.name)
    write_file(folder / "run.json", json.dumps(data, ensure_ascii=False))
    if facts.snapshots_of(run):
        shutil.copytree(run.folder / "snapshots", folder / "snapshots")


def tables(run: Run) -> dict[str, Any]:
    """What Python knows about a run and its tensors."""
    config = run.recipe.model
    places = facts.entries_of(run)
    named = list(run.model.named_parameters(remove_duplicate=False))
    first = {id(parameter): name for name, parameter in reversed(named)}
    return {
        "about": facts.describe(run),
        "config": asdict(config) | {"head_size": config.head_size},
        "dialogue": TASKS[run.recipe.data.task].example == "dialogue",
        "parameters": {name: first[id(parameter)] for name, parameter in named},  # name -> name in the file
        "tensors": {name: tensor_facts(run, name) | {"kind": places[name]} for name in names_of(run.model, config)},
        "kinds": [kind_facts(kind, run) for kind in facts.kinds_of(run)],
        "counted": COUNTED,
    }


def tensor_facts(run: Run, name: str) -> dict[str, Any]:
    """What a tensor is computed from."""
    node = Node(name, run.recipe.model)
    module = kind_at(node).parameters(node)
    return {"parents": parents(name, node.config), "module": module, "parameters": parameters_in(run, module)}


def kind_facts(kind: Kind, run: Run) -> dict[str, Any]:
    """What a kind of tensors is: `explain` is the name of the function, also in cells.js, that computes a cell."""
    formula = kind.formula_in(run.recipe.model)
    words = {"title": kind.title, "formula": formula.text, "mathml": formula.math(), "paragraph": kind.text}
    story = words | {"source": asdict(source_lines(kind.code))}
    return {"axes": kind.axes, "in_logit": kind.in_logit, "explain": kind.explain.__name__, "story": story}
