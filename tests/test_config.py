"""Settings are read, overridden, and refused with the setting, the value and the remedy."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from clearhead.config import ModelConfig, Recipe, TrainConfig, UserError
from clearhead.habits import habits
from clearhead.model import build_model
from clearhead.presets import PRESETS, preset
from clearhead.recipes import build, find_recipe, load_recipe, settings_named, write_recipe
from ordinary_user import as_ordinary_user, folder_for_all
from tiny_models import decoder_only, encoder_decoder, encoder_only

REFUSED = [
    ({"d_model": 100, "heads": 8}, "model.d_model = 100 is not divisible by model.heads = 8; try d_model = 104"),
    ({"d_model": 64, "heads": 6, "position": "rotary"}, "is not divisible by model.heads = 6; try d_model = 72"),
    ({"heads": 8, "kv_heads": 3}, "model.heads = 8 is not divisible by model.kv_heads = 3; kv_heads can be 1, 2, 4, 8"),
    ({"d_model": 36, "heads": 4, "position": "rotary"}, "model.d_model / heads = 9 is odd"),
    ({"d_model": 15, "heads": 3}, "model.d_model = 15 is odd"),
    ({"layers": 0}, "model.layers = 0: must be at least 1"),
    ({"kv_heads": -1}, "model.kv_heads = -1: must not be negative"),
    ({"dropout": 1.0}, "model.dropout = 1.0: must be at least 0 and below 1"),
    ({"family": "encoder-only", "head": "classes", "classes": 1}, "model.classes = 1: with one class there is nothing"),
    ({"family": "encoder-only", "classes": 3}, "model.classes = 3 needs model.head = 'classes'"),
    ({"family": "decoder-only", "pool": "first"}, "model.pool = 'first' needs model.family = 'encoder-only'"),
    ({"norm_epsilon": 0.0}, "model.norm_epsilon = 0.0: must be above 0"),
    ({"rotary_base": -1.0}, "model.rotary_base = -1.0: must be above 0"),
    ({"family": "decoder-only", "head": "classes", "classes": 2}, "needs model.family = 'encoder-only'"),
    ({"family": "decoder-only", "encoder_layers": 2}, "needs model.family = 'encoder-decoder'"),
    ({"vocab": 9, "source_vocab": 8}, "use tied = 'output' or one shared vocabulary"),
    ({"norm": "batch"}, "model.norm = 'batch': expected layer | rms"),
    ({"head_channels": 5, "position": "rotary"}, "model.head_channels = 5 is odd; make it even"),
    ({"activation": "gelu_tanh"}, "did you mean 'gelu-tanh'?"),
    ({"head_count": 4}, "unknown setting model.head_count; did you mean 'head"),
    ({"d_model": "big"}, "model.d_model = 'big': expected a whole number, not str"),
    ({"d_model": 64.0}, "model.d_model = 64.0: expected a whole number, not float"),
    ({"bias": 1}, "model.bias = 1: expected true or false, not int"),
]


@pytest.mark.parametrize(("settings", "message"), REFUSED, ids=lambda value: str(value)[:40])
def test_what_cannot_work_is_refused_at_once(settings: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=re.escape(message)):
        build(Recipe, {"model": settings})


@pytest.mark.parametrize(
    ("settings", "message"), [case for case in REFUSED if "unknown" not in case[1]], ids=lambda value: str(value)[:40]
)
def test_the_library_refuses_the_same(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=re.escape(message)):
        ModelConfig(**settings)


def test_a_model_needs_to_know_how_many_tokens_and_classes_there_are() -> None:
    with pytest.raises(UserError, match=r"model\.vocab = 0"):
        build_model(ModelConfig())
    with pytest.raises(UserError, match=r"model\.classes = 0"):
        build_model(ModelConfig(family="encoder-only", vocab=9, head="classes"))


@pytest.mark.parametrize("bad", [-1, 50])
def test_ids_outside_the_vocabulary_are_named(bad: int) -> None:
    with pytest.raises(UserError, match=rf"token id {bad} is outside the vocabulary of model\.vocab = 50"):
        decoder_only()(torch.tensor([[3, bad, 4]]))


def test_what_a_model_cannot_take_is_named() -> None:
    ids, translator = torch.tensor([[3, 4, 5]]), encoder_decoder(tied="output", source_vocab=60)
    with pytest.raises(UserError, match=r"token id 60 is outside the vocabulary of model\.source_vocab = 60"):
        translator(ids + 55, ids)
    with pytest.raises(UserError, match=r"True where a token is real, not torch\.float32"):
        translator(ids, ids, torch.ones(1, 3))
    with pytest.raises(UserError, match=r"True where a token is real, not torch\.int64"):
        decoder_only().start(ids, torch.ones_like(ids))
    with pytest.raises(UserError, match=r"model\.segments = 0"):
        encoder_only()(ids, segments=torch.zeros_like(ids))
    with pytest.raises(UserError, match="at least one token"):
        decoder_only().start(ids[:, :0])


SIZES = {
    "paper-base": 63_082_496,  # the paper says 65 million
    "paper-big": 214_245_376,  # and 213 million
    "gpt2": 124_439_808,
    "bert-base": 109_482_240,
    "modern-100m": 100_682_496,
    "modern-1b": 1_100_048_384,  # TinyLlama
    "modern-7b": 7_241_732_096,  # Mistral
    "tiny-encoder-decoder": 249_856,
    "tiny-decoder-only": 116_480,
    "tiny-encoder-only": 116_480,
}


def test_presets_have_their_published_sizes() -> None:
    assert {name: count_parameters(config) for name, config in PRESETS.items()} == SIZES


def test_bert_for_masked_words_has_its_published_size() -> None:
    config = build(ModelConfig, {**vars(PRESETS["bert-base"]), "head": "vocabulary"})
    assert count_parameters(config) == 109_514_298


def count_parameters(config: ModelConfig) -> int:
    with torch.device("meta"):
        return sum(p.numel() for p in build_model(config).parameters())


def test_an_unknown_preset_gets_a_suggestion() -> None:
    with pytest.raises(UserError, match="did you mean 'paper-base'"):
        preset("paper_base")


@pytest.fixture
def recipe(tmp_path: Path) -> str:
    path = tmp_path / "mine.toml"
    path.write_text('about = "a test"\n[model]\npreset = "gpt2"\nlayers = 3\n[data]\ntask = "language"\n')
    return str(path)


def test_overrides_win_over_the_recipe_and_the_recipe_over_its_preset(recipe: str) -> None:
    read = load_recipe(
        recipe, ["model.layers=5", "model.dropout=0", "data.source=1", "model.norm=rms", "data.pack=false"]
    )
    assert (read.name, read.model.layers, read.model.d_model, read.model.norm) == ("mine", 5, 768, "rms")
    assert (read.model.dropout, read.data.source, read.data.pack) == (0.0, "1", False)
    assert load_recipe(recipe).model.layers == 3


def test_a_preset_as_an_override_replaces_the_model_of_the_recipe(recipe: str) -> None:
    assert load_recipe(recipe, ["model.preset=gpt2"]).model == preset("gpt2")
    read = load_recipe(recipe, ["model.d_ff=64", "model.preset=tiny-decoder-only"]).model
    assert read == replace(preset("tiny-decoder-only"), d_ff=64)


def test_the_model_of_a_run_is_a_preset(recipe: str, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    write_recipe(load_recipe(recipe, ["model.d_ff=64"]), run / "run.toml")
    read = load_recipe("stories", [f"model.preset={run}", "model.dropout=0"])
    assert read.model == replace(load_recipe(recipe).model, d_ff=64, dropout=0.0)
    assert read.name == "stories"


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ("model.layers", "overrides are written section.key=value"),
        ("modle.layers=3", "there is no section 'modle'; did you mean model.layers?"),
        ("modle.layer=3", "there is no section 'modle'; did you mean 'model'?"),
        ("training.lr=3", "there is no section 'training'; write train.learning_rate=1e-3"),
        ("train.lr=3", "unknown setting train.lr; write train.learning_rate=1e-3"),
        ("lr=3", "unknown setting lr; write train.learning_rate=1e-3"),
        ("train.epochs=3", "unknown setting train.epochs; write train.steps=1000 (training is counted in steps"),
        ("batch_size=3", "unknown setting batch_size; write data.batch_tokens=4096"),
        ("data.batch_size=3", "unknown setting data.batch_size; write data.batch_tokens=4096"),
        ("train.layers=3", "unknown setting train.layers; did you mean model.layers?"),
        ("model.layer=3", "unknown setting model.layer; did you mean 'layers'?"),
        ("model.layers=three", "model.layers = 'three': expected a whole number, not str"),
        ("model.layers.x=3", "'layers' is a setting; write model.layers=3"),
        ("model.preset=gpt3", "model.preset = 'gpt3': neither a preset nor the folder of a run; did you mean 'gpt2'?"),
        ("model=3", "model = 3: expected a table, [model]"),
    ],
)
def test_bad_overrides_say_what_was_meant(recipe: str, item: str, message: str) -> None:
    with pytest.raises(UserError, match=re.escape(message)):
        load_recipe(recipe, [item])


@pytest.mark.parametrize("written", re.findall(r"\w+\.\w+=[\w-]+", " ".join(habits().values())))
def test_what_is_written_instead_of_the_words_of_other_tools_is_a_setting(recipe: str, written: str) -> None:
    assert load_recipe(recipe, [written])


def test_no_word_of_other_tools_is_a_setting_or_said_twice() -> None:
    words = [word for names in habits() for word in names.split()]
    assert len(words) == len(set(words))
    settings = [names for names, remedy in habits().items() if "=" in remedy]
    assert [word for names in settings for word in names.split() if settings_named(word)] == []


def test_own_data_replaces_the_corpus_of_a_recipe_and_a_corpus_its_path() -> None:
    own = load_recipe("reviews", ["data.path=my.csv"]).data
    assert (own.corpus, own.path) == ("", "my.csv")
    assert load_recipe("reviews", ["data.path="]).data.corpus == "reviews"
    built_in = load_recipe("sst2", ["data.corpus=reviews"]).data
    assert (built_in.corpus, built_in.path) == ("reviews", "")
    assert load_recipe("sst2", ["data.corpus="]).data.path == "data/sst2"
    with pytest.raises(UserError, match="choose one of them"):
        load_recipe("reviews", ["data.path=my.csv", "data.corpus=reviews"])


def test_text_is_taken_as_it_stands_or_from_quotes(recipe: str) -> None:
    for item in (r"data.separator=\n", 'data.separator="\\n"', "data.separator=\n"):
        assert load_recipe(recipe, [item]).data.separator == "\n"
    assert load_recipe(recipe, ["data.path=my files/x"]).data.path == "my files/x"
    assert load_recipe(recipe, ["model.layers= 5 "]).model.layers == 5


def test_a_section_that_is_a_value_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "odd.toml"
    path.write_text("model = 3\n")
    with pytest.raises(UserError, match=r"model = 3: expected a table, \[model\]"):
        load_recipe(str(path), ["model.layers=3"])


def test_a_file_that_is_no_toml_says_where(tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    path.write_text("[model\n")
    with pytest.raises(UserError, match=r"bad\.toml is not valid TOML: .*line 1"):
        load_recipe(str(path))


def test_a_preset_that_is_no_name_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "odd.toml"
    path.write_text("[model]\npreset = 5\n")
    with pytest.raises(UserError, match=r"model\.preset = 5: expected text in quotes, not int"):
        load_recipe(str(path))


def test_what_is_written_can_be_read(tmp_path: Path) -> None:
    about = "DEL \x7f, quotation marks \" and ', a line\nend, an umlaut ü"
    recipe = Recipe("mine", about, train=TrainConfig(clip=math.inf, learning_rate=1e-05))
    write_recipe(recipe, tmp_path / "mine.toml")
    assert load_recipe(str(tmp_path / "mine.toml")) == recipe


def test_a_recipe_that_may_not_be_read_says_so() -> None:
    with folder_for_all() as folder:
        path = folder / "mine.toml"
        path.touch()
        path.chmod(0)
        with as_ordinary_user(), pytest.raises(UserError, match=r"mine\.toml cannot be read: Permission denied"):
            load_recipe(str(path))


def test_a_missing_recipe_says_so(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        find_recipe(str(tmp_path / "none.toml"))
    with pytest.raises(UserError, match="no such file"):
        find_recipe("x" * 300 + ".toml")  # longer than a name can be
    with pytest.raises(UserError, match="no recipe of this name"):
        find_recipe("nothing-like-it")
