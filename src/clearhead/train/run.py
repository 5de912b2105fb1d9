"""Train a recipe into a run folder: prepare, run the training loop, write the final weights and the model card."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import torch
from torch import nn

from clearhead.config import Recipe, require
from clearhead.data.loader import Batches
from clearhead.data.readers.files import listed
from clearhead.device import Machine, busy_cores_warning, choose_machine, explain_compiling, require_memory
from clearhead.fast.choose import speed_up_training
from clearhead.model import build_model
from clearhead.runs import (
    TOKENIZER_FILES,
    Run,
    hash_tokenizers,
    read_facts,
    read_weights,
    require_own_tokenizers,
    write_weights,
)
from clearhead.tasks import TASKS
from clearhead.text.tokenizer import Tokenizers, load_tokenizers
from clearhead.train.average import WeightAverage
from clearhead.train.best import BestEvaluation
from clearhead.train.checkpoint import checkpoint_folders, load_checkpoint, model_tensors, restore_model
from clearhead.train.cost import BatchShape, all_trained, forward_lines, memory_lines, total
from clearhead.train.folder import locked_folder, require_unchanged, restarted_by_torchrun, save_start
from clearhead.train.loop import Validation, training_loop
from clearhead.train.lora import ADAPTER, merge_lora, write_adapter
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
from clearhead.train.prepare import (
    complete_recipe,
    find_facts,
    open_train_batches,
    open_valid_batches,
    prepare_tokenizers,
    save_words,
)
from clearhead.train.state import TrainState
from clearhead.train.trained import choose_trained
from clearhead.train.watching.card import next_command, write_card
from clearhead.train.watching.dashboards import require_packages
from clearhead.train.watching.log import Log
from clearhead.train.watching.samples import open_samples
from clearhead.train.watching.snapshots import delete_later_snapshots


def train(recipe: Recipe, run: Path, resume: bool = False, quiet: bool = False) -> int:
    """Train a recipe into a run folder, from the start or from the newest checkpoint.

    Under torchrun, every process calls this. Return the signal (SIGINT, SIGTERM) that stopped the run before its last
    step, or 0.
    """
    require_packages(recipe.train)
    with join_group(recipe.train) as group, ExitStack() as stack:
        resume = resume or restarted_by_torchrun(group, run)
        if group.is_main:
            stack.enter_context(locked_folder(run, resume))
        return train_in_group(group, recipe, run, resume, quiet or not group.is_main)


def train_in_group(group: Group, recipe: Recipe, run: Path, resume: bool, quiet: bool) -> int:
    """Train as one process of a group, into a folder that the main process has locked."""
    started = group.main_first(lambda: (run / "run.toml").is_file())
    checkpoints = checkpoint_folders(run)
    # The main process saves the tokenizers that the others load.
    tokenizers = group.main_first(lambda: open_tokenizers(recipe, run, started or not group.is_main))
    batches = group.main_first(lambda: open_train_batches(recipe, tokenizers, group.rank, group.world))
    valid = group.main_first(lambda: open_valid_batches(recipe, tokenizers))
    recipe = complete_recipe(recipe, tokenizers, batches[0].labels)
    facts = replace(find_facts(recipe, batches[0]), tokenizers=hash_tokenizers(run))
    if group.is_main and started:
        require_unchanged(recipe, facts, run)
    elif recipe.train.init:
        check_initial_tokenizers(recipe, tokenizers)
    start = replace(recipe.train, init="") if checkpoints else recipe.train  # a checkpoint has all weights
    state = initial_state(replace(recipe, train=start), group)
    if checkpoints:
        state.restore(load_checkpoint(checkpoints[-1]))
    require_same_step(group, state.step, run)
    require(
        state.step <= recipe.train.steps,
        f"train.steps = {recipe.train.steps:,}: {run} has already taken {state.step:,} steps; give at least as many",
    )
    if group.is_main:  # a run that cannot be resumed is left as it is
        save_start(recipe, facts, run, group.launch)
        save_words(recipe.data, run, recipe.train.init)
        delete_later_snapshots(run, state.step)
    samples = open_samples(recipe, tokenizers, valid, state.machine.device) if valid else None
    with Log(run if group.is_main else None, recipe, state.machine, state.step, samples, quiet) as log, state.writer:
        log_start(state, recipe, batches, valid, log)
        if resume:
            log.say(start_of(state.step, recipe.train.steps, run))
        current = Run(run, recipe, tokenizers, facts.labels, state.objective.model, facts.longest, facts.one_sentence)
        training_loop(state, recipe, batches, Validation(valid, current) if valid else None, run, log)
        write_final_weights(state, recipe, run)
        if not state.stopping:
            log.say(f"the run is in {run}; next: {next_command(recipe, run)}")
    if group.launch or not state.stopping:  # torchrun would restart a process with another exit code
        return 0
    return state.stop_signals[0]


def log_start(state: TrainState, recipe: Recipe, train: list[Batches], valid: Batches | None, log: Log) -> None:
    """Log the model, the data and the device, and warnings: what was left out, what is not evaluated, busy cores."""
    for line in dict.fromkeys(line for source in (*train, valid) if source for line in source.report.lines()):
        log.say(f"data: {line}")
    if labels := train[0].labels:
        log.say(f"data: {len(labels):,} labels: {listed(labels)}")
    if valid is None:
        log.say(
            "data: no split 'valid', so nothing is evaluated; data.hold_out=0.05 takes the last part of train for it"
        )
    size = sum(p.numel() for p in state.model.parameters())
    log.say(f"{recipe.name}: {size:,} parameters on {state.machine}{state.group}")
    trained = sum(p.numel() for p in state.model.parameters() if p.requires_grad)
    if trained < size:
        log.say(f"{trained:,} parameters ({trained / size:.2%}) are trained, the others are frozen")
    if why := explain_compiling(state.machine, recipe.train, step_flops(recipe)):
        log.say(why)
    if train[0].budget != recipe.data.batch_tokens:
        count = len(train) * state.group.world
        log.say(
            f"each step is divided into {count} micro-batches of {train[0].budget:,} tokens, {len(train)} a process"
        )
    if state.origin:
        log.say(state.origin)
    elif recipe.train.lora and not recipe.train.init:
        log.say("train.lora without train.init: the weights that it adapts are random, and stay so")
    if state.machine.device.type == "cpu" and (busy := busy_cores_warning()):
        log.say(busy)


def start_of(step: int, steps: int, run: Path) -> str:
    """Say where a run that is resumed continues."""
    if step >= steps:
        return f"{run} has already taken {step:,} of {steps:,} steps; a larger train.steps continues it"
    if step:
        return f"{run} continues after step {step:,}"
    return f"{run} has no checkpoint to resume: the run starts from its first step"


def write_final_weights(state: TrainState, recipe: Recipe, run: Path) -> None:
    """Write the weights that the recipe asks for (last, averaged, or of the best evaluation) and the model card."""
    with state.average.applied_to(state.model):
        if state.best.weights:
            restore_model(state.model, state.best.weights)
        if recipe.train.lora:
            unmerged = state.weights()
            if state.group.is_main:
                trained = [name for name, p in state.model.named_parameters() if p.requires_grad]
                write_adapter(unmerged, trained, recipe.train.init, run / ADAPTER)
            merge_lora(state.model)
        weights = state.weights()
        if state.group.is_main:
            write_weights(weights, run / "model.safetensors")
            write_card(recipe, run, sum(t.numel() for t in weights.values()), state.step)


def open_tokenizers(recipe: Recipe, run: Path, saved: bool) -> Tokenizers:
    """The tokenizers that are saved in the run folder, or those that the recipe asks for, which are then saved."""
    if saved:
        require_own_tokenizers(run, read_facts(run / "facts.json"))
        return load_tokenizers(run)
    tokenizers = prepare_tokenizers(recipe)
    tokenizers.save(run)
    return tokenizers


def require_same_step(group: Group, step: int, run: Path) -> None:
    """Raise a UserError unless all processes have read the same checkpoint."""
    steps = [int(each) for each in group.all_gather(torch.tensor(step))]
    require(
        len(set(steps)) == 1,
        f"the processes would continue from different steps, {steps}; {run} must be one folder that all of them see",
    )


def initial_state(recipe: Recipe, group: Group = SINGLE_PROCESS) -> TrainState:
    """A model before its first step: the same in all processes, but with different random numbers for dropout."""
    torch.manual_seed(recipe.train.seed)
    machine = choose_machine(recipe.train, step_flops(recipe))
    check_memory(recipe, machine, group)
    model = build_model(recipe.model)
    origin = load_initial_weights(model, Path(recipe.train.init)) if recipe.train.init else ""
    choose_trained(model, recipe.train)
    if recipe.train.checkpoint_activations:
        checkpoint_activations(model)
    if machine.compiled:
        model.compile_blocks()
    objective = Objective(model, recipe)
    wrapped = parallelise(objective, machine, group, recipe.train)
    speed_up_training(objective, machine)
    if not group.is_main:
        seed_process(recipe.train.seed, 0, group.rank)
    optimisers = make_optimisers(model, recipe.train)
    average = WeightAverage(recipe.train)
    best = BestEvaluation(recipe.train)
    return TrainState(objective, wrapped, optimisers, machine, group, average, best, origin)


def check_memory(recipe: Recipe, machine: Machine, group: Group) -> None:
    """Refuse a model whose weights, gradients and optimiser state do not fit into memory; activations come on top."""
    config = recipe.train
    weights, gradients, *others = memory_lines(
        recipe.model, BatchShape(0, 0), all_trained(recipe.model, config.optimiser)
    )
    remedy = "make the model smaller (model.d_model, model.d_ff, model.layers)"
    require_memory(weights.value, "cpu", "the model", remedy)
    shards = group.world if config.parallel == "fsdp" else 1
    whole = not (config.lora or config.freeze)
    size = total([weights, gradients, *others] if whole else [weights]) // shards
    require_memory(size, str(machine.device), "training this model", remedy)


def step_flops(recipe: Recipe) -> float:
    """An estimate of the FLOPs of a step, forward and backward."""
    sides = 2 if TASKS[recipe.data.task].family == "encoder-decoder" else 1
    tokens = recipe.train.passes * max(recipe.train.step_tokens, recipe.data.batch_tokens) / sides
    return 3 * tokens * total(forward_lines(recipe.model, BatchShape(length=recipe.data.max_length)))


def load_initial_weights(model: nn.Module, run: Path) -> str:
    """Copy every weight of another run that has the same name and shape in this model; return what was copied."""
    path = run / "model.safetensors"
    require(path.is_file(), f"train.init = {str(run)!r}: there is no model.safetensors in it; name a trained run")
    theirs = read_weights(path)
    ours = model_tensors(model)
    shared = {name: t for name, t in theirs.items() if name in ours and ours[name].shape == t.shape}
    require(
        bool(shared),
        f"train.init = {str(run)!r}: no weight fits this model; model.preset={run} takes its shape",
    )
    restore_model(model, ours | shared)
    copied = sum(t.numel() for t in shared.values())
    others = [name for name in ours if name not in shared]
    named = f"{', '.join(others[:4])}{', ...' if len(others) > 4 else ''}"
    random = f", {len(others)} {'stays' if len(others) == 1 else 'stay'} random: {named}" if others else ""
    return f"train.init: {len(shared)} of {len(ours)} weights ({copied:,} parameters) are those of {run}{random}"


def check_initial_tokenizers(recipe: Recipe, tokenizers: Tokenizers) -> None:
    """Refuse to start from the embeddings of a run whose tokenizer has other tokens."""
    run = Path(recipe.train.init)
    if not any((run / name).is_file() for name in TOKENIZER_FILES):
        return
    theirs = load_tokenizers(run)
    for ours, other in ((tokenizers.source, theirs.source), (tokenizers.target, theirs.target)):
        require(
            ours.vocab != other.vocab or ours.fingerprint == other.fingerprint or ours.same_tokens(other),
            f"train.init = {str(run)!r} has another tokenizer, so its embeddings are those of other tokens; "
            f"use its tokenizer: tokenizer.path={run}",
        )
