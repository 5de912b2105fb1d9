"""Runs exported as GGUF: llama.cpp writes the same texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import clearhead
from clearhead.config import UserError
from clearhead.exchange.huggingface import import_model
from clearhead.exchange.targets import export_run
from peer_models import DECODERS, build
from peer_models import save as save_peer
from real_corpora import SHARED, needs_shared
from saved_runs import save
from tiny_runs import SENTENCES, TEXT, tiny_run

pytest.importorskip("gguf", reason="gguf is not installed: pip install 'clearhead[gguf]'")
llama = pytest.importorskip("xllamacpp", reason="xllamacpp is not installed: pip install xllamacpp")

LLAMA: dict[str, Any] = {"norm": "rms", "norm_order": "pre", "position": "rotary", "activation": "swiglu"}
LLAMA |= {"bias": False, "scale_embedding": False, "kv_heads": 2, "d_model": 32}


def server(run: Path, folder: Path) -> Any:
    """llama.cpp with the exported run."""
    export_run(run, folder, "gguf")
    settings = llama.CommonParams()
    settings.model.path = str(folder / "model.gguf")
    settings.n_ctx = 512
    settings.n_parallel = 1
    settings.warmup = False
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = 1
    settings.cache_type_k = settings.cache_type_v = llama.ggml_type.GGML_TYPE_F32
    return llama.Server(settings)


def written(opened: Any, prompt: str, tokens: int) -> str:
    asked = {"prompt": prompt, "n_predict": tokens, "temperature": 0, "top_k": 1}
    return str(opened.handle_completions(asked)["choices"][0]["text"])


@needs_shared
def test_a_trained_llama_writes_the_same_text(tmp_path: Path) -> None:
    import_model(str(SHARED / "stories260k"), tmp_path / "run")
    opened = server(tmp_path / "run", tmp_path / "exported")
    model = clearhead.load(tmp_path / "run")
    assert written(opened, "", 250) == " " + model.generate("", tokens=250)  # it shows the space before the first word
    for prompt in ("Once upon a time", "One day, Tom and his dog went to the park. The dog saw a", "Zoë's café №5:"):
        assert written(opened, prompt, 60) == model.generate(prompt, tokens=60)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"tied": "none", "scale_embedding": True},
        {"rotary_factor": 4.0},
        {"qkv_bias": True},
        {"query_key_norm": True},
    ],
)
def test_runs_of_our_own_write_the_same_text(settings: dict[str, Any], tmp_path: Path) -> None:
    run = save(tiny_run("decoder-only", wider=3, **LLAMA | settings), tmp_path / "run")
    opened = server(run, tmp_path / "exported")
    model = clearhead.load(run)
    for prompt in (*SENTENCES, "  two  spaces\n\nété 12,345 don't"):
        ours = model.generate(prompt, tokens=12).replace("<unknown>", "")  # which llama.cpp does not show
        assert written(opened, prompt, 12) == ours


def test_slower_rotations_are_those_of_llama_3(tmp_path: Path) -> None:
    import_model(str(save_peer(build(DECODERS["llama 3.1"]), tmp_path / "peer")), tmp_path / "run")
    opened = server(tmp_path / "run", tmp_path / "exported")
    long = " ".join(SENTENCES)
    assert written(opened, long, 20) == clearhead.load(tmp_path / "run").generate(long, tokens=20)


def test_conversations_have_their_template(tmp_path: Path) -> None:
    run = save(tiny_run("decoder-only", task="chat", **LLAMA), tmp_path / "run")
    opened = server(run, tmp_path / "exported")
    asked = {"messages": [{"role": "user", "content": TEXT}], "max_tokens": 12, "temperature": 0, "top_k": 1}
    answer = opened.handle_chat_completions(asked)["choices"][0]["message"]["content"]
    assert answer == "".join(clearhead.load(run).chat(TEXT, tokens=12))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"position": "learned"}, r"for llama.cpp: a llama model, which is the nearest, has no model.position"),
        ({"window": 4}, r"has no model.window = 4"),
    ],
)
def test_what_cannot_be_expressed_is_named(settings: dict[str, Any], message: str, tmp_path: Path) -> None:
    run = save(tiny_run("decoder-only", **LLAMA | settings), tmp_path / "run")
    with pytest.raises(UserError, match=message):
        export_run(run, tmp_path / "exported", "gguf")
    assert not (tmp_path / "exported").exists()


def test_other_families_are_refused_by_name(tmp_path: Path) -> None:
    run = save(tiny_run("encoder-decoder", task="translation"), tmp_path / "run")
    with pytest.raises(UserError, match=r"for llama.cpp: model.family = 'encoder-decoder'.*try --to onnx"):
        export_run(run, tmp_path / "exported", "gguf")
