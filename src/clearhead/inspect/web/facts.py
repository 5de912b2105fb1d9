"""What the explorer's page knows about a run, and about the tokens and the output of a pass."""

from __future__ import annotations

import itertools
from textwrap import shorten
from typing import Any

import torch
from torch import Tensor

from clearhead.config import UserError, require, suggest
from clearhead.data.examples import Example, Pair, SentencePair
from clearhead.data.sources import open_corpus
from clearhead.fast.choose import MIN_REORDERED_WEIGHTS
from clearhead.files import read_metrics
from clearhead.inspect.kinds import KINDS, kind_at
from clearhead.inspect.kinds.kind import Kind
from clearhead.inspect.names import names_of, residual_stream
from clearhead.inspect.paths import Node, sublayers_of
from clearhead.inspect.trace import Trace, vocabulary
from clearhead.inspect.web.pictures import examples
from clearhead.model.stack import Stack
from clearhead.runs import Run
from clearhead.tasks import TASKS
from clearhead.text.chat import render_prompt
from clearhead.text.dialogue import Dialogue
from clearhead.text.tokenizer import Tokenizer
from clearhead.text.words import WORDS_FILE, read_words

SHOWN = ("family", "vocab", "d_model", "d_ff", "heads", "norm", "norm_order", "position", "activation", "head")
EXAMPLES = 3
OPENING = "the red car is fast"
ANYTHING = "Once upon a time, there was a little girl"  # for a model of which no texts are known
LONGEST_EXAMPLE = 120  # characters


def describe(run: Run) -> dict[str, Any]:
    """A run: its settings, its stacks, its kinds of tensors, its snapshots, and example texts."""
    model = run.model
    config = run.recipe.model
    tokenizer = run.tokenizers.target
    task = TASKS[run.recipe.data.task]
    return {
        **{key: getattr(config, key) for key in SHOWN},
        "kv_heads": config.kv_heads or config.heads,
        "head_dense": config.head_dense,
        "head_size": config.head_size,
        "name": run.folder.resolve().name,
        "about": run.recipe.about,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "stacks": [
            {
                "name": name,
                "layers": len(stack.blocks),
                "sublayers": sublayers_of(name, config),
                "stream": residual_stream(name, config),
            }
            for name, stack in model.named_children()
            if isinstance(stack, Stack)
        ],
        "kinds": [
            {"axes": kind.axes, "definition": kind.definition, **kind.picture._asdict()} for kind in kinds_of(run)
        ],
        "matrices": {name: list(weight.shape) for name, weight in model.named_parameters() if weight.dim() == 2},
        "arithmetic": arithmetic(run),
        "labels": run.labels,
        "snapshots": snapshots_of(run),
        "examples": list(dict.fromkeys([*opening_text(run), *(shown_in_training(run) or first_texts(run))]))
        or [ANYTHING],
        "mask": tokenizer.piece(tokenizer.mask) if task.batches == "masked tokens" else "",
    }


def arithmetic(run: Run) -> str:
    """With what precision the numbers of the page are computed, and whether decoding computes the same ones."""
    weights = [parameter for parameter in run.model.parameters() if parameter.dim() == 2]
    precision = str(weights[0].dtype).removeprefix("torch.")
    verb = f"`{TASKS[run.recipe.data.task].verbs[0]}`"
    if run.device.type != "cpu" or all(
        3 * weight.numel() < MIN_REORDERED_WEIGHTS for weight in weights
    ):  # three may be joined
        return f"{precision}; {verb} computes the same numbers"
    return (
        f"{precision}; {verb} multiplies large matrices in another order, so its numbers can differ in the last digits"
    )


def opening_text(run: Run) -> list[str]:
    """The text that the page of an encoder-decoder starts with, if the model has seen all its words.

    It is short, and its words come in another order in French.
    """
    known = read_words(run.folder / WORDS_FILE)
    has_two_sides = run.recipe.model.family == "encoder-decoder"
    return [OPENING] if has_two_sides and known.issuperset(OPENING.split()) else []


def shown_in_training(run: Run) -> list[str]:
    """The validation texts whose outputs were shown during training."""
    tokenizer = run.tokenizers.target
    keys = TASKS[run.recipe.data.task].sample_texts[:1]
    return examples(read_metrics(run.folder), keys, tokenizer.piece(tokenizer.start))


