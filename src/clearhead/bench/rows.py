"""The rows of the benchmark: what is measured, in which sizes, and against whom.

A row has one or more cases. `ROWS` is in the order in which they are measured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from clearhead.bench import decoding, peers, training
from clearhead.bench.contest import Prepare
from clearhead.bench.decoding import Generation, TranslationJob
from clearhead.bench.material import smaller, train_small_run, write_random_run
from clearhead.bench.training import TrainingJob, without_dropout
from clearhead.config import ModelConfig, TrainConfig, Weights
from clearhead.fast.choose import has_bfloat16
from clearhead.presets import PRESETS
from clearhead.recipes import load_recipe

Contestants = dict[str, Prepare]
OURS = "clearhead"
MANY_STEPS = 100_000  # of the training that a row is a part of: it decides whether compiling is worth while
QUICK_RUN = "train.steps=2 data.size=200 tokenizer.vocab=400 model.d_model=32 model.d_ff=64 model.layers=1"


class Workspace:
    """A folder with the runs that rows need, each made when it is first asked for."""

    def __init__(self, folder: Path, quick: bool, threads: int, gpu: str = "cuda") -> None:
        self.folder = folder
        self.quick = quick
        self.threads = threads
        self.gpu = gpu  # the device of the rows for a GPU

    def model(self, preset: str, **changes: Any) -> ModelConfig:
        """The architecture of a preset, or with --quick a tiny one."""
        config = replace(PRESETS[preset], **changes)
        return smaller(config) if self.quick else config

    def count(self, number: int, quick: int) -> int:
        """A number of rows, tokens or steps, or with --quick another one."""
        return quick if self.quick else number

    def random_run(self, preset: str, **changes: Any) -> Path:
        """A run with the architecture of a preset and random weights."""
        folder = self.folder / "-".join([preset, *map(str, changes.values())])
        return folder if folder.exists() else write_random_run(folder, self.model(preset, **changes))

    def trained_run(self) -> Path:
        """A run of the demo's model that was trained for a while."""
        folder = self.folder / "demo"
        return folder if folder.exists() else train_small_run(folder, *(QUICK_RUN.split() if self.quick else ()))


@dataclass(frozen=True)
class Benchmark:
    """Something to measure."""

    name: str  # for --only
    title: str
    unit: str  # ms: the time of one unit; otherwise units per second
    device: str  # cuda, cpu
    memory: float  # GB of the device that all contestants need together, roughly
    contestants: Callable[[Workspace], Contestants]  # ours is the first
    processes: bool = False  # whether what is measured runs in processes that the contestants start


# --- training ---------------------------------------------------------------------------------------------------------


def job(work: Workspace, model: ModelConfig, rows: int = 0, length: int = 0, smoothing: float = 0.0) -> TrainingJob:
    """Steps of many, on batches of one shape, on the fastest device."""
    train = TrainConfig(steps=MANY_STEPS, label_smoothing=smoothing)
    return TrainingJob(model, train, work.count(rows, 2), work.count(length, 8), steps=work.count(20, 2))


def train_gpt2(work: Workspace) -> Contestants:
    """gpt2 with 64 and with 12 sequences of 1,024 tokens."""
    model = without_dropout(work.model("gpt2"))
    jobs = {f"batch {rows}": job(work, model, rows, 1024) for rows in (64, 12)}
    return {OURS: partial(training.ours, jobs), "transformers": partial(training.transformers, jobs)}


def train_base(work: Workspace) -> Contestants:
    """paper-base on batches of one shape."""
    jobs = {"512 × (32 + 32)": job(work, work.model("paper-base", vocab=32_000), 512, 32, 0.1)}
    return {OURS: partial(training.ours, jobs), "nn.Transformer": partial(training.pytorch, jobs)}


def train_base_buckets(work: Workspace) -> Contestants:
    """paper-base on batches of similar lengths."""
    budget = work.count(32_768, 512)
    model = work.model("paper-base", vocab=32_000)
    jobs = {f"{budget:,} tokens": bucketed(work, job(work, model, smoothing=0.1), budget)}
    return {OURS: partial(training.ours, jobs), "nn.Transformer": partial(training.pytorch, jobs)}


