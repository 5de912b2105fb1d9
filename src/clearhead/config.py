"""Every setting there is: frozen dataclasses, filled from a TOML recipe and from `section.key=value`.

Each setting says on its own line what it means. A value that cannot work is refused here, before anything is built.
"""

from __future__ import annotations

import difflib
import typing
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from clearhead.tasks import TASKS, measures

Family = Literal["encoder-decoder", "decoder-only", "encoder-only"]
Weights = Literal["float32", "float16", "int8"]  # how the matrices of a run are held while it is used

FORMAT = 1  # of run folders: a newer one is refused with a sentence


class UserError(ValueError):
    """Something its reader can put right: the message names the setting, the value and the remedy."""


def require(condition: bool, message: str) -> None:
    """Refuse with a message for the user unless the condition holds."""
    if not condition:
        raise UserError(message)


def suggest(word: str, known: Iterable[str]) -> str:
    """The end of an error about an unknown word: the nearest known one, else all of them."""
    known = sorted(known)
    near = difflib.get_close_matches(word, known, n=1)
    return f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"


def check(name: str, kind: Any, value: Any) -> Any:
    """The value, if it is of the declared kind (an int may stand for a float)."""
    if typing.get_origin(kind) is Literal:
        check_choice(name, value, typing.get_args(kind))
        return value
    if kind is float and type(value) is int:
        return float(value)
    wanted = {bool: "true or false", int: "a whole number", float: "a number such as 0.1", str: "text in quotes"}[kind]
    require(type(value) is kind, f"{name} = {value!r}: expected {wanted}, not {type(value).__name__}")
    return value


def check_choice(name: str, value: Any, choices: Iterable[str]) -> None:
    """Refuse a value that is none of the choices."""
    choices = tuple(choices)
    require(value in choices, f"{name} = {value!r}: expected {' | '.join(choices)}; {suggest(str(value), choices)}")


class Section:
    """A section of settings, each checked against its declared kind however it was set."""

    name_of_section: ClassVar[str]

    def __post_init__(self) -> None:
        for name, kind in typing.get_type_hints(type(self)).items():
            if name != "name_of_section":
                value = check(f"{self.name_of_section}.{name}", kind, getattr(self, name))
                object.__setattr__(self, name, value)

    def require_each(self, names: str, holds: Callable[[Any], bool], rule: str) -> None:
        """Refuse the first of these settings that does not keep the rule."""
        for name in names.split():
            value = getattr(self, name)
            require(holds(value), f"{self.name_of_section}.{name} = {value}: must {rule}")


