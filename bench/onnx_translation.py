"""Exported translators: size, BLEU and speed of ONNX in float32 and int8, beside the run itself, all by greedy search.

python bench/onnx_translation.py [--run runs/demo] [--sentences 500] [--rounds 5]
"""

from __future__ import annotations

import runpy
import statistics
from collections.abc import Callable
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

from measure import in_turns, options, setting

import clearhead
from clearhead.config import Weights
from clearhead.data.examples import Pair
from clearhead.data.sources import open_corpus
from clearhead.evaluate.measures import bleu
from clearhead.exchange.targets import Target, export_run

EXAMPLE = Path(__file__).parent.parent / "examples" / "translate_onnx.py"
BATCH = 32
TARGETS: tuple[Target, ...] = ("onnx", "onnx-int8")

Translate = Callable[[list[str]], list[str]]


def main() -> None:
    chosen = options(__doc__, run="runs/demo", sentences=500, rounds=5, threads=1)
    if not Path(chosen.run).is_dir():
        print(f"left out: there is no {chosen.run}; `clearhead demo` makes one")
        return
    config = clearhead.load(chosen.run).run.recipe.data
    pairs = [pair for pair in islice(open_corpus(config).read("test"), chosen.sentences) if isinstance(pair, Pair)]
    pairs.sort(key=lambda pair: len(pair.source))
    sources = [pair.source for pair in pairs]
    batches = [sources[begin : begin + BATCH] for begin in range(0, len(sources), BATCH)]
    with TemporaryDirectory() as folder:
        translators = {"run, float32": loaded(chosen.run, "float32"), "run, int8": loaded(chosen.run, "int8")}
        translators |= {target: exported(chosen.run, Path(folder) / target, target) for target in TARGETS}
        sizes = {name: sum(file.stat().st_size for file in (Path(folder) / name).glob("*.onnx")) for name in TARGETS}
    found = {name: translate_all(each, batches) for name, each in translators.items()}
    times = in_turns({name: partial(translate_all, each, batches) for name, each in translators.items()}, chosen.rounds)
    for name in translators:
        score = bleu(found[name], [pair.target for pair in pairs]).value
        same = sum(ours == theirs for ours, theirs in zip(found["run, float32"], found[name], strict=True))
        speed = len(sources) / statistics.median(times[name])
        size = f"{sizes[name] / 1e6:.2f} MB" if name in sizes else ""
        print(f"{name:12}  BLEU {score:.2f}  {same} of {len(sources)} as the run  {speed:.0f} sentences/s  {size}")
    print(setting())


def translate_all(translate: Translate, batches: list[list[str]]) -> list[str]:
    """The translations of all batches."""
    return [text for batch in batches for text in translate(batch)]


def loaded(run: str, weights: Weights) -> Translate:
    """The run itself."""
    return partial(clearhead.load(run, weights=weights).translate, beam=1)


def exported(run: str, folder: Path, target: Target) -> Translate:
    """The run in onnxruntime."""
    export_run(Path(run), folder, target)
    translate: Translate = runpy.run_path(str(EXAMPLE))["Translator"](folder).translate
    return translate


if __name__ == "__main__":
    main()