def train_recipe(work: Workspace, name: str, device: Literal["auto", "cpu"]) -> Contestants:
    """The model and the token budget of a recipe, on random sentence pairs; without R-Drop, which peers do not have."""
    recipe = load_recipe(name)
    filled = replace(recipe.model, vocab=recipe.tokenizer.vocab)
    model = smaller(filled) if work.quick else filled
    budget = work.count(recipe.data.batch_tokens, 512)
    base = TrainingJob(model, replace(recipe.train, device=device, r_drop=0.0), steps=work.count(50, 2))
    jobs = {f"{budget:,} tokens": bucketed(work, base, budget)}
    return {OURS: partial(training.ours, jobs), "nn.Transformer": partial(training.pytorch, jobs)}


def bucketed(work: Workspace, base: TrainingJob, budget: int) -> TrainingJob:
    """The job on bucketed batches: sentence pairs of similar lengths."""
    return replace(base, bucketed=budget, pairs=work.count(base.pairs, 200))


def train_long(work: Workspace) -> Contestants:
    """gpt2 with longer and longer sequences, always 65,536 tokens in a batch."""
    lengths = (1024, 2048, 4096, 8192)
    model = without_dropout(work.model("gpt2", max_length=lengths[-1]))
    return {OURS: partial(training.ours, {f"T {n:,}": job(work, model, 65_536 // n, n) for n in lengths})}


def train_large(work: Workspace) -> Contestants:
    """A decoder of 1.1 billion parameters: what one GPU does of the estimates in docs/scale.md."""
    return {OURS: partial(training.ours, {"8 × 2,048": job(work, work.model("modern-1b"), 8, 2048)})}


# --- decoding ---------------------------------------------------------------------------------------------------------


def generate(work: Workspace) -> Contestants:
    """gpt2 with one row and with many."""
    folder = work.random_run("gpt2")
    jobs = {f"batch {n}": Generation(n, work.count(128, 8), work.count(256, 4)) for n in (1, 64)}
    peer = partial(peers.transformers_generation, folder, work.gpu, jobs)
    return {
        OURS: partial(decoding.our_generation, folder, work.gpu, jobs),
        "transformers, static cache": partial(peer, "static"),
        "transformers": peer,
    }


def generate_long(work: Workspace) -> Contestants:
    """gpt2 after longer and longer prompts."""
    folder = work.random_run("gpt2", max_length=8192)
    new = work.count(256, 4)
    jobs = {f"T {n:,}": Generation(1, work.count(n - new, 8), new) for n in (1024, 2048, 4096, 8192)}
    return {OURS: partial(decoding.our_generation, folder, work.gpu, jobs)}


def generate_large(work: Workspace) -> Contestants:
    """A decoder of 1.1 billion parameters in bfloat16 and in int8: reading the weights takes most of a step."""
    folder = work.random_run("modern-1b")
    kinds: dict[str, Weights | None] = {"": None, ", int8": "int8"}
    lengths = work.count(128, 8), work.count(128, 4)
    jobs = {f"batch {n}{kind}": Generation(n, *lengths, stored) for kind, stored in kinds.items() for n in (1, 4)}
    return {OURS: partial(decoding.our_generation, folder, work.gpu, jobs)}


def translate(work: Workspace) -> Contestants:
    """paper-base, greedily and by beam search, few and many sentences."""
    folder = work.random_run("paper-base")
    length = work.count(32, 8)
    jobs = {
        f"{'greedy' if beam == 1 else f'beam {beam}'}, batch {n}": TranslationJob(n, length, length, beam)
        for beam in (4, 1)
        for n in (1, 64, 256)
    }
    return {
        OURS: partial(decoding.our_translation, folder, work.gpu, jobs),
        "transformers": partial(peers.transformers_translation, folder, work.gpu, jobs),
        "CTranslate2": partial(peers.ctranslate2_translation, folder, work.gpu, jobs, 0),
    }


def evaluate(work: Workspace, device: str = "") -> Contestants:
    """A test set with the demo's model, after loading."""
    return {OURS: partial(decoding.evaluation, work.trained_run(), device or work.gpu, work.count(1000, 4))}


# --- on a CPU ---------------------------------------------------------------------------------------------------------


def train_cpu(work: Workspace, preset: str, rows: int, length: int) -> Contestants:
    """A step in float32 without dropout; the vocabulary is small, so that blocks take most of the time."""
    model = without_dropout(work.model(preset, vocab=8000))
    train = TrainConfig(device="cpu")
    jobs = {f"{rows} × {length}": TrainingJob(model, train, work.count(rows, 2), work.count(length, 8), steps=1)}
    if model.family == "encoder-decoder":
        return {OURS: partial(training.ours, jobs), "nn.Transformer": partial(training.pytorch, jobs)}
    return {OURS: partial(training.ours, jobs), "transformers": partial(training.transformers, jobs)}


def cpu_weights() -> list[Weights]:
    """How matrices can be stored on this CPU."""
    return ["float32", "float16", "bfloat16", "int8"] if has_bfloat16() else ["float32", "float16", "int8"]


def generate_cpu(work: Workspace) -> Contestants:
    """gpt2 with weights of all kinds; the peer has float32."""
    folder = work.random_run("gpt2")
    length = work.count(32, 4)
    jobs = {f"batch {n}, {w}": Generation(n, length, length, w) for n in (1, 16) for w in cpu_weights()}
    return {
        OURS: partial(decoding.our_generation, folder, "cpu", jobs),
        "transformers": partial(peers.transformers_generation, folder, "cpu", jobs),
    }


def translate_cpu(work: Workspace) -> Contestants:
    """paper-base with weights of all kinds; CTranslate2 has the same, transformers float32."""
    folder = work.random_run("paper-base")
    length = work.count(24, 4)
    rows = work.count(32, 2)
    jobs = {f"batch {rows}, {w}": TranslationJob(rows, length, length, 4, w) for w in cpu_weights()}
    return {
        OURS: partial(decoding.our_translation, folder, "cpu", jobs),
        "transformers": partial(peers.transformers_translation, folder, "cpu", jobs),
        "CTranslate2": partial(peers.ctranslate2_translation, folder, "cpu", jobs, work.threads),
    }


def translate_demo(work: Workspace) -> Contestants:
    """The demo's model, one sentence and many."""
    return {OURS: partial(decoding.small_translation, work.trained_run(), "cpu", work.count(200, 3))}


def start(work: Workspace) -> Contestants:
    """Commands from their start to their end."""
    return {
        OURS: partial(decoding.our_start, work.trained_run()),
        "torch alone": partial(decoding.start_of, "import torch"),
        "transformers": partial(decoding.start_of, "from transformers import MarianMTModel"),
    }


ROWS = [
    Benchmark("train-gpt2", "train gpt2, T 1,024", "tokens/s", "cuda", 100, train_gpt2),
    Benchmark("train-base", "train paper-base, vocabulary 32k", "target tokens/s", "cuda", 30, train_base),
    Benchmark(
        "train-base-buckets", "train paper-base, batches bucketed by length", "target tokens/s", "cuda", 30,
        train_base_buckets,
    ),
    Benchmark(
        "train-small", "train multi30k-en-de's model", "target tokens/s", "cuda", 8,
        partial(train_recipe, name="multi30k-en-de", device="auto"),
    ),
    Benchmark("train-long", "train gpt2, 65,536 tokens a step", "tokens/s", "cuda", 40, train_long),
    Benchmark("train-1b", "train modern-1b", "tokens/s", "cuda", 100, train_large),
    Benchmark("generate", "generate gpt2, 128 + 256 tokens", "tokens/s", "cuda", 12, generate),
    Benchmark("generate-long", "generate gpt2, 256 tokens at the end of T", "tokens/s", "cuda", 4, generate_long),
    Benchmark("generate-1b", "generate modern-1b, 128 + 128 tokens", "tokens/s", "cuda", 20, generate_large),
    Benchmark("translate", "translate paper-base, 32 tokens", "sentences/s", "cuda", 12, translate),
    Benchmark("evaluate", "evaluate a small model", "sentences/s", "cuda", 2, evaluate),
    Benchmark("start", "start-up", "ms", "cpu", 2, start, processes=True),
    Benchmark(
        "cpu-train-demo", "train the demo's model", "target tokens/s", "cpu", 2,
        partial(train_recipe, name="phrasebook", device="cpu"),
    ),
    Benchmark(
        "cpu-train-base", "train paper-base, vocabulary 8k", "target tokens/s", "cpu", 6,
        partial(train_cpu, preset="paper-base", rows=32, length=32),
    ),
    Benchmark(
        "cpu-train-gpt2", "train gpt2, vocabulary 8k", "tokens/s", "cpu", 8,
        partial(train_cpu, preset="gpt2", rows=1, length=512),
    ),
    Benchmark("cpu-translate-demo", "translate with the demo's model", "sentences/s", "cpu", 2, translate_demo),
    Benchmark("cpu-evaluate", "evaluate a small model", "sentences/s", "cpu", 2, partial(evaluate, device="cpu")),
    Benchmark("cpu-translate", "translate paper-base, 24 tokens", "sentences/s", "cpu", 4, translate_cpu),
    Benchmark("cpu-generate", "generate gpt2, 32 + 32 tokens", "tokens/s", "cpu", 5, generate_cpu),
]  # fmt: skip
