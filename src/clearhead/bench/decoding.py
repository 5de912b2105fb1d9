"""Decoding through the public interface, from text to text: `clearhead.load` and its methods."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

from clearhead.bench.contest import Case, Cases, Work
from clearhead.bench.material import random_texts
from clearhead.config import Weights, require
from clearhead.data.examples import Pair
from clearhead.data.sources import open_corpus
from clearhead.decode.translate import SearchSettings, translate
from clearhead.library import Loaded, load
from clearhead.runs import open_run

SENTENCE = "the red car is fast"


@dataclass(frozen=True)
class Generation:
    """Prompts to continue greedily."""

    rows: int
    prompt: int  # tokens of each prompt
    new: int  # tokens to generate
    weights: Weights | None = None  # how matrices are stored; None: as `clearhead.load` does by itself

    def texts(self, folder: Path) -> list[str]:
        """The prompts: the start token comes on top of the words."""
        return random_texts(folder, self.rows, self.prompt - 1)


@dataclass(frozen=True)
class TranslationJob:
    """Sentences to translate by beam search; a beam of 1 is greedy search."""

    rows: int
    source: int  # tokens of each sentence
    new: int  # tokens of each translation
    beam: int = 4
    weights: Weights | None = None

    @property
    def search(self) -> SearchSettings:
        """How to search."""
        return SearchSettings(self.beam, length_penalty=0.0, longest=self.new)

    def texts(self, folder: Path) -> list[str]:
        """The sentences: the end token comes on top of the words."""
        return random_texts(folder, self.rows, self.source - 1)


def our_generation(folder: Path, device: str, jobs: dict[str, Generation]) -> Cases:
    """`Loaded.generate`; counts new tokens."""
    opened = loader(folder, device)

    def case(job: Generation) -> Case:
        model = opened(job.weights)
        prompts = job.texts(folder)
        return lambda: Work(job.rows * job.new, tuple(text.strip() for text in model.generate(prompts, job.new)))

    return {name: partial(case, job) for name, job in jobs.items()}


def our_translation(folder: Path, device: str, jobs: dict[str, TranslationJob]) -> Cases:
    """The search of `clearhead translate`; counts sentences."""
    opened = loader(folder, device)

    def case(job: TranslationJob) -> Case:
        model = opened(job.weights)
        texts = job.texts(folder)
        return lambda: Work(job.rows, tuple(best.text for best, *_ in translate(model.run, texts, job.search)))

    return {name: partial(case, job) for name, job in jobs.items()}


def small_translation(folder: Path, device: str, rows: int) -> Cases:
    """The demo's model: one sentence, and many sentences of the test set; counts sentences."""

    def case(texts: list[str], beam: int) -> Case:
        model = load(folder, device)
        return lambda: Work(len(texts), tuple(model.translate(texts, beam)))

    many = test_sentences(folder, rows)
    return {
        "one sentence, greedy": partial(case, [SENTENCE], 1),
        "one sentence, beam 4": partial(case, [SENTENCE], 4),
        f"{rows} sentences, beam 4": partial(case, many, 4),
    }


def test_sentences(folder: Path, count: int) -> list[str]:
    """The first sources of a run's test set."""
    pairs = open_corpus(open_run(folder).recipe.data).read("test")
    return [pair.source for pair in islice(pairs, count) if isinstance(pair, Pair)]


def evaluation(folder: Path, device: str, rows: int) -> Cases:
    """`clearhead evaluate` on the test set, after loading; counts sentences."""

    def case() -> Case:
        model = load(folder, device)

        def evaluate() -> Work:
            model.evaluate(limit=rows)
            return Work(rows)

        return evaluate

    return {f"{rows:,} sentences, beam 4": case}


def loader(folder: Path, device: str) -> Callable[[Weights | None], Loaded]:
    """A function that opens a run, and keeps it as long as the same weights are asked for."""
    opened: dict[Weights | None, Loaded] = {}

    def open_with(weights: Weights | None) -> Loaded:
        if weights not in opened:
            opened.clear()
            opened[weights] = load(folder, device, weights) if weights else load(folder, device)
        return opened[weights]

    return open_with


# --- starting ---------------------------------------------------------------------------------------------------------


def our_start(folder: Path) -> Cases:
    """Whole commands, including start-up; counts commands."""
    program = ("-m", "clearhead")
    return {
        "import": command("-c", "import clearhead; clearhead.load"),
        "--help": command(*program, "--help"),
        "translate a sentence": command(*program, "translate", str(folder), SENTENCE, "--device", "cpu"),
    }


def start_of(code: str) -> Cases:
    """How long a peer takes to be imported."""
    module = code.split()[1].split(".")[0]
    __import__(module)  # is it there at all?
    return {"import": command("-c", code)}


def command(*arguments: str) -> Callable[[], Case]:
    """A case that runs Python in a new process."""

    def run() -> Work:
        line = [sys.executable, *arguments]
        done = subprocess.run(line, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        require(done.returncode == 0, f"{' '.join(arguments)} failed: {done.stderr.strip()[-200:]}")
        return Work(1)

    return lambda: run