@dataclass(frozen=True)
class ModelConfig(Section):
    """The shape of a Transformer. The defaults are the paper's choices at a laptop's size."""

    name_of_section: ClassVar[str] = "model"

    family: Family = "encoder-decoder"
    vocab: int = 0  # tokens the model can read and write; 0: as many as the tokenizer has
    source_vocab: int = 0  # tokens of the encoder, where they differ from the decoder's; 0: the same vocabulary
    d_model: int = 256  # width of the residual stream
    d_ff: int = 1024  # width inside the feed-forward
    layers: int = 4  # blocks of the (only) stack; of the decoder, in an encoder-decoder
    encoder_layers: int = 0  # blocks of the encoder, in an encoder-decoder; 0: as many as `layers`
    heads: int = 4  # attention heads; each is d_model / heads wide
    kv_heads: int = 0  # heads of keys and values: 0 = heads (multi-head), fewer (grouped-query), 1 (multi-query)
    norm: Literal["layer", "rms"] = "layer"  # LayerNorm (the paper) or RMSNorm
    norm_order: Literal["post", "pre"] = "post"  # after the addition (the paper) or before the sublayer
    norm_epsilon: float = 1e-5  # added to the variance before its square root
    position: Literal["sinusoidal", "learned", "rotary", "none"] = "sinusoidal"
    rotary_base: float = 10_000.0  # slowest rotation: one turn in about 2 pi x this many tokens
    max_length: int = 512  # rows of the table of learned positions; the other kinds have no limit
    activation: Literal["relu", "gelu", "gelu-tanh", "swiglu"] = "relu"
    bias: bool = True  # whether matrices and LayerNorms add a bias
    dropout: float = 0.1  # on embeddings and on what each sublayer adds to the stream
    attention_dropout: float = 0.0  # on attention weights
    tied: Literal["all", "output", "none"] = "all"  # one token table for encoder, decoder and logits; or not
    scale_embedding: bool = True  # multiply token embeddings by sqrt(d_model), as the paper does
    embedding_norm: bool = False  # BERT: normalise the sum of the embeddings
    segments: int = 0  # BERT: kinds of segments ("sentence A", "sentence B") with an embedding each
    head: Literal["vocabulary", "classes", "embedding"] = "vocabulary"  # what an encoder-only model says
    head_dense: bool = False  # BERT: one more dense layer in front of the head
    head_bias: bool = False  # whether the logits get a bias
    classes: int = 0  # how many, with head = "classes"; 0: as many as the data has labels
    pool: Literal["first", "mean"] = "mean"  # how an encoder-only model sums up a sentence: first token, or mean

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_sizes()
        self._check_family()

    def _check_sizes(self) -> None:
        self.require_each("d_model d_ff layers heads max_length", lambda n: n > 0, "be at least 1")
        counts = "vocab source_vocab encoder_layers kv_heads segments classes"
        self.require_each(counts, lambda n: n >= 0, "not be negative")
        self.require_each("dropout attention_dropout", lambda p: 0 <= p < 1, "be at least 0 and below 1")
        self.require_each("norm_epsilon rotary_base", lambda x: x > 0, "be above 0")
        require(
            self.d_model % self.heads == 0,
            f"model.d_model = {self.d_model} is not divisible by model.heads = {self.heads}; "
            f"try d_model = {-(-self.d_model // self.heads) * self.heads} or another number of heads",
        )
        require(
            self.kv_heads == 0 or self.heads % self.kv_heads == 0,
            f"model.heads = {self.heads} is not divisible by model.kv_heads = {self.kv_heads}; "
            f"kv_heads can be {', '.join(str(n) for n in range(1, self.heads + 1) if self.heads % n == 0)}",
        )
        require(
            self.position != "rotary" or self.head_size % 2 == 0,
            f"model.position = 'rotary' turns pairs of channels, but a head has d_model / heads = {self.d_model} / "
            f"{self.heads} = {self.head_size}, an odd number; change model.heads or model.d_model",
        )
        require(
            self.position != "sinusoidal" or self.d_model % 2 == 0,
            f"model.position = 'sinusoidal' needs pairs of channels, but model.d_model = {self.d_model} is odd; "
            "make it even",
        )

    def _check_family(self) -> None:
        encoder_only = self.family == "encoder-only"
        for name, unset in (("head", "vocabulary"), ("head_dense", False), ("segments", 0), ("pool", "mean")):
            value = getattr(self, name)
            require(
                encoder_only or value == unset,
                f"model.{name} = {value!r} belongs to family 'encoder-only', not {self.family!r}; leave it out",
            )
        for name in ("source_vocab", "encoder_layers"):
            value = getattr(self, name)
            require(
                self.family == "encoder-decoder" or value == 0,
                f"model.{name} = {value} belongs to family 'encoder-decoder', not {self.family!r}; leave it out",
            )
        require(
            self.classes == 0 or self.head == "classes",
            f"model.classes = {self.classes} belongs to model.head = 'classes', not {self.head!r}; leave it out",
        )
        require(self.classes != 1, "model.classes = 1: with one class there is nothing to tell apart; give 2 or more")
        require(
            not (self.tied == "all" and self.source_vocab not in (0, self.vocab)),
            f"model.tied = 'all' shares one table, but model.source_vocab = {self.source_vocab} differs from "
            f"model.vocab = {self.vocab}; use tied = 'output' or one shared vocabulary",
        )

    @property
    def head_size(self) -> int:
        """Width of one attention head."""
        return self.d_model // self.heads

    @property
    def position_limit(self) -> int | None:
        """The most tokens a sequence can have: as many as there are learned positions; None: no limit."""
        return self.max_length if self.position == "learned" else None


