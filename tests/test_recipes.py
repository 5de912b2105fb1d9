"""Every recipe that comes with clearhead is whole: it can be read, its data found, its first steps taken."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from clearhead.data.sources import open_corpus
from clearhead.recipes import load_recipe, recipe_folder, recipe_names
from clearhead.tasks import TASKS
from clearhead.train.run import train

CORPORA = Path(__file__).parents[2] / "shared" / "data"
BUILT_IN = [name for name in recipe_names() if load_recipe(name).data.corpus]
REAL = [name for name in recipe_names() if load_recipe(name).data.path]


def test_every_built_in_corpus_has_a_recipe() -> None:
    assert {load_recipe(name).data.corpus for name in BUILT_IN} == {
        *("phrasebook", "stories", "reviews", "headlines", "instructions", "paraphrases")
    }


@pytest.mark.parametrize("name", recipe_names())
def test_a_recipe_says_what_it_is_about_and_fits_its_task(name: str) -> None:
    recipe = load_recipe(name)
    assert recipe.about
    assert recipe.model.family == TASKS[recipe.data.task].family
    assert recipe.model.head == TASKS[recipe.data.task].head
    assert (recipe_folder() / f"{name}.toml").read_text(encoding="utf8").startswith("# ")


@pytest.mark.parametrize("name", BUILT_IN)
def test_the_first_steps_of_a_recipe_with_a_built_in_corpus(name: str, tmp_path: Path) -> None:
    small = ["data.size=200", "data.batch_tokens=512", "train.steps=2", f"data.cache={tmp_path / 'cache'}"]
    train(load_recipe(name, [*small, "tokenizer.vocab=400", "train.samples=0"]), tmp_path / "run", quiet=True)
    assert (tmp_path / "run" / "model.safetensors").is_file()


@pytest.mark.skipif(not CORPORA.is_dir(), reason="the published corpora are not here")
@pytest.mark.parametrize("name", REAL)
def test_the_data_of_a_recipe_is_found(name: str) -> None:
    data = load_recipe(name).data
    assert Path(data.path).parent == Path("data")
    corpus = open_corpus(replace(data, path=str(CORPORA / Path(data.path).name)))
    assert {"train", "valid"} <= set(corpus.splits)
    assert next(iter(corpus.read("valid")))