def kinds_of(run: Run) -> list[Kind]:
    """The entries that describe the tensors of a run's model, in the order of the table."""
    config = run.recipe.model
    used = {id(kind_at(Node(name, config))) for name in names_of(run.model, config)}
    return [kind for kind in KINDS if id(kind) in used]


def entries_of(run: Run) -> dict[str, int]:
    """The names of all tensors, each with the place of its entry in `kinds_of`."""
    config = run.recipe.model
    places = {id(kind): place for place, kind in enumerate(kinds_of(run))}
    return {name: places[id(kind_at(Node(name, config)))] for name in names_of(run.model, config)}


def first_texts(run: Run) -> list[str]:
    """The first validation texts of a run's corpus, shortened; none if the corpus is not on this machine."""
    data = run.recipe.data
    if data.corpus.startswith("hf:"):
        return []  # would be downloaded
    try:
        found = list(itertools.islice(open_corpus(data).read("valid"), EXAMPLES))
    except UserError:
        return []
    return [read_by(run, example) for example in found]


def read_by(run: Run, example: Example) -> str:
    """The text of an example that the model reads, shortened."""
    if isinstance(example, Dialogue):
        tokenizer = run.tokenizers.target
        first = [message.role for message in example.messages].index("user")
        return tokenizer.decode(render_prompt(Dialogue(example.messages[: first + 1]), tokenizer), keep_special=True)
    if isinstance(example, Pair):
        text = example.source
    else:
        text = example.first if isinstance(example, SentencePair) else example.text
    return shorten(text, LONGEST_EXAMPLE, placeholder="")


def snapshots_of(run: Run) -> list[int]:
    """The training steps of which a run has snapshots."""
    paths = (run.folder / "snapshots").glob("step-*.safetensors")
    return sorted(int(path.stem.removeprefix("step-")) for path in paths)


def tokens(part: Trace) -> dict[str, Any]:
    """The tokens of each side with their ids; special tokens are marked."""
    found = {}
    for side, ids in part.ids.items():
        tokenizer = tokenizer_of(part.run, side)
        rows = zip(part.tokens[side], ids, strict=True)
        found[side] = [{"piece": piece, "id": n, "special": not tokenizer.decode([n])} for piece, n in rows]
    return {"tokens": found}


def outcome(part: Trace) -> dict[str, Any]:
    """The model's output: probabilities of classes, or the likeliest token at each position; none for a vector."""
    if "head.logits" not in part:
        return {}
    logits = part["head.logits"][0]
    if logits.dim() == 1:
        labels = part.run.labels or [str(number) for number in range(len(logits))]
        return {"classes": list(zip(labels, logits.softmax(-1).tolist(), strict=True))}
    names = vocabulary(part.run.tokenizers.target, logits.size(-1))
    probabilities = logits.softmax(-1)
    best = probabilities.max(-1)
    rows = zip(best.indices.tolist(), best.values.tolist(), strict=True)
    guesses = [{"piece": names[number], "probability": probability} for number, probability in rows]
    return {"guesses": guesses, "uncertain": most_uncertain(logits, probabilities)}


def most_uncertain(logits: Tensor, probabilities: Tensor) -> int:
    """The position with the highest entropy; the first one, which has no context, only if there is no other."""
    entropy = logits.logsumexp(-1) - torch.linalg.vecdot(probabilities, logits)
    return 1 + int(entropy[1:].argmax()) if len(entropy) > 1 else 0


def stack_of(run: Run, name: str) -> Stack:
    """A stack of a run's model by its name."""
    stacks = {key: module for key, module in run.model.named_children() if isinstance(module, Stack)}
    require(name in stacks, f"stack {name!r}: {suggest(name, stacks)}")
    return stacks[name]


def stream_of(run: Run, stack: str) -> list[str]:
    """The states of a stack's residual stream, from the input of the first block on."""
    stack_of(run, stack)  # refuses a stack that does not exist
    return residual_stream(stack, run.recipe.model)


def tokenizer_of(run: Run, side: str) -> Tokenizer:
    """The tokenizer of a side; an encoder-decoder may have two."""
    require(side in ("source", "target"), f"side {side!r}: expected source or target")
    return run.tokenizers.source if side == "source" else run.tokenizers.target
