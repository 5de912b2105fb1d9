"""Train a recipe into a run folder: prepare, run the training loop, write the final weights and the model card."""

from __future__ import annotations

import fnmatch
from pathlib import Path

import torch
from torch import nn

from clearhead.config import Recipe, UserError, require
from clearhead.data.loader import open_batches
from clearhead.device import choose_machine
from clearhead.files import write_file
from clearhead.kernels.attention import use_fast_attention
from clearhead.model import build_model
from clearhead.recipes import differences, load_recipe, write_recipe
from clearhead.runs import Run, read_weights, write_weights
from clearhead.tasks import TASKS
from clearhead.text.tokenizer import Tokenizers, load_tokenizers
from clearhead.train.average import WeightAverage
from clearhead.train.best import BestEvaluation, Validation
from clearhead.train.checkpoint import checkpoint_folders, load_checkpoint, model_tensors, restore_model
from clearhead.train.cost import BatchShape, forward_lines, total
from clearhead.train.loop import TrainState, training_loop
from clearhead.train.lora import add_lora, merge_lora
from clearhead.train.loss import Objective
from clearhead.train.optimiser import make_optimisers
from clearhead.train.parallel import (
    SINGLE_PROCESS,
    Group,
    checkpoint_activations,
    join_group,
    parallelise,
    seed_process,
)
from clearhead.train.prepare import complete_recipe, find_facts, open_train_batches, prepare_tokenizers
from clearhead.train.watching.card import write_card
from clearhead.train.watching.log import Log
from clearhead.train.watching.samples import open_samples
from clearhead.train.watching.snapshots import delete_later_snapshots

MAY_CHANGE = (  # settings that may differ when a run is resumed
    *("train.steps", "train.evaluate_every", "train.patience", "train.device", "train.compile", "data.cache"),
    *("train.samples", "train.snapshots", "train.tensorboard", "train.parallel", "train.checkpoint_activations"),
)


def train(recipe: Recipe, run: Path, resume: bool = False, quiet: bool = False) -> None:
    """Train a recipe into a run folder, from the start or from the newest checkpoint; as one process of a torchrun."""
    with join_group(recipe.train) as group:
        train_in_group(group, recipe, run, resume or restarted_by_torchrun(group, run), quiet or not group.is_main)


def train_in_group(group: Group, recipe: Recipe, run: Path, resume: bool, quiet: bool) -> None:
    """Train as one process of a group."""
    checkpoints = checkpoint_folders(run)
    require(
        resume or not checkpoints,
        f"{run} already holds a run; --resume continues it, --run DIR starts another, or remove the folder",
    )
    saved = bool(checkpoints) or not group.is_main  # the main process saves the tokenizers that the others load
    tokenizers = group.main_first(lambda: open_tokenizers(recipe, run, saved))
    batches = group.main_first(lambda: open_train_batches(recipe, tokenizers, group.rank, group.world))
    valid = group.main_first(lambda: open_batches(recipe.data, tokenizers, "valid", recipe.train.seed))
    recipe = complete_recipe(recipe, tokenizers, batches[0].labels)
    facts = find_facts(recipe, batches[0])
    if group.is_main:
        save_recipe(recipe, run, bool(checkpoints), group.launch)
        facts.write(run / "facts.json")
    state = initial_state(recipe, group)
    if checkpoints:
        state.restore(load_checkpoint(checkpoints[-1]))
    require_same_step(group, state.step, run)
    if group.is_main:
        delete_later_snapshots(run, state.step)
    samples = open_samples(recipe, tokenizers, valid, state.machine.device)
    with Log(run if group.is_main else None, recipe, state.machine, state.step, samples, quiet) as log:
        for line in dict.fromkeys(line for source in (*batches, valid) for line in source.report.lines()):
            log.say(f"data: {line}")
        size = sum(p.numel() for p in state.model.parameters())
        log.say(f"{recipe.name}: {size:,} parameters on {state.machine}{group}")
        current = Run(run, recipe, tokenizers, facts.labels, state.objective.model, facts.longest, facts.one_sentence)
        training_loop(state, recipe, batches, Validation(valid, current), run, log)
    write_final_weights(state, recipe, run)


def write_final_weights(state: TrainState, recipe: Recipe, run: Path) -> None:
    """Write the weights that the recipe asks for (last, averaged, or of the best evaluation) and the model card."""
    with state.average.applied_to(state.model):
        if state.best.weights:
            restore_model(state.model, state.best.weights)
        merge_lora(state.model)
        weights = state.weights()
        if state.group.is_main:
            write_weights(weights, run / "model.safetensors")
            write_card(recipe, run, sum(t.numel() for t in weights.values()), state.step)