@dataclass(frozen=True)
class TokenizerConfig(Section):
    """How text becomes ids."""

    name_of_section: ClassVar[str] = "tokenizer"

    kind: Literal["bpe", "wordpiece", "characters", "words"] = "bpe"  # bpe works on bytes: no text is unknown to it
    vocab: int = 8000  # tokens at most, special ones included (all characters, with kind = "characters")
    lowercase: bool = False  # fold case before anything else
    separate: bool = False  # translation: one vocabulary for the source and one for the target
    path: str = ""  # a trained tokenizer.json, or a folder in GPT-2's or BERT's format; empty: train one on the corpus


@dataclass(frozen=True)
class DataConfig(Section):
    """Which text, and how it is cut into batches."""

    name_of_section: ClassVar[str] = "data"

    task: str = "translation"  # what the model learns: a name in TASKS
    corpus: str = ""  # a built-in corpus by name, or "hf:NAME" for a Hugging Face data set
    path: str = ""  # or a file or folder of one's own
    train: str = "train"  # files of each split below `path`: a name, a stem, or a pattern such as "part-*.tsv"
    valid: str = "valid"
    test: str = "test"
    hold_out: float = 0.0  # part of each train file to keep for `valid` instead, from its end
    source: str = ""  # translation: file ending ("en") or column of the source; chat: the question's column
    target: str = ""  # translation: file ending ("de") or column of the target; chat: the answer's column
    text: str = ""  # column of the text, of the first sentence (similarity), or of a list of messages (chat)
    other: str = ""  # similarity: column of the second sentence
    label: str = ""  # column of the label (classification) or of the score (similarity)
    best_score: float = 1.0  # similarity: the score of equal meaning; scores are divided by it, to lie between 0 and 1
    context: str = ""  # chat: column of further input that follows the question
    separator: str = ""  # language, masked: what stands between documents in plain text; empty: one document a file
    escapes: bool = False  # TSV: a line end is written as backslash and n inside a field, a tab as backslash and t
    size: int = 100_000  # built-in corpora: examples to generate for train
    seed: int = 0  # built-in corpora: the seed they are drawn from
    max_length: int = 256  # tokens of one sequence, special ones included; the block length of packed streams
    too_long: Literal["drop", "truncate", "error"] = "drop"  # what happens to longer ones, counted and reported
    pack: bool = True  # language, masked, chat: fill blocks of max_length without padding
    document_mask: bool = False  # language: a token sees only its own document (always so for packed chat)
    batch_tokens: int = 4096  # tokens of one batch, padding included; of a pair, both sides count
    mask_rate: float = 0.15  # masked: part of the tokens to guess
    cache: str = ""  # folder for tokenized text; empty: the user's cache folder

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("data.task", self.task, TASKS)
        object.__setattr__(self, "separator", self.separator.replace("\\n", "\n"))  # as a shell would pass it
        require(
            not (self.corpus and self.path),
            f"data.corpus = {self.corpus!r} and data.path = {self.path!r}: choose one of them",
        )
        require(
            not self.document_mask or ("document_mask" in TASKS[self.task].settings and self.pack),
            f"data.document_mask = true belongs to packed language modelling, not to data.task = {self.task!r} with "
            f"data.pack = {str(self.pack).lower()}; leave it out",
        )
        require(0 <= self.hold_out < 1, f"data.hold_out = {self.hold_out}: must be at least 0 and below 1")
        require(0 < self.mask_rate <= 1, f"data.mask_rate = {self.mask_rate}: must be above 0, and 1 at most")
        require(self.best_score > 0, f"data.best_score = {self.best_score}: must be above 0")
        self.require_each("size", lambda n: n >= 1, "be at least 1")
        self.require_each("max_length batch_tokens", lambda n: n >= 4, "be at least 4")


