"""Hugging Face both ways: a folder of `transformers` becomes a run, a run becomes such a folder."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import torch

from clearhead.config import DataConfig, ModelConfig, Recipe, UserError, require
from clearhead.decode.translate import EXTRA_TOKENS, SearchSettings
from clearhead.exchange.architecture import Architecture, choose_architecture
from clearhead.exchange.conversions import POOLING
from clearhead.exchange.source import Json, WeightFiles, find_source, read_json
from clearhead.exchange.tables import ARCHITECTURES
from clearhead.exchange.tokenizers import is_our_chat, read_chat_template, read_tokenizers, write_tokenizer
from clearhead.files import new_folder, require_empty, write_file
from clearhead.model import build_model
from clearhead.recipes import write_recipe
from clearhead.runs import Facts, Run, Tensors, hash_tokenizers, least_parameters, open_run, save_tensors, write_weights
from clearhead.tasks import TASKS
from clearhead.text.tokenizer import Tokenizers

ABSURD = 10  # a model with this many times the parameters of the files is not built; else the error names a tensor
NEVER = -10_000.0  # a logit that is lower than all others, in half precision too


def import_model(source: str, run: Path) -> list[str]:
    """Convert a model into a run; return notes for the user."""
    require_empty(run)  # before anything is downloaded
    folder = find_source(source)
    try:
        recipe, tokenizers, facts, weights = read_model(folder)
    except UserError as error:
        raise UserError(f"{source} cannot be imported: {error}") from error
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise UserError(f"{source} cannot be imported: its settings are damaged ({error!r})") from error
    origin = Path(source).resolve().name if Path(source).is_dir() else source
    recipe = replace(recipe, name=run.resolve().name, about=f"imported from {origin} ({recipe.about})")
    with new_folder(run) as hidden:
        write_recipe(recipe, hidden / "run.toml")
        tokenizers.save(hidden)
        replace(facts, tokenizers=hash_tokenizers(hidden)).write(hidden / "facts.json")
        write_weights(weights, hidden / "model.safetensors")
    foreign = read_chat_template(folder) and TASKS[recipe.data.task].example != "dialogue"
    unused = ["its chat template is not used: `clearhead chat` has its own format"] if foreign else []
    return [*generation_notes(folder), *unused]


def generation_notes(folder: Path) -> list[str]:
    """The options for the generation settings of a translator; the length penalty here is another function."""
    settings = read_generation(folder)
    beams = settings.get("num_beams") or 1
    penalty = settings.get("length_penalty", 1.0)
    if beams == 1:
        return []
    same = "the same" if penalty == 0 else "close to it: transformers divides by n^a, clearhead by ((5 + n) / 6)^a"
    return [
        f"its generation settings are num_beams = {beams} and length_penalty = {penalty}; "
        f"--beam {beams} --length-penalty {max(penalty, 0)} is {same}"
    ]


def read_generation(folder: Path) -> Json:
    """The generation settings, which older models have in config.json."""
    return read_json(folder / "config.json") | read_json(folder / "generation_config.json")


def suppress(weights: Tensors, settings: Json) -> None:
    """Suppress single tokens (`bad_words_ids`: Marian's padding) by the bias of the logits."""
    bias = weights.get("head.project.bias")
    words = [word for word in settings.get("bad_words_ids") or () if isinstance(word, list)]
    if words:
        require(
            bias is not None and all(len(word) == 1 and 0 <= word[0] < len(bias) for word in words),
            f"bad_words_ids = {words} cannot be expressed here: single tokens can, if the logits have a bias",
        )
        assert bias is not None
        bias[[word[0] for word in words]] = NEVER


def read_model(folder: Path) -> tuple[Recipe, Tokenizers, Facts, Tensors]:
    """Read the parts of a run from the files of a model; `about` of the recipe is the name of the model's class."""
    config = read_json(folder / "config.json")
    require(bool(config), "there is no config.json")
    architecture, kind = find_architecture(config)
    task = architecture.tasks[kind]
    sentences = read_sentence_settings(folder)
    model = architecture.read_settings(config | sentences, task)
    tokenizers = read_tokenizers(folder, read_generation(folder), model)
    files = WeightFiles(folder)
    least = least_parameters(model)
    known = f"and the weights have {files.size():,}: they do not belong together"
    require(least <= ABSURD * files.size(), f"config.json describes a model of at least {least:,} parameters, {known}")
    weights = architecture.read_weights(shapes_of(model), files, task)
    suppress(weights, read_generation(folder))
    longest = min(sentences.get("max_seq_length") or model.max_length, model.max_length)
    if model.family == "decoder-only" and is_our_chat(folder, tokenizers.target):
        task = "chat"
    data = DataConfig(task=task, max_length=longest, batch_tokens=max(longest, DataConfig.batch_tokens))
    labels = read_labels(config, model) if model.head == "classes" else ()
    facts = Facts(labels, one_sentence=model.family == "encoder-decoder")
    return Recipe(about=kind, model=model, data=data), tokenizers, facts, weights


def read_labels(config: Json, model: ModelConfig) -> tuple[str, ...]:
    """The names of the classes; without names, those that `transformers` gives them."""
    named = {int(number): str(name) for number, name in (config.get("id2label") or {}).items()}
    return tuple(named.get(number, f"LABEL_{number}") for number in range(model.classes))


def read_sentence_settings(folder: Path) -> Json:
    """The settings of sentence-transformers: pooling and maximum length."""
    modules = folder / "modules.json"
    if not modules.is_file():
        return {}
    kinds = [
        str(module.get("type", "")).rpartition(".")[2] for module in json.loads(modules.read_text(encoding="utf8"))
    ]
    unknown = {*kinds} - {"Transformer", "Pooling", "Normalize"}
    require(not unknown, f"modules.json has {', '.join(sorted(unknown))}, which cannot be expressed here")
    pooling = read_json(folder / "1_Pooling" / "config.json")
    modes = [
        name.removeprefix("pooling_mode_") for name, used in pooling.items() if name.startswith("pooling_") and used
    ]
    known = {"mean_tokens": "mean", "cls_token": "first"}
    require(len(modes) == 1 and modes[0] in known, f"1_Pooling: {modes} cannot be expressed here; known: {[*known]}")
    longest = read_json(folder / "sentence_bert_config.json").get("max_seq_length")
    return {POOLING: known[modes[0]], "max_seq_length": longest}


def find_architecture(config: Json) -> tuple[Architecture, str]:
    """The architecture of a model, and the name of its class."""
    model_type = config.get("model_type")
    require(model_type in ARCHITECTURES, f"model_type = {model_type!r} is not known; known: {', '.join(ARCHITECTURES)}")
    require("auto_map" not in config, "auto_map: the model needs its own Python code, which is never run")
    require(
        "quantization_config" not in config, "quantization_config: quantised weights cannot be read; take the original"
    )
    architecture = ARCHITECTURES[str(model_type)]
    classes = config.get("architectures") or list(architecture.tasks)
    found = [name for name in classes if name in architecture.tasks]
    require(
        bool(found), f"architectures = {classes!r} cannot be expressed here; known: {', '.join(architecture.tasks)}"
    )
    return architecture, found[0]


def shapes_of(config: ModelConfig) -> dict[str, torch.Size]:
    """The shapes of a model's parameters, without their memory."""
    with torch.device("meta"):
        model = build_model(replace(config, dropout=0.0))
    return {name: parameter.shape for name, parameter in model.named_parameters()}


# --- export -----------------------------------------------------------------------------------------------------------


def export(run_folder: Path, folder: Path) -> list[str]:
    """Write a run as a folder that `transformers` opens; return notes for the user."""
    run = open_run(run_folder)
    config, parameters = without_scale(run)
    task = "language" if TASKS[run.recipe.data.task].example == "dialogue" else run.recipe.data.task
    try:
        require(
            run.tokenizers.shared,
            "source and target have different tokenizers, and a folder has one; train with tokenizer.separate=false, "
            "keep the original folder if the run was imported, or try --to onnx",
        )
        architecture = choose_architecture(ARCHITECTURES.values(), config, task)
    except UserError as error:
        raise UserError(f"{run_folder} cannot be exported for transformers: {error}") from error
    settings = architecture.write_settings(config, task) | token_settings(run)
    settings["architectures"] = [name for name, known in architecture.tasks.items() if known == task][:1]
    if config.head == "classes":
        settings["id2label"] = {str(number): name for number, name in enumerate(run.labels)}
        settings["label2id"] = {name: number for number, name in enumerate(run.labels)}
    pooling = settings.pop(POOLING, None)
    weights = architecture.write_weights(parameters, config, task)
    with new_folder(folder) as hidden:
        write_json(settings | {"dtype": "float32"}, hidden / "config.json")
        write_json(generation_settings(run), hidden / "generation_config.json")
        write_tokenizer(run, hidden)
        if pooling:
            write_sentence_settings(run, pooling, hidden)
        save_tensors(weights, hidden / "model.safetensors", {"format": "pt"})
    return export_notes(run)


def without_scale(run: Run) -> tuple[ModelConfig, Tensors]:
    """Settings and weights with the embedding factor multiplied into the table, unless the logits share it.

    In `transformers`, only Marian has such a factor.
    """
    config = run.recipe.model
    parameters: Tensors = dict(run.model.named_parameters())
    shared = config.head == "vocabulary" and config.tied != "none"
    if config.family != "encoder-decoder" and config.scale_embedding and not shared:
        table = "decoder.embedding.weight" if config.family == "decoder-only" else "encoder.embedding.weight"
        parameters |= {table: parameters[table] * math.sqrt(config.d_model)}
        config = replace(config, scale_embedding=False)
    return config, parameters


def write_json(settings: object, path: Path) -> None:
    """Write settings as JSON."""
    path.parent.mkdir(exist_ok=True)
    write_file(path, json.dumps(settings, ensure_ascii=False, indent=1))


def token_settings(run: Run) -> Json:
    """The ids of the special tokens."""
    tokenizer = run.tokenizers.target
    ids = {"bos_token_id": tokenizer.start, "eos_token_id": tokenizer.end, "pad_token_id": tokenizer.pad}
    return ids | ({"decoder_start_token_id": tokenizer.start} if run.recipe.model.family == "encoder-decoder" else {})


def generation_settings(run: Run) -> Json:
    """The default search of the run's verb, in the terms of `transformers`."""
    if run.recipe.model.family != "encoder-decoder":
        return token_settings(run)
    how = SearchSettings()
    longest = (run.longest or run.recipe.data.max_length) + EXTRA_TOKENS
    search = {"num_beams": how.beam, "length_penalty": how.length_penalty, "early_stopping": "never"}
    return token_settings(run) | search | {"max_new_tokens": longest}


def write_sentence_settings(run: Run, pooling: str, folder: Path) -> None:
    """Write the files of sentence-transformers: pooling and normalisation."""
    kinds = ["Transformer", "Pooling", "Normalize"]
    paths = ["", "1_Pooling", "2_Normalize"]
    module = "sentence_transformers.models"
    rows = [
        {"idx": number, "name": str(number), "path": path, "type": f"{module}.{kind}"}
        for number, (kind, path) in enumerate(zip(kinds, paths, strict=True))
    ]
    write_json(rows, folder / "modules.json")
    modes = {"pooling_mode_cls_token": pooling == "first", "pooling_mode_mean_tokens": pooling == "mean"}
    write_json({"word_embedding_dimension": run.recipe.model.d_model, **modes}, folder / "1_Pooling" / "config.json")
    (folder / "2_Normalize").mkdir()
    write_json({"max_seq_length": run.recipe.data.max_length}, folder / "sentence_bert_config.json")


def export_notes(run: Run) -> list[str]:
    """Notes on what differs in `transformers`."""
    model = run.recipe.model
    if model.family == "encoder-decoder":
        return [
            f"length_penalty = {SearchSettings().length_penalty} of generation_config.json is close to our default: "
            "transformers divides by n^a, clearhead by ((5 + n) / 6)^a; only length_penalty = 0 is the same in both"
        ]
    if model.head == "embedding" and not model.head_dense:
        return [
            "AutoModel adds an unused pooler with random weights: the vector of a text is "
            f"{'the mean of the last hidden states' if model.pool == 'mean' else 'the last hidden state of its start'}"
        ]
    return []
