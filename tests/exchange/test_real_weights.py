"""Models that others trained, imported: they write and measure what they are known for."""

from __future__ import annotations

from pathlib import Path

import pytest

import clearhead
from clearhead.evaluate.evaluation import with_other_data
from clearhead.evaluate.scores import evaluate
from clearhead.exchange.huggingface import import_model
from clearhead.recipes import load_recipe
from clearhead.runs import open_run
from clearhead.train.run import train
from command_line import Verb
from real_corpora import SHARED, needs_shared

STORIES = SHARED / "stories260k"
# What the README of the model says it writes, greedily, from its start token alone.
WRITTEN = """Once upon a time, there was a little girl named Lily. She loved to play outside in the park. \
One day, she saw a big, red ball. She wanted to play with it, but it was too high.
Lily's mom said, "Lily, let's go to the park." Lily was sad and didn't know what to do. \
She said, "I want to play with your ball, but I can't find it.\""""


@pytest.fixture(scope="session")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("imported") / "stories260k"
    import_model(str(STORIES), folder)
    return folder


@needs_shared
def test_a_trained_llama_writes_its_published_text(llama: Path) -> None:
    assert clearhead.load(llama).generate("", tokens=250).startswith(WRITTEN)


@needs_shared
def test_the_command_line_imports_it_and_continues_a_prompt(verb: Verb, tmp_path: Path) -> None:
    assert verb("import", STORIES, tmp_path / "new" / "llama") == ([], "", 0)
    beginning = ["Once upon a time, there was a little g"]
    assert verb("generate", tmp_path / "new" / "llama", "Once upon", "--greedy", "--tokens", 8) == (beginning, "", 0)
    lines, _, _ = verb("generate", tmp_path / "new" / "llama", "Once upon", "One day", "--greedy", "--tokens", 8)
    assert lines[0] == beginning[0]


@needs_shared
def test_an_imported_run_is_shown_and_listed(llama: Path, verb: Verb) -> None:
    lines, _, code = verb("walk", llama, "Once upon a time")
    assert code == 0
    assert any("grouped" in line or "rotat" in line for line in lines)
    lines, _, code = verb("runs", llama.parent)
    assert code == 0
    assert any("stories260k" in line and "generate" in line for line in lines)


@needs_shared
def test_an_imported_run_is_evaluated(llama: Path, tmp_path: Path) -> None:
    (tmp_path / "test.txt").write_text(WRITTEN, encoding="utf8")
    (tmp_path / "train.txt").write_text(WRITTEN, encoding="utf8")
    given = [f"data.path={tmp_path}", f"data.cache={tmp_path / 'cache'}", "data.max_length=64"]
    found = evaluate(with_other_data(open_run(llama), given), "test", quiet=True)
    perplexity = next(score for score in found.scores if "perplexity" in score.name)
    assert 1 < perplexity.value < 5  # its own greedy text is easy for it


@needs_shared
@pytest.mark.parametrize("lora", [0, 2])
def test_training_starts_from_an_imported_run(llama: Path, tmp_path: Path, lora: int) -> None:
    small = f"data.corpus=stories data.size=50 data.max_length=64 data.cache={tmp_path} train.steps=2 train.samples=0"
    more = f"tokenizer.path={llama} train.init={llama} train.lora={lora} train.learning_rate=1e-5 train.device=cpu"
    recipe = load_recipe(str(llama / "run.toml"), [*small.split(), *more.split()])
    train(recipe, tmp_path / "run", quiet=True)
    tuned = clearhead.load(tmp_path / "run")
    assert tuned.generate("", tokens=30) == clearhead.load(llama).generate("", tokens=30)
