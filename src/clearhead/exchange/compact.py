"""A smaller run: matrices as int8 with a scale for each row, a quarter of the size, without training files."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from clearhead.bundled import find_run
from clearhead.config import Recipe
from clearhead.fast.choose import quantise_rows
from clearhead.files import new_folder
from clearhead.recipes import write_recipe
from clearhead.runs import INT8_SCALE, TOKENIZER_FILES, Tensors, open_run, write_weights
from clearhead.text.tokenizer_formats import CONFIG_FILE
from clearhead.text.words import WORDS_FILE

COPIED = (*TOKENIZER_FILES, CONFIG_FILE, "facts.json", WORDS_FILE, "README.md", "MODEL_CARD.md")


def export(run_folder: Path, folder: Path) -> list[str]:
    """Write a smaller copy of a run, for all verbs; return notes for the user."""
    run = open_run(run_folder)
    with new_folder(folder) as hidden:
        for name in COPIED:
            if (run.folder / name).is_file():
                shutil.copyfile(run.folder / name, hidden / name)
        write_recipe(without_places(run.recipe), hidden / "run.toml")
        write_weights(quantised(dict(run.model.named_parameters())), hidden / "model.safetensors")
    before, after = ((path / "model.safetensors").stat().st_size / 1e6 for path in (find_run(run_folder), folder))
    if after >= before:
        return [f"{run_folder} was a compact run already: its weights have {after:.1f} MB, as before"]
    return [f"weights of {after:.1f} MB instead of {before:.1f} MB, rounded to int8: compare with `evaluate`"]


def quantised(weights: Tensors) -> Tensors:
    """Quantise each matrix to int8, with a scale for each row. Vectors stay."""
    stored: Tensors = {}
    for name, tensor in weights.items():
        if tensor.dim() == 2:
            stored[name], stored[name + INT8_SCALE] = quantise_rows(tensor)
        else:
            stored[name] = tensor
    return stored


def without_places(recipe: Recipe) -> Recipe:
    """The settings without paths of the training machine."""
    data = replace(recipe.data, cache="", path=f"data/{Path(recipe.data.path).name}" if recipe.data.path else "")
    return replace(
        recipe, data=data, tokenizer=replace(recipe.tokenizer, path=""), train=replace(recipe.train, init="")
    )
