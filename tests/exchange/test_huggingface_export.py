"""Exported runs in `transformers`: the same logits, texts, classes and translations."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import clearhead
from clearhead.config import Family, UserError
from clearhead.decode.translate import SearchSettings, translate
from clearhead.exchange.huggingface import export, import_model
from clearhead.runs import Run, open_run
from clearhead.text.chat import render_prompt
from clearhead.text.dialogue import Dialogue, Message
from command_line import Verb
from peer_models import DECODERS, ENCODERS, TRANSLATORS, assert_close, build, random_ids, save, transformers
from saved_runs import save as save_run
from tiny_runs import SENTENCES, TEXT, tiny_run

MODERN = {"norm": "rms", "norm_order": "pre", "position": "rotary", "activation": "swiglu", "bias": False}
MODERN |= {"scale_embedding": False, "kv_heads": 2}
GPT = {"norm_order": "pre", "position": "learned", "scale_embedding": False, "activation": "gelu"}
BERT = {"position": "learned", "scale_embedding": False, "embedding_norm": True, "activation": "gelu"}
HEAD = {"head_dense": True, "head_bias": True}


def opened(folder: Path) -> Any:
    """The model that `transformers` finds in a folder."""
    settings = transformers.AutoConfig.from_pretrained(folder)
    return getattr(transformers, settings.architectures[0]).from_pretrained(folder).eval()


@pytest.mark.parametrize("kind", [*DECODERS.values(), *ENCODERS.values(), *TRANSLATORS.values()], ids=lambda k: k[1])
@torch.no_grad()
def test_what_was_imported_goes_back(kind: Any, tmp_path: Path) -> None:
    peer = build(kind)
    import_model(str(save(peer, tmp_path / "peer")), tmp_path / "run")
    export(tmp_path / "run", tmp_path / "back")
    back = opened(tmp_path / "back")
    ids = random_ids(2, 9)
    more = {"decoder_input_ids": random_ids(2, 5)} if kind[1] == "MarianMTModel" else {}
    ours = back(input_ids=ids, **more)
    theirs = peer(input_ids=ids, **more)
    found = "logits" if "logits" in ours else "pooler_output"
    assert_close(ours[found], theirs[found])


@pytest.mark.parametrize(
    "settings",
    [
        MODERN,
        MODERN | {"qkv_bias": True},
        MODERN | {"query_key_norm": True},
        MODERN | {"scale_embedding": True, "tied": "none"},
        GPT,
    ],
)
@torch.no_grad()
def test_our_language_models_write_the_same_text(settings: dict[str, Any], tmp_path: Path) -> None:
    run = save_run(tiny_run("decoder-only", **settings), tmp_path / "run")
    export(run, tmp_path / "exported")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "exported")
    encoded = tokenizer([TEXT, "a <end> cat"], padding=True, return_tensors="pt")
    written = opened(tmp_path / "exported").generate(**encoded, max_new_tokens=12, do_sample=False)
    theirs = [tokenizer.decode(row[encoded["input_ids"].size(1) :], skip_special_tokens=True) for row in written]
    assert clearhead.load(run).generate([TEXT, "a <end> cat"], tokens=12) == theirs


@torch.no_grad()
def test_conversations_have_their_template(tmp_path: Path) -> None:
    run = tiny_run("decoder-only", task="chat", **MODERN)
    export(save_run(run, tmp_path / "run"), tmp_path / "exported")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "exported")
    said = (
        Message("system", "Be brief."),
        Message("user", "a cat"),
        Message("assistant", "runs"),
        Message("user", TEXT),
    )
    messages = [{"role": message.role, "content": message.content} for message in said]
    encoded = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=True)
    assert encoded["input_ids"] == render_prompt(Dialogue(said), run.tokenizers.target)
    assert import_model(str(tmp_path / "exported"), tmp_path / "again") == []
    assert open_run(tmp_path / "again").recipe.data.task == "chat"
    (tmp_path / "exported" / "chat_template.jinja").write_text("{{ messages }}")
    [told] = import_model(str(tmp_path / "exported"), tmp_path / "foreign")
    assert "its chat template is not used" in told
    assert open_run(tmp_path / "foreign").recipe.data.task == "language"


@torch.no_grad()
@pytest.mark.parametrize("settings", [{}, {"activation": "silu", "encoder_layers": 3, "scale_embedding": False}])
def test_our_translators_are_marian_models(settings: dict[str, Any], tmp_path: Path) -> None:
    run = open_run(save_run(tiny_run(**settings), tmp_path / "run"))
    [told] = export(tmp_path / "run", tmp_path / "exported")
    assert "only length_penalty = 0 is the same in both" in told
    assert translations_of(tmp_path / "exported", SENTENCES) == our_translations(run, SENTENCES)


def our_translations(run: Run, texts: tuple[str, ...]) -> list[str]:
    run = replace(run, one_sentence=False)
    return [best.text for best, *_ in translate(run, texts, SearchSettings(beam=4, length_penalty=0.0, longest=20))]


def translations_of(folder: Path, texts: tuple[str, ...]) -> list[str]:
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    encoded = tokenizer(list(texts), padding=True, return_tensors="pt")
    written = opened(folder).generate(**encoded, length_penalty=0.0, max_new_tokens=20)
    return tokenizer.batch_decode(written, skip_special_tokens=True)


@torch.no_grad()
def test_our_encoders_are_bert_models(tmp_path: Path) -> None:
    heads: list[dict[str, Any]] = [HEAD, HEAD | {"head": "classes", "pool": "first"}, {"head": "embedding"}]
    heads += [{"head": "classes", "pool": "first", "head_dense": True, "segments": 2}]
    for number, settings in enumerate(heads):
        run = open_run(save_run(tiny_run("encoder-only", **BERT, **settings), tmp_path / f"run{number}"))
        folder = tmp_path / f"exported{number}"
        export(tmp_path / f"run{number}", folder)
        encoded = transformers.AutoTokenizer.from_pretrained(folder)(list(SENTENCES), padding=True, return_tensors="pt")
        output = opened(folder)(**encoded)
        real = encoded["attention_mask"].bool()
        ours = run.model(encoded["input_ids"], real)
        if "head" in settings and settings["head"] == "embedding":
            hidden = output.last_hidden_state * real[..., None]
            assert_close(ours, hidden.sum(1) / real.sum(1, keepdim=True))
            import_model(str(folder), tmp_path / "again")
            again = open_run(tmp_path / "again")
            assert_close(again.model(encoded["input_ids"], real), ours)
            assert again.recipe.data.max_length == 64
        else:
            rows = real if ours.dim() == 3 else slice(None)
            assert_close(ours[rows], output.logits[rows])


def test_labels_go_with_a_classifier(tmp_path: Path) -> None:
    run = save_run(tiny_run("encoder-only", **BERT, **HEAD, head="classes", pool="first"), tmp_path / "run")
    export(run, tmp_path / "exported")
    assert opened(tmp_path / "exported").config.id2label == {0: "bad", 1: "good", 2: "so so"}


@pytest.mark.parametrize(
    ("family", "settings", "message"),
    [
        ("decoder-only", {"norm": "rms", "norm_order": "pre", "activation": "swiglu", "bias": False}, "position"),
        ("decoder-only", GPT | {"scale_embedding": True}, r"a gpt2 model.* has no model.scale_embedding = True"),
        ("decoder-only", GPT | {"kv_heads": 2}, r"a gpt2 model.* has no model.kv_heads = 2"),
        ("decoder-only", GPT | {"activation": "swiglu"}, r"model.activation = 'swiglu' \(it has 'gelu', 'gelu-tanh'"),
        (
            "encoder-decoder",
            {"norm_order": "pre"},
            r"a marian model.* has no model.norm_order = 'pre' \(it has 'post'\)",
        ),
        ("encoder-decoder", {"tied": "none"}, r"a marian model.* has no model.tied = 'none'"),
        ("encoder-decoder", {"norm_epsilon": 1e-6}, r"has no model.norm_epsilon = 1e-06"),
        ("encoder-only", {"norm_order": "pre"}, r"a (distil)?bert model.* has no model.norm_order = 'pre'"),
    ],
)
def test_what_cannot_be_expressed_is_named(family: Family, settings: Any, message: str, tmp_path: Path) -> None:
    run = save_run(tiny_run(family, **settings), tmp_path / "run")
    with pytest.raises(UserError, match=message):
        export(run, tmp_path / "exported")
    assert not (tmp_path / "exported").exists()


def test_the_export_verb_writes_a_new_folder_only(tmp_path: Path, verb: Verb) -> None:
    run = save_run(tiny_run("decoder-only", **MODERN), tmp_path / "run")
    output, told, code = verb("export", run, tmp_path / "new" / "model", "--to", "huggingface")
    assert (output, code) == ([], 0)
    assert "config.json, generation_config.json, model.safetensors, tokenizer.json" in told
    assert (tmp_path / "new" / "model" / "model.safetensors").is_file()
    _, error, code = verb("export", run, tmp_path / "new" / "model", "--to", "huggingface")
    assert code == 1
    assert "is not empty" in error
    assert verb("export", run, tmp_path / "other", "--to", "nowhere")[2] == 2
    assert verb("export", run, tmp_path / "other")[2] == 2
