"""A run: a folder that holds all there is to a model, filled by training and complete at every moment."""

from __future__ import annotations

import fnmatch
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import nn

from clearhead.config import Recipe, UserError, require
from clearhead.model import build_model
from clearhead.recipes import differences, load_recipe, write_recipe
from clearhead.text.loader import open_batches
from clearhead.text.tokenizer import Tokenizers, load_tokenizers
from clearhead.train.checkpoint import checkpoint_folders, load_checkpoint, model_tensors, restore_model
from clearhead.train.device import choose_machine
from clearhead.train.log import Log
from clearhead.train.loop import Learner, learn
from clearhead.train.loss import Objective
from clearhead.train.optimiser import make_optimisers
from clearhead.train.prepare import complete, open_train, prepare_tokenizers

MAY_CHANGE = ("train.steps", "train.evaluate_every", "train.patience", "train.device", "train.compile", "data.cache")


def train(recipe: Recipe, run: Path, resume: bool = False, quiet: bool = False) -> None:
    """Train a recipe into a run folder, from the start or from where it stopped."""
    checkpoints = checkpoint_folders(run)
    require(
        resume or not checkpoints,
        f"{run} holds a run already; --resume goes on with it, --run DIR makes another, or remove the folder",
    )
    tokenizers = open_tokenizers(recipe, run, resume and bool(checkpoints))
    batches = open_train(recipe, tokenizers, 0, 1)
    valid = open_batches(recipe.data, tokenizers, "valid", recipe.train.seed)
    recipe = complete(recipe, tokenizers, batches[0].labels)
    if checkpoints:
        refuse_other_recipe(recipe, run)
    write_recipe(recipe, run / "run.toml")
    learner = begin(recipe)
    if checkpoints:
        learner.restore(load_checkpoint(checkpoints[-1]))
    with Log(run, recipe.train.steps, learner.step, quiet) as log:
        for line in {line for source in (*batches, valid) for line in source.report.lines()}:
            log.say(f"data: {line}")
        log.say(
            f"{recipe.name}: {sum(p.numel() for p in learner.model.parameters()):,} parameters on {learner.machine}"
        )
        learn(learner, recipe, batches, valid, run, log)
    save_file(model_tensors(learner.model), run / "model.safetensors")


def open_tokenizers(recipe: Recipe, run: Path, begun: bool) -> Tokenizers:
    """The tokenizers of the run, or for a new one those that its recipe asks for, saved with it."""
    if begun:
        return load_tokenizers(run)
    try:
        run.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot make the run folder {run}: {error.strerror}; choose another with --run") from error
    tokenizers = prepare_tokenizers(recipe)
    tokenizers.save(run)
    return tokenizers


def refuse_other_recipe(recipe: Recipe, run: Path) -> None:
    """Go on only with the recipe that the run was begun with."""
    saved = load_recipe(str(run / "run.toml"))
    changed = [line for line in differences(recipe, saved) if not line.startswith(MAY_CHANGE)]
    require(not changed, f"{run} was begun with another recipe: {'; '.join(changed)}; start another run with --run DIR")


def begin(recipe: Recipe) -> Learner:
    """A model at the start of its training."""
    torch.manual_seed(recipe.train.seed)
    machine = choose_machine(recipe.train)
    model = build_model(recipe.model).to(machine.device)
    if recipe.train.init:
        start_from(model, Path(recipe.train.init))
    freeze(model, recipe.train.freeze)
    if machine.compiled:
        model.compile_blocks()
    return Learner(Objective(model, recipe), make_optimisers(model, recipe.train), machine)


def start_from(model: nn.Module, run: Path) -> None:
    """Take over every weight of another run that has its place in this model; the rest stays fresh."""
    path = run / "model.safetensors"
    require(path.is_file(), f"train.init = {str(run)!r}: there is no model.safetensors in that folder")
    theirs, ours = load_file(path), model_tensors(model)
    shared = {name: t for name, t in theirs.items() if name in ours and ours[name].shape == t.shape}
    require(bool(shared), f"train.init = {str(run)!r}: none of its weights fits this model; compare the two run.toml")
    restore_model(model, ours | shared)


def freeze(model: nn.Module, patterns: str) -> None:
    """Keep the parameters whose names match one of the patterns as they are."""
    for pattern in patterns.split():
        names = [name for name, _ in model.named_parameters() if fnmatch.fnmatchcase(name, pattern)]
        require(
            bool(names),
            f"train.freeze: no parameter matches {pattern!r}; names look like encoder.blocks.0.attention.key.weight",
        )
        for name in names:
            model.get_parameter(name).requires_grad_(False)
    require(any(p.requires_grad for p in model.parameters()), f"train.freeze = {patterns!r} leaves nothing to learn")