def open_tokenizers(recipe: Recipe, run: Path, saved: bool) -> Tokenizers:
    """The tokenizers that are saved in the run folder, or those that the recipe asks for, which are then saved."""
    if saved:
        return load_tokenizers(run)
    try:
        run.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot create the run folder {run}: {error.strerror}; choose another with --run") from error
    tokenizers = prepare_tokenizers(recipe)
    tokenizers.save(run)
    return tokenizers


def restarted_by_torchrun(group: Group, run: Path) -> bool:
    """Whether the same torchrun that began this run has restarted its processes, because one of them died."""
    launch = run / "launch"
    return group.restarted and launch.is_file() and launch.read_text(encoding="utf8") == group.launch


def save_recipe(recipe: Recipe, run: Path, resumed: bool, launch: str) -> None:
    """Write run.toml, and the id of the torchrun that trains the run; a resumed run must have the same recipe."""
    if resumed:
        require_same_recipe(recipe, run)
    write_recipe(recipe, run / "run.toml")
    (run / "launch").unlink(missing_ok=True)
    if launch:
        write_file(run / "launch", launch)


def require_same_step(group: Group, step: int, run: Path) -> None:
    """Raise a UserError unless all processes have read the same checkpoint."""
    steps = [int(each) for each in group.all_gather(torch.tensor(step))]
    require(
        len(set(steps)) == 1,
        f"the processes would continue from different steps, {steps}; {run} must be one folder that all of them see",
    )


def require_same_recipe(recipe: Recipe, run: Path) -> None:
    """Raise a UserError unless the run was started with this recipe, except for settings that may change."""
    saved = load_recipe(str(run / "run.toml"))
    changed = [line for line in differences(recipe, saved) if not line.startswith(MAY_CHANGE)]
    require(
        not changed, f"{run} was started with another recipe: {'; '.join(changed)}; start another run with --run DIR"
    )


def initial_state(recipe: Recipe, group: Group = SINGLE_PROCESS) -> TrainState:
    """A model before its first step: the same in all processes, but with different random numbers for dropout."""
    torch.manual_seed(recipe.train.seed)
    machine = choose_machine(recipe.train, step_flops(recipe))
    model = build_model(recipe.model)
    if recipe.train.init:
        load_initial_weights(model, Path(recipe.train.init))
    freeze(model, recipe.train.freeze)
    if recipe.train.lora:
        add_lora(model, recipe.train.lora, recipe.train.lora_on)
    if recipe.train.checkpoint_activations:
        checkpoint_activations(model)
    if machine.compiled:
        model.compile_blocks()
    objective = Objective(model, recipe)
    wrapped = parallelise(objective, machine, group, recipe.train)
    use_fast_attention(model)
    if not group.is_main:
        seed_process(recipe.train.seed, 0, group.rank)
    optimisers = make_optimisers(model, recipe.train)
    average = WeightAverage(recipe.train)
    return TrainState(objective, wrapped, optimisers, machine, group, average, BestEvaluation(recipe.train))


def step_flops(recipe: Recipe) -> float:
    """An estimate of the FLOPs of a step, forward and backward."""
    sides = 2 if TASKS[recipe.data.task].family == "encoder-decoder" else 1
    tokens = max(recipe.train.step_tokens, recipe.data.batch_tokens) / sides
    return 3 * tokens * total(forward_lines(recipe.model, BatchShape(length=recipe.data.max_length)))


def load_initial_weights(model: nn.Module, run: Path) -> None:
    """Copy every weight of another run that has the same name and shape in this model; the others stay random."""
    path = run / "model.safetensors"
    require(path.is_file(), f"train.init = {str(run)!r}: there is no model.safetensors in that folder")
    theirs = read_weights(path)
    ours = model_tensors(model)
    shared = {name: t for name, t in theirs.items() if name in ours and ours[name].shape == t.shape}
    require(bool(shared), f"train.init = {str(run)!r}: none of its weights fits this model; compare the two run.toml")
    restore_model(model, ours | shared)


def freeze(model: nn.Module, patterns: str) -> None:
    """Exclude the parameters whose names match one of the patterns from training."""
    for pattern in patterns.split():
        names = [name for name, _ in model.named_parameters() if fnmatch.fnmatchcase(name, pattern)]
        require(
            bool(names),
            f"train.freeze: no parameter matches {pattern!r}; names look like encoder.blocks.0.attention.key.weight",
        )
        for name in names:
            model.get_parameter(name).requires_grad_(False)
    require(any(p.requires_grad for p in model.parameters()), f"train.freeze = {patterns!r} leaves nothing to train")