@dataclass(frozen=True)
class TrainConfig(Section):
    """How a model learns."""

    name_of_section: ClassVar[str] = "train"

    steps: int = 2000  # optimiser steps
    step_tokens: int = 0  # tokens of one step, over all micro-batches and processes; 0: one batch of data.batch_tokens
    optimiser: Literal["adamw", "muon"] = "adamw"  # muon: for the matrices of the blocks, with AdamW for the rest
    learning_rate: float = 1e-3
    schedule: Literal["noam", "cosine", "linear", "stable", "constant"] = "cosine"
    warmup: int = 100  # steps until the learning rate is reached
    final: float = 0.0  # part of the learning rate that is left at the end
    beta1: float = 0.9  # AdamW's memory of gradients
    beta2: float = 0.98  # and of their squares
    weight_decay: float = 0.01  # on matrices only
    clip: float = 1.0  # longest gradient; 0: any
    label_smoothing: float = 0.0  # part of the probability that goes to all words alike; the paper: 0.1
    average: Literal["none", "ema", "last"] = "none"  # which weights count: a running average, or the last ones'
    ema: float = 0.999  # memory of the running average
    average_last: int = 5  # how many evaluations the mean is taken over
    similarity: Literal["contrastive", "regression"] = "contrastive"  # tell apart within a batch, or match the scores
    temperature: float = 0.05  # contrastive: how sharply
    evaluate_every: int = 500  # steps between evaluations (and checkpoints); 0: only at the end
    samples: int = 3  # validation examples to show at each evaluation, with what the model makes of them
    snapshots: int = 0  # copies of the weights to keep, at log-spaced steps from the first to the last
    tensorboard: bool = False  # write curves, samples and pictures of attention for TensorBoard
    best_by: str = "loss"  # which evaluation is the best: that of the least loss, or of the greatest of the others
    best_examples: int = 200  # validation examples that best_by is measured on, if it is not the loss; 0: all
    keep: Literal["last", "best"] = "last"  # the weights that a run ends with: the last, or of its best evaluation
    patience: int = 0  # evaluations without a better one before training stops; 0: never
    seed: int = 0
    device: str = "auto"  # cpu, cuda, mps; auto: the best there is
    precision: Literal["auto", "float32", "bfloat16"] = "auto"  # auto: bfloat16 where the device is made for it
    deterministic: bool = False  # the same sums in the same order on a GPU, too, where some kernels are slower for it
    compile: Literal["auto", "yes", "no"] = "auto"  # auto: on a GPU, for runs long enough to pay for it
    parallel: Literal["ddp", "fsdp"] = "ddp"  # several processes: each holds the whole model, or fsdp: a part of it
    checkpoint_activations: bool = False  # compute the inside of blocks again on the way back, to save memory
    init: str = ""  # a run to start from, instead of fresh weights
    lora: int = 0  # rank of corrections beside frozen matrices; 0: learn the matrices themselves
    lora_on: str = "*.query *.value"  # patterns of the matrices that get one
    freeze: str = ""  # patterns of parameters that stay as they are, separated by spaces: "encoder.* *.embedding.*"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("train.best_by", self.best_by, measures())
        counts = "lora step_tokens warmup clip weight_decay evaluate_every samples snapshots patience best_examples"
        self.require_each("steps average_last", lambda n: n > 0, "be at least 1")
        self.require_each(counts, lambda n: n >= 0, "not be negative")
        self.require_each("label_smoothing final beta1 beta2 ema", lambda x: 0 <= x <= 1, "lie between 0 and 1")
        require(
            not self.lora or (self.average == "none" and self.parallel == "ddp"),
            f"train.lora = {self.lora} goes with train.average = 'none' and train.parallel = 'ddp' only; change one",
        )
        self.require_each("learning_rate temperature", lambda x: x > 0, "be above 0")


@dataclass(frozen=True)
class Recipe:
    """One whole experiment."""

    name: str = ""
    about: str = ""  # one line for lists
    format: int = FORMAT  # of the folder that a run is saved in; nothing to set
    model: ModelConfig = field(default_factory=ModelConfig)
    tokenizer: TokenizerConfig = field(default_factory=TokenizerConfig)
    data: DataConfig = field(default_factory=DataConfig)
    train: TrainConfig = field(default_factory=TrainConfig)

    def __post_init__(self) -> None:
        task = self.data.task
        best_by = self.train.best_by
        fitting = ("loss", *TASKS[task].measures)
        require(
            best_by in fitting,
            f"train.best_by = {best_by!r} is not measured for data.task = {task!r}; choose {' or '.join(fitting)}",
        )
