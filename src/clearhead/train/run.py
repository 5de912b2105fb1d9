"""A run: a folder that holds all there is to a model, filled by training and complete at every moment."""

from __future__ import annotations

import fnmatch
from pathlib import Path

import torch
from torch import nn

from clearhead.config import Recipe, UserError, require
from clearhead.data.loader import open_batches
from clearhead.device import choose_machine
from clearhead.files import write_file
from clearhead.model import build_model
from clearhead.recipes import differences, load_recipe, write_recipe
from clearhead.runs import Run, read_weights, write_weights
from clearhead.text.tokenizer import Tokenizers, load_tokenizers
from clearhead.train.average import Average
from clearhead.train.best import Best, Validation
from clearhead.train.checkpoint import checkpoint_folders, load_checkpoint, model_tensors, restore_model
from clearhead.train.loop import Learner, learn
from clearhead.train.lora import add_corrections, merge_corrections
from clearhead.train.loss import Objective
from clearhead.train.optimiser import make_optimisers
from clearhead.train.parallel import ALONE, Group, checkpoint_blocks, join_group, seed_process, share
from clearhead.train.prepare import complete, facts_of, open_train, prepare_tokenizers
from clearhead.train.watching.card import write_card
from clearhead.train.watching.log import Log
from clearhead.train.watching.samples import open_samples
from clearhead.train.watching.snapshots import drop_later_snapshots

MAY_CHANGE = (
    *("train.steps", "train.evaluate_every", "train.patience", "train.device", "train.compile", "data.cache"),
    *("train.samples", "train.snapshots", "train.tensorboard", "train.parallel", "train.checkpoint_activations"),
)


def train(recipe: Recipe, run: Path, resume: bool = False, quiet: bool = False) -> None:
    """Train a recipe into a run folder, from the start or from where it stopped; with others, if torchrun says so."""
    with join_group(recipe.train) as group:
        train_in(group, recipe, run, resume or begun_by(group, run), quiet or not group.first)


def train_in(group: Group, recipe: Recipe, run: Path, resume: bool, quiet: bool) -> None:
    """Train as one of a group of processes."""
    checkpoints = checkpoint_folders(run)
    require(
        resume or not checkpoints,
        f"{run} holds a run already; --resume goes on with it, --run DIR makes another, or remove the folder",
    )
    begun = bool(checkpoints) or not group.first  # the others find what the first has saved
    tokenizers = group.in_turn(lambda: open_tokenizers(recipe, run, begun))
    batches = group.in_turn(lambda: open_train(recipe, tokenizers, group.rank, group.world))
    valid = group.in_turn(lambda: open_batches(recipe.data, tokenizers, "valid", recipe.train.seed))
    recipe = complete(recipe, tokenizers, batches[0].labels)
    facts = facts_of(recipe, batches[0])
    if group.first:
        write_down(recipe, run, bool(checkpoints), group.launch)
        facts.write(run / "facts.json")
    learner = begin(recipe, group)
    if checkpoints:
        learner.restore(load_checkpoint(checkpoints[-1]))
    require_agreement(group, learner.step, run)
    if group.first:
        drop_later_snapshots(run, learner.step)
    samples = open_samples(recipe, tokenizers, valid, learner.machine.device)
    with Log(run if group.first else None, recipe, learner.machine, learner.step, samples, quiet) as log:
        for line in dict.fromkeys(line for source in (*batches, valid) for line in source.report.lines()):
            log.say(f"data: {line}")
        size = sum(p.numel() for p in learner.model.parameters())
        log.say(f"{recipe.name}: {size:,} parameters on {learner.machine}{group}")
        known = (facts.labels, learner.objective.model, facts.longest, facts.one_sentence)
        learn(learner, recipe, batches, Validation(valid, Run(run, recipe, tokenizers, *known)), run, log)
    finish(learner, recipe, run)


def finish(learner: Learner, recipe: Recipe, run: Path) -> None:
    """Write the weights that a run ends with (averaged, or of its best evaluation, if it is to be so) and its card."""
    with learner.average.in_place_of(learner.model):
        if learner.best.weights:
            restore_model(learner.model, learner.best.weights)
        merge_corrections(learner.model)
        weights = learner.weights()
        if learner.group.first:
            write_weights(weights, run / "model.safetensors")
            write_card(recipe, run, sum(t.numel() for t in weights.values()), learner.step)


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


def begun_by(group: Group, run: Path) -> bool:
    """Whether torchrun has begun this run and now starts the processes again, because one of them died."""
    mark = run / "launch"
    return group.restarted and mark.is_file() and mark.read_text(encoding="utf8") == group.launch


def write_down(recipe: Recipe, run: Path, begun: bool, launch: str) -> None:
    """Save the recipe of a run, and the torchrun that trains it; one that was begun must have the same recipe."""
    if begun:
        refuse_other_recipe(recipe, run)
    write_recipe(recipe, run / "run.toml")
    (run / "launch").unlink(missing_ok=True)
    if launch:
        write_file(run / "launch", launch)


def require_agreement(group: Group, step: int, run: Path) -> None:
    """Go on only if all processes have read the same checkpoint."""
    steps = [int(each) for each in group.each(torch.tensor(step))]
    require(
        len(set(steps)) == 1,
        f"the processes would go on from different steps, {steps}; {run} must be one folder that all of them see",
    )


def refuse_other_recipe(recipe: Recipe, run: Path) -> None:
    """Go on only with the recipe that the run was begun with."""
    saved = load_recipe(str(run / "run.toml"))
    changed = [line for line in differences(recipe, saved) if not line.startswith(MAY_CHANGE)]
    require(not changed, f"{run} was begun with another recipe: {'; '.join(changed)}; start another run with --run DIR")


def begin(recipe: Recipe, group: Group = ALONE) -> Learner:
    """A model at the start of its training: the same in all processes, with random numbers of its own in each."""
    torch.manual_seed(recipe.train.seed)
    machine = choose_machine(recipe.train)
    model = build_model(recipe.model)
    if recipe.train.init:
        start_from(model, Path(recipe.train.init))
    freeze(model, recipe.train.freeze)
    if recipe.train.lora:
        add_corrections(model, recipe.train.lora, recipe.train.lora_on)
    if recipe.train.checkpoint_activations:
        checkpoint_blocks(model)
    if machine.compiled:
        model.compile_blocks()
    objective = Objective(model, recipe)
    shared = share(objective, machine, group, recipe.train)
    if not group.first:
        seed_process(recipe.train.seed, 0, group.rank)
    optimisers = make_optimisers(model, recipe.train)
    return Learner(objective, shared, optimisers, machine, group, Average(recipe.train), Best(recipe.train))


def start_from(model: nn.Module, run: Path) -> None:
    """Take over every weight of another run that has its place in this model; the rest stays fresh."""
    path = run / "model.safetensors"
    require(path.is_file(), f"train.init = {str(run)!r}: there is no model.safetensors in that folder")
    theirs, ours = read_weights(path), model_tensors(model)
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
