"""What an import refuses, with the name of the setting or file that is in the way."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from clearhead.config import UserError
from clearhead.exchange.huggingface import import_model
from llama_folders import SETTINGS, folder_with
from properties import given, st

MORE = {"rope_parameters": None, "head_dim": None, "eos_token_id": None, "sliding_window": None, "id2label": None}
WILD = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["rope_type", "factor", "0"]), inner),
    max_leaves=4,
)


def test_the_tiny_llama_itself_is_imported(tmp_path: Path) -> None:
    assert import_model(str(folder_with(tmp_path / "model")), tmp_path / "run") == []


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model_type": "t5"}, "model_type = 't5' is not known; known: "),
        ({"architectures": ["LlamaForTokenClassification"]}, r"architectures = \['LlamaForTokenClassification'\]"),
        ({"hidden_act": "gelu"}, "hidden_act = 'gelu' cannot be expressed here"),
        ({"mlp_bias": True}, "mlp_bias = True cannot be expressed"),
        ({"rope_scaling": {"rope_type": "yarn", "factor": 2.0}}, "rope_scaling of type 'yarn'"),
        ({"hidden_size": None}, "config.json has no hidden_size"),
        ({"hidden_size": "wide"}, "model.d_model = 'wide'"),
        ({"hidden_size": 32}, r"weights model.embed_tokens.weight are \(300, 16\), and config.json says \(300, 32\)"),
        ({"num_hidden_layers": 2}, "the weights have no model.layers.1."),
        ({"num_hidden_layers": 10**12}, "config.json describes a model of at least"),
        ({"vocab_size": 10**12}, "config.json describes a model of at least"),
        ({"vocab_size": 200}, "has 300 ids, and the model 200 embeddings"),
        ({"auto_map": {"AutoModel": "modeling.Model"}}, "auto_map: the model needs its own Python code"),
        ({"quantization_config": {"bits": 4}}, "quantization_config"),
    ],
)
def test_settings_that_cannot_be_expressed(tmp_path: Path, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        import_model(str(folder_with(tmp_path / "model", **settings)), tmp_path / "run")
    assert not (tmp_path / "run").exists()


@given(name=st.sampled_from(sorted(SETTINGS | MORE)), value=WILD)
def test_damaged_settings_end_in_one_sentence(tmp_path_factory: pytest.TempPathFactory, name: str, value: Any) -> None:
    folder = tmp_path_factory.mktemp("wild")
    with suppress(UserError):
        import_model(str(folder_with(folder / "model", **{name: value})), folder / "run")


@pytest.mark.parametrize("text", ["", "[]", "{", "null", "[" * 100_000, "\udcff"])
def test_a_damaged_config_ends_in_one_sentence(tmp_path: Path, text: str) -> None:
    model = folder_with(tmp_path / "model")
    (model / "config.json").write_bytes(text.encode("utf8", "surrogateescape"))
    with pytest.raises(UserError, match=r"config\.json"):
        import_model(str(model), tmp_path / "run")


def test_pickled_weights_are_not_read(tmp_path: Path) -> None:
    model = folder_with(tmp_path / "model")
    (model / "model.safetensors").rename(model / "pytorch_model.bin")
    with pytest.raises(UserError, match=r"has no model.safetensors: only safetensors are read"):
        import_model(str(model), tmp_path / "run")


def test_weights_without_a_place_are_not_dropped(tmp_path: Path) -> None:
    model = folder_with(tmp_path / "model")
    save_file({"model.layers.0.self_attn.q_norm.weight": torch.ones(4)}, model / "more.safetensors")
    names = dict.fromkeys(names_in(model / "model.safetensors"), "model.safetensors")
    names["model.layers.0.self_attn.q_norm.weight"] = "more.safetensors"
    (model / "model.safetensors.index.json").write_text(json.dumps({"weight_map": names}))
    with pytest.raises(UserError, match=r"the weights model.layers.0.self_attn.q_norm.weight have no place"):
        import_model(str(model), tmp_path / "run")


def names_in(path: Path) -> list[str]:
    from safetensors import safe_open

    with safe_open(path, "pt") as file:
        return list(file.keys())


@pytest.mark.parametrize("file", ["../model.safetensors", "/etc/passwd", "weights.bin", 3])
def test_shards_lie_in_the_folder(tmp_path: Path, file: object) -> None:
    model = folder_with(tmp_path / "model")
    (model / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"lm_head.weight": file}}))
    with pytest.raises(UserError, match=r"does not name .safetensors files of its folder"):
        import_model(str(model), tmp_path / "run")


def test_a_run_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "file").touch()
    with pytest.raises(UserError, match="is not empty"):
        import_model(str(folder_with(tmp_path / "model")), tmp_path / "run")


def test_a_source_without_a_name(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="SOURCE is empty"):
        import_model("", tmp_path / "run")


@pytest.mark.parametrize("source", ["./nowhere", "/no/such/folder", "a b"])
def test_a_source_that_is_nowhere(tmp_path: Path, source: str) -> None:
    with pytest.raises(UserError, match="there is no such folder"):
        import_model(source, tmp_path / "run")
