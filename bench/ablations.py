"""The paper's Table 3 in small: change one part of a translator at a time, train with several seeds, compare on valid.

    python bench/ablations.py data/multi30k --out runs/ablations --seeds 3 --jobs 4

The base is a recipe, by default multi30k-en-de, with a smaller model, fewer steps, a dropout of 0.3 and no other noise;
further arguments override its settings for all rows.
Each finished run is a line of OUT/results.jsonl; when the script is called again, it skips finished runs. `--table`
prints the table of finished runs. The table is Markdown: parameters, perplexity and lower-cased BLEU on valid (greedy),
mean and standard deviation over seeds.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import shutil
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clearhead.config import UserError, require

STEPS = 2000  # enough for the rows to differ; the recipe itself has more
# the base: a small model, without R-Drop and without noise in its input
SMALL = ["model.d_model=128", "model.d_ff=256", "model.heads=4", "model.dropout=0.3"]
SMALL += ["train.r_drop=0", "model.token_dropout=0", "data.bpe_dropout=0"]
NO_RESIDUALS = "no residual connections"

# row -> what changes; the letters group rows as the paper does
ROWS: dict[str, list[str]] = {
    "base": [],
    "(A) 1 head": ["model.heads=1"],
    "(A) 2 heads": ["model.heads=2"],
    "(A) 8 heads": ["model.heads=8"],
    "(A) 16 heads": ["model.heads=16"],
    "(B) d_k = 8": ["model.head_channels=8"],
    "(B) d_k = 16": ["model.head_channels=16"],
    "(C) 1 block": ["model.layers=1"],
    "(C) 2 blocks": ["model.layers=2"],
    "(C) 6 blocks": ["model.layers=6"],
    "(C) d_model = 64": ["model.d_model=64"],
    "(C) d_model = 256": ["model.d_model=256"],
    "(C) d_ff = 64": ["model.d_ff=64"],
    "(C) d_ff = 1024": ["model.d_ff=1024"],
    "(D) dropout 0": ["model.dropout=0"],
    "(D) dropout 0.1": ["model.dropout=0.1"],
    "(D) label smoothing 0": ["train.label_smoothing=0"],
    "(D) label smoothing 0.2": ["train.label_smoothing=0.2"],
    "(E) learned positions": ["model.position=learned"],
    "(E) sinusoidal positions": ["model.position=sinusoidal"],
    "(E) no positions": ["model.position=none"],
    "(F) post-norm": ["model.norm_order=post"],
    "(F) no residual connections": [],
    "(G) AdamW": ["train.optimiser=adamw", "train.learning_rate=2e-3"],
}


@dataclass(frozen=True)
class Job:
    """One run: a row with a seed."""

    row: str
    seed: int
    recipe: str
    overrides: tuple[str, ...]
    folder: Path

    @property
    def run(self) -> Path:
        """The folder to train into."""
        return self.folder / f"{list(ROWS).index(self.row):02}-{self.seed}"


def measure(job: Job) -> dict[str, Any]:
    """Train and evaluate one run."""
    from clearhead.device import choose_device
    from clearhead.files import read_metrics
    from clearhead.library import load
    from clearhead.model import block
    from clearhead.recipes import load_recipe
    from clearhead.train.run import train

    added = block.AddNorm.forward
    alone = job.row.endswith(NO_RESIDUALS)
    if alone:
        block.AddNorm.forward = without_residual  # type: ignore[method-assign]
    overrides = [*job.overrides, *ROWS[job.row], f"train.seed={job.seed}", "train.samples=0"]
    shutil.rmtree(job.run, ignore_errors=True)  # of a call that was stopped
    began = time.perf_counter()
    try:
        train(load_recipe(job.recipe, overrides), job.run, quiet=True)
        seconds = time.perf_counter() - began
        # The kernels that decode on a GPU add residuals themselves.
        model = load(job.run, "cpu" if alone else str(choose_device("auto", "device =")))
        bleu = model.evaluate("valid", beam=1)["bleu-lower"]
    finally:
        block.AddNorm.forward = added  # type: ignore[method-assign]
    loss = [row["loss"] for row in read_metrics(job.run) if row["kind"] == "valid"][-1]
    size = sum(p.numel() for p in model.model.parameters())
    return {
        "row": job.row,
        "seed": job.seed,
        "parameters": size,
        "perplexity": math.exp(loss),
        "bleu": bleu,
        "seconds": seconds,
    }


def without_residual(self: Any, x: Any, sublayer: Any) -> Any:
    """What AddNorm computes, without the addition."""
    if self.norm_first:
        return self.added(self.dropout(sublayer(self.norm(x))))
    return self.norm(self.added(self.dropout(sublayer(x))))


def table(results: list[dict[str, Any]]) -> str:
    """The results as Markdown, a line for each row."""
    lines = ["| row | parameters | perplexity | BLEU | seeds |", "|---|---|---|---|---|"]
    for row in ROWS:
        found = [each for each in results if each["row"] == row]
        if found:
            size = f"{found[0]['parameters'] / 1e6:.2f} M"
            cells = (spread([each[key] for each in found], digits) for key, digits in (("perplexity", 2), ("bleu", 1)))
            lines.append(f"| {row} | {size} | {' | '.join(cells)} | {len(found)} |")
    return "\n".join(lines)


def spread(values: list[float], digits: int) -> str:
    """Mean and standard deviation; a single value as it is."""
    mean = f"{statistics.mean(values):.{digits}f}"
    return mean if len(values) == 1 else f"{mean} ± {statistics.stdev(values):.{digits}f}"


def read_results(file: Path) -> list[dict[str, Any]]:
    """The runs that are finished."""
    return [json.loads(line) for line in file.read_text().splitlines()] if file.is_file() else []


def share_tokenizer(job: Job) -> None:
    """Train the tokenizer of all runs."""
    from clearhead.recipes import load_recipe
    from clearhead.train.prepare import prepare_tokenizers

    folder = job.folder / "tokenizer"
    if not folder.is_dir():
        own = [item for item in job.overrides if not item.startswith("tokenizer.path")]
        tokenizers = prepare_tokenizers(load_recipe(job.recipe, own))
        folder.mkdir(parents=True)  # not before: the data may be missing
        tokenizers.save(folder)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", help="the folder of the corpus")
    parser.add_argument("overrides", nargs="*", help="settings for all rows")
    parser.add_argument("--recipe", default="multi30k-en-de")
    parser.add_argument("--out", type=Path, default=Path("runs/ablations"))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1, help="processes that train side by side")
    parser.add_argument("--only", action="append", default=[], help="only rows that contain this; may be repeated")
    parser.add_argument("--table", action="store_true", help="print the table of finished runs, train nothing")
    return parser.parse_args()


def main() -> None:
    options = parse()
    file = options.out / "results.jsonl"
    if not options.table:
        chosen = [row for row in ROWS if not options.only or any(word in row for word in options.only)]
        require(bool(chosen), f"--only {' --only '.join(options.only)}: no row contains this; rows: {', '.join(ROWS)}")
        steps = [f"train.steps={STEPS}", f"train.warmup={STEPS // 10}", f"train.evaluate_every={STEPS // 10}"]
        shared = [f"data.path={options.data}", *SMALL, *steps, f"tokenizer.path={options.out / 'tokenizer'}"]
        overrides = (*shared, *options.overrides)
        done = {(each["row"], each["seed"]) for each in read_results(file)}
        jobs = [
            Job(row, seed, options.recipe, overrides, options.out)
            for seed in range(options.seeds)  # a partial table then has every row
            for row in chosen
            if (row, seed) not in done
        ]
        if jobs:
            share_tokenizer(jobs[0])
        with multiprocessing.get_context("spawn").Pool(options.jobs) as pool:
            for result in pool.imap_unordered(measure, jobs):
                with file.open("a") as handle:
                    handle.write(json.dumps(result) + "\n")
                print(f"{result['row']}, seed {result['seed']}: BLEU {result['bleu']:.1f}", file=sys.stderr)
    print(table(read_results(file)))


if __name__ == "__main__":
    try:
        main()
    except UserError as error:
        sys.exit(f"ablations: {error}")
