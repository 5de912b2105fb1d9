"""Every recipe that comes with clearhead is whole: it can be read, its data found, its first steps taken."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from pathlib import Path

import pytest
import torch

from clearhead.config import DataConfig, ModelConfig, Recipe, TokenizerConfig, TrainConfig
from clearhead.data.sources import open_corpus
from clearhead.model import build_model
from clearhead.presets import PRESETS
from clearhead.recipes import load_recipe, recipe_folder, recipe_names
from clearhead.tasks import TASKS
from clearhead.train.run import train

CORPORA = Path(__file__).parents[2] / "shared" / "data"
BUILT_IN = [name for name in recipe_names() if load_recipe(name).data.corpus]
REAL = [name for name in recipe_names() if load_recipe(name).data.path]
STARTED = [name for name in recipe_names() if load_recipe(name).train.init]  # from another run
FROM_PUBLISHED = [name for name in STARTED if Path(load_recipe(name).train.init).name in REAL]


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


def parent_of(recipe: Recipe) -> Recipe | None:
    """The recipe of the run that a recipe starts from."""
    return load_recipe(Path(recipe.train.init).name) if recipe.train.init else None


def first_steps(name: str, folder: Path) -> Path:
    """Take the first steps of a recipe, after those of the recipe that it starts from; return the run folder."""
    run = folder / name
    settings = [
        *data_of(load_recipe(name)),
        "data.batch_tokens=512",
        "train.steps=2",
        "train.samples=0",
        f"data.cache={folder / 'cache'}",
    ]
    parent = parent_of(load_recipe(name))
    if parent:
        begun = first_steps(parent.name, folder)
        settings += [f"train.init={begun}", f"tokenizer.path={begun}"]
    settings += ["data.max_length=256", "data.too_long=truncate", "train.step_tokens=0"]
    small = ["tokenizer.vocab=400", "model.layers=1", "model.d_ff=64"]
    train(load_recipe(name, [*settings, *small]), run, quiet=True)
    return run


def data_of(recipe: Recipe) -> list[str]:
    """The overrides that find the data of a recipe: a published corpus, of a large one a part, or a generated one."""
    if recipe.data.corpus:
        return ["data.size=200"]
    large = Path(recipe.data.path).name == "books"
    smaller = ["data.train=valid", "data.valid=none", "data.hold_out=0.002"] if large else []
    return [f"data.path={CORPORA / Path(recipe.data.path).name}", *smaller]


@pytest.mark.parametrize("name", [name for name in BUILT_IN if name not in FROM_PUBLISHED])
def test_the_first_steps_of_a_recipe_with_a_built_in_corpus(name: str, tmp_path: Path) -> None:
    run = first_steps(name, tmp_path)
    assert (run / "model.safetensors").is_file()


@pytest.mark.parametrize("name", STARTED)
def test_a_recipe_that_starts_from_another_run_fits_it(name: str) -> None:
    """Every weight of the other run but those of a different head has its place, and the tokenizer is the same."""
    recipe = load_recipe(name)
    parent = parent_of(recipe)
    assert parent
    assert recipe.tokenizer.path == recipe.train.init == f"runs/{parent.name}"
    ours, theirs = (shapes_of(each.model) for each in (recipe, parent))
    same_head = recipe.model.head == parent.model.head
    taken_over = [name for name in theirs if same_head or not name.startswith("head.")]
    assert taken_over
    assert all(ours[name] == theirs[name] for name in taken_over)


def shapes_of(config: ModelConfig) -> dict[str, torch.Size]:
    """The shapes of all weights of a model, with a small vocabulary."""
    with torch.device("meta"):
        model = build_model(replace(config, vocab=100, classes=2 if config.head == "classes" else 0))
    return {name: p.shape for name, p in model.named_parameters()}


@pytest.mark.skipif(not CORPORA.is_dir(), reason="the published corpora are not here")
@pytest.mark.parametrize("name", REAL)
def test_the_data_of_a_recipe_is_found(name: str) -> None:
    data = load_recipe(name).data
    assert Path(data.path).parent == Path("data")
    corpus = open_corpus(replace(data, path=str(CORPORA / Path(data.path).name)))
    assert {"train", "valid"} <= set(corpus.splits)
    assert next(iter(corpus.read("valid")))


@pytest.mark.long
@pytest.mark.skipif(not CORPORA.is_dir(), reason="the published corpora are not here")
@pytest.mark.parametrize("name", FROM_PUBLISHED)
def test_the_first_steps_of_a_recipe_that_starts_from_another_run(name: str, tmp_path: Path) -> None:
    run = first_steps(name, tmp_path)
    assert (run / "model.safetensors").is_file()


RECIPES = [load_recipe(name) for name in recipe_names()]
SECTIONS = {"model": ModelConfig, "tokenizer": TokenizerConfig, "data": DataConfig, "train": TrainConfig}
ROOT = Path(__file__).parent.parent
PAGES = [path for path in (ROOT / "docs").rglob("*.md") if path.parent.name != "reference"]  # it lists all settings


@pytest.mark.parametrize(
    "setting", [f"{section}.{field.name}" for section, cls in SECTIONS.items() for field in fields(cls)]
)
def test_a_setting_is_used_by_a_recipe_or_a_preset_or_explained_in_a_page(setting: str) -> None:
    section, name = setting.split(".")
    used = [getattr(recipe, section) for recipe in RECIPES]
    used += PRESETS.values() if section == "model" else []
    if all(getattr(config, name) == getattr(SECTIONS[section], name) for config in used):
        words = re.compile(rf"(?<![\w.]){re.escape(setting)}\b")  # not inside clearhead.train.parallel
        assert any(words.search(page.read_text(encoding="utf8")) for page in PAGES), f"nothing uses {setting}"
