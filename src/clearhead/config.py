"""All settings: frozen dataclasses, filled from a TOML recipe and from `section.key=value` overrides.

The comment beside a setting says what it means. A value that cannot work is refused before anything is built.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, get_args, get_origin, get_type_hints

from clearhead.tasks import TASKS, measures

Family = Literal["encoder-decoder", "decoder-only", "encoder-only"]
Weights = Literal["auto", "float32", "bfloat16", "float16", "int8"]  # how a loaded run stores its matrices
RUN_FORMAT = 1  # version of the format of run folders; a newer one is refused


class UserError(ValueError):
    """An error that the user can fix: the message names the setting, its value and the remedy."""


def require(condition: bool, message: str) -> None:
    """Raise a UserError with this message unless the condition holds."""
    if not condition:
        raise UserError(message)


def suggest(word: str, known: Iterable[str]) -> str:
    """The end of an error about an unknown word: the most similar known word, or all of them if none is similar."""
    known = sorted(known)
    return did_you_mean(word, known) or f"known: {', '.join(known)}"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A question with the most similar known word; empty if none is similar."""
    near = difflib.get_close_matches(word, sorted(known), n=1)
    return f"did you mean {near[0]!r}?" if near else ""


def check(name: str, kind: Any, value: Any) -> Any:
    """Return the value if it has the declared type; an int is accepted for a float."""
    if get_origin(kind) is Literal:
        return check_choice(name, value, get_args(kind))
    if kind is float and type(value) is int:
        return float(value)
    wanted = {bool: "true or false", int: "a whole number", float: "a number such as 0.1", str: "text in quotes"}[kind]
    require(type(value) is kind, f"{name} = {value!r}: expected {wanted}, not {type(value).__name__}")
    return value


def check_choice(name: str, value: Any, choices: Iterable[str]) -> Any:
    """Return the value if it is one of the choices."""
    choices = tuple(choices)
    near = did_you_mean(str(value), choices)
    require(value in choices, f"{name} = {value!r}: expected {' | '.join(choices)}" + (f"; {near}" if near else ""))
    return value


class Section:
    """A section of settings. The type of every value is checked, whether it comes from a file or from Python."""

    def __post_init__(self) -> None:
        for name, kind in get_type_hints(type(self)).items():
            object.__setattr__(self, name, check(self.full_name(name), kind, getattr(self, name)))

    def full_name(self, setting: str) -> str:
        """The name of a setting in recipes: `model.heads` for `heads` of ModelConfig."""
        return f"{type(self).__name__.removesuffix('Config').lower()}.{setting}"

    def require_each(self, names: str, holds: Callable[[Any], bool], rule: str) -> None:
        """Refuse the first of these settings that breaks the rule."""
        for name in names.split():
            value = getattr(self, name)
            require(holds(value), f"{self.full_name(name)} = {value}: must {rule}")


@dataclass(frozen=True)
class ModelConfig(Section):
    """The architecture of a Transformer. The defaults are the paper's choices, in a size for a laptop."""

    family: Family = "encoder-decoder"
    vocab: int = 0  # size of the vocabulary; 0: that of the tokenizer
    source_vocab: int = 0  # size of the encoder's vocabulary, if it has its own; 0: it shares the decoder's
    d_model: int = 256  # width of the residual stream
    d_ff: int = 1024  # width of the hidden layer of the feed-forward network
    layers: int = 4  # number of blocks; in an encoder-decoder, those of the decoder
    encoder_layers: int = 0  # encoder-decoder: number of blocks of the encoder; 0: the same as `layers`
    heads: int = 4  # attention heads
    head_channels: int = 0  # channels of each head; 0: d_model / heads
    kv_heads: int = 0  # heads of keys and values: 0 = heads (multi-head), fewer (grouped-query), 1 (multi-query)
    norm: Literal["layer", "rms"] = "layer"  # LayerNorm (the paper) or RMSNorm
    norm_order: Literal["post", "pre"] = "post"  # after the addition (the paper) or before the sublayer
    norm_epsilon: float = 1e-5  # added to the variance before the square root
    position: Literal["sinusoidal", "learned", "rotary", "none"] = "sinusoidal"
    rotary_base: float = 10_000.0  # the slowest rotation has a period of about 2 pi x this many tokens
    rotary_factor: float = 1.0  # Llama 3.1: slow rotations are slower by this factor, to read longer texts
    rotary_length: int = 0  # Llama 3.1: a rotation is slow if a turn takes more than this many tokens; 0: all are
    window: int = 0  # Mistral: a token attends to the last tokens only, to this many, itself included; 0: to all
    query_key_norm: bool = False  # Qwen3: a norm on the queries and keys of each head, before their rotation
    max_length: int = 512  # number of learned positions; the other kinds of position have no limit
    activation: Literal["relu", "gelu", "gelu-tanh", "silu", "swiglu"] = "relu"
    bias: bool = True  # whether linear layers and LayerNorms have a bias
    qkv_bias: bool = False  # Qwen2: queries, keys and values have a bias, although `bias` is false
    dropout: float = 0.1  # on the embeddings and on the output of each sublayer
    attention_dropout: float = 0.0  # on attention weights
    token_dropout: float = 0.0  # on whole token embeddings, as if words were missing
    tied: Literal["all", "output", "none"] = "all"  # which of encoder, decoder and output share one embedding matrix
    scale_embedding: bool = True  # multiply token embeddings by sqrt(d_model), as the paper does
    embedding_norm: bool = False  # BERT: a norm after the sum of the embeddings
    segments: int = 0  # BERT: number of segment embeddings ("sentence A", "sentence B")
    head: Literal["vocabulary", "classes", "embedding"] = "vocabulary"  # what an encoder-only model outputs
    head_dense: bool = False  # BERT: one more dense layer before the head
    head_activation: Literal["tanh", "relu", "gelu"] = "tanh"  # after that layer; for tokens it is `activation`
    head_bias: bool = False  # whether the logits have a bias
    classes: int = 0  # head = "classes": number of classes; 0: as many as the data has labels
    pool: Literal["first", "mean"] = "mean"  # encoder-only: the vector of a text: first token, or mean

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_sizes()
        self._check_family()

    def _check_sizes(self) -> None:
        self.require_each("d_model d_ff layers heads max_length", lambda n: n > 0, "be at least 1")
        counts = "vocab source_vocab encoder_layers kv_heads head_channels rotary_length window segments classes"
        self.require_each(counts, lambda n: n >= 0, "not be negative")
        self.require_each("dropout attention_dropout token_dropout", lambda p: 0 <= p < 1, "be at least 0 and below 1")
        self.require_each("norm_epsilon rotary_base", lambda x: x > 0, "be above 0")
        self.require_each("rotary_factor", lambda x: x >= 1, "be at least 1")
        unit = self.heads * (2 if self.position == "rotary" else 1)  # rotary positions need an even head size
        require(
            self.head_channels > 0 or self.d_model % self.heads == 0,
            f"model.d_model = {self.d_model} is not divisible by model.heads = {self.heads}; "
            f"try d_model = {-(-self.d_model // unit) * unit} or another number of heads",
        )
        require(
            self.kv_heads == 0 or self.heads % self.kv_heads == 0,
            f"model.heads = {self.heads} is not divisible by model.kv_heads = {self.kv_heads}; "
            f"kv_heads can be {', '.join(str(n) for n in range(1, self.heads + 1) if self.heads % n == 0)}",
        )
        per_head = "head_channels" if self.head_channels else "d_model / heads"
        channels = {"rotary": (per_head, self.head_size), "sinusoidal": ("d_model", self.d_model)}
        name, count = channels.get(self.position, ("", 0))
        require(
            count % 2 == 0,
            f"model.position = {self.position!r} uses pairs of channels, but model.{name} = {count} is odd; "
            "make it even",
        )

    def _check_family(self) -> None:
        needs: dict[str, tuple[str, Any]] = {}
        needs |= dict.fromkeys(("query_key_norm", "window"), ("family", "decoder-only"))
        needs |= dict.fromkeys(("head", "head_dense", "segments", "pool"), ("family", "encoder-only"))
        needs |= dict.fromkeys(("source_vocab", "encoder_layers"), ("family", "encoder-decoder"))
        needs |= dict.fromkeys(("rotary_factor", "rotary_length"), ("position", "rotary"))
        needs |= {"classes": ("head", "classes"), "head_activation": ("head_dense", True), "qkv_bias": ("bias", False)}
        for name, (other, needed) in needs.items():
            value = getattr(self, name)
            found = getattr(self, other)
            require(
                found == needed or value == getattr(type(self), name),
                f"model.{name} = {value!r} needs model.{other} = {needed!r}, not {found!r}; leave it out",
            )
        require(
            not self.query_key_norm or self.position == "rotary",
            f"model.query_key_norm = true needs model.position = 'rotary', not {self.position!r}; leave it out",
        )
        require(self.classes != 1, "model.classes = 1: with one class there is nothing to classify; give 2 or more")
        require(
            not (self.tied == "all" and self.source_vocab not in (0, self.vocab)),
            f"model.tied = 'all' shares one matrix, but model.source_vocab = {self.source_vocab} differs from "
            f"model.vocab = {self.vocab}; use tied = 'output' or one shared vocabulary",
        )

    @property
    def head_size(self) -> int:
        """Number of channels of one attention head."""
        return self.head_channels or self.d_model // self.heads

    @property
    def query_size(self) -> int:
        """Number of channels of all attention heads together, usually d_model."""
        return self.heads * self.head_size

    @property
    def position_limit(self) -> int | None:
        """The most tokens that a sequence can have, which is the number of learned positions; None: no limit."""
        return self.max_length if self.position == "learned" else None


@dataclass(frozen=True)
class TokenizerConfig(Section):
    """How text is converted to token ids."""

    kind: Literal["bpe", "wordpiece", "characters", "words"] = "bpe"  # bpe works on bytes: it can encode any text
    vocab: int = 8000  # largest size of the vocabulary, special tokens included; "characters" has no limit
    lowercase: bool = False  # convert text to lower case first
    separate: bool = False  # pairs: one vocabulary for the source and one for the target
    path: str = ""  # a run, a tokenizer.json, or a folder in GPT-2's or BERT's format, instead of training one as above


@dataclass(frozen=True)
class DataConfig(Section):
    """Which data to train on, and how it is batched."""

    task: str = "translation"  # what the model learns: a key of TASKS
    corpus: str = ""  # a built-in corpus by name, or "hf:NAME" for a Hugging Face data set
    path: str = ""  # or your own file or folder
    train: str = "train"  # files of each split below `path`: a name, a stem, or a pattern such as "part-*.tsv"
    valid: str = "valid"
    test: str = "test"
    hold_out: float = 0.0  # fraction at the end of each train file that is used for `valid`; not for built-in corpora
    source: str = ""  # pairs: file suffix ("en") or column of the source; chat: column of the question
    target: str = ""  # pairs: file suffix ("de") or column of the target; chat: column of the answer
    text: str = ""  # column of the text, of the first sentence (similarity), or of a list of messages (chat)
    other: str = ""  # similarity: column of the second sentence
    label: str = ""  # column of the label (classification) or of the score (similarity)
    best_score: float = 1.0  # similarity: the score of two equal sentences; scores are divided by it
    context: str = ""  # chat: column of further input, appended to the question
    separator: str = ""  # language, masked: text between two documents of a file; empty: each file is one document
    escapes: bool = False  # TSV: fields contain the escapes \n, \t and \\
    size: int = 100_000  # built-in corpora: examples to generate for train
    seed: int = 0  # built-in corpora: the seed they are drawn from
    max_length: int = 256  # most tokens of a sequence, special ones included; packed text: tokens of a block
    too_long: Literal["drop", "truncate", "error"] = "drop"  # what to do with longer sequences
    pack: bool = True  # language, masked, chat: concatenate examples into blocks of max_length, without padding
    document_mask: bool = False  # language: attention stays within a document (packed chat: always)
    batch_tokens: int = 4096  # token budget of a batch, padding included; source and target both count
    mask_rate: float = 0.15  # masked: fraction of the tokens that are masked
    bpe_dropout: float = 0.0  # translation: probability that a token of train is split into the two it was merged from
    name_copies: int = 0  # translation: copies of each train pair with a name, in which the name is an invented one
    cache: str = ""  # folder for tokenized data; empty: the user's cache folder

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("data.task", self.task, TASKS)
        object.__setattr__(self, "separator", self.separator.replace("\\n", "\n"))  # a shell passes backslash and n
        require(
            not (self.corpus and self.path),
            f"data.corpus = {self.corpus!r} and data.path = {self.path!r}: choose one of them",
        )
        require(
            not self.document_mask or ("document_mask" in TASKS[self.task].settings and self.pack),
            f"data.document_mask = true belongs to packed language modelling, not to data.task = {self.task!r} with "
            f"data.pack = {str(self.pack).lower()}; leave it out",
        )
        for name in ("bpe_dropout", "name_copies"):
            value = getattr(self, name)
            require(
                value == 0 or name in TASKS[self.task].settings,
                f"data.{name} = {value} belongs to data.task = 'translation', not to {self.task!r}; leave it out",
            )
        require(0 <= self.bpe_dropout < 1, f"data.bpe_dropout = {self.bpe_dropout}: must be at least 0 and below 1")
        require(0 <= self.hold_out < 1, f"data.hold_out = {self.hold_out}: must be at least 0 and below 1")
        require(0 < self.mask_rate <= 1, f"data.mask_rate = {self.mask_rate}: must be above 0, and 1 at most")
        require(self.best_score > 0, f"data.best_score = {self.best_score}: must be above 0")
        self.require_each("size", lambda n: n >= 1, "be at least 1")
        self.require_each("name_copies", lambda n: n >= 0, "not be negative")
        self.require_each("seed", lambda n: -(2**63) <= n < 2**63, "lie between -2^63 and 2^63 - 1")
        self.require_each("max_length batch_tokens", lambda n: n >= 4, "be at least 4")


@dataclass(frozen=True)
class TrainConfig(Section):
    """How a model is trained."""

    steps: int = 2000  # optimiser steps
    step_tokens: int = 0  # tokens of a step, over all micro-batches and processes; 0: one batch of data.batch_tokens
    optimiser: Literal["adamw", "muon"] = "adamw"  # muon: for the matrices of the blocks; AdamW for the rest
    learning_rate: float = 1e-3
    schedule: Literal["noam", "cosine", "linear", "stable", "constant"] = "cosine"
    warmup: int = 100  # steps until the learning rate is reached
    final: float = 0.0  # learning rate that would follow the last step, as a fraction of learning_rate
    beta1: float = 0.9  # AdamW: decay of the running mean of the gradients
    beta2: float = 0.98  # AdamW: decay of the running mean of their squares
    weight_decay: float = 0.01  # on matrices only
    clip: float = 1.0  # largest norm of the gradient; 0: no clipping
    label_smoothing: float = 0.0  # probability that is spread evenly over the vocabulary; the paper: 0.1
    r_drop: float = 0.0  # R-Drop: weight of the difference between two passes with different dropout; 0: one pass
    average: Literal["none", "ema", "last"] = "none"  # average the weights: exponentially, or of the last evaluations
    ema: float = 0.999  # decay of the exponential moving average
    average_last: int = 5  # number of evaluations whose weights are averaged
    similarity: Literal["contrastive", "regression"] = "contrastive"  # in-batch negatives, or the true scores
    temperature: float = 0.05  # contrastive: cosine similarities are divided by it
    evaluate_every: int = 500  # steps between evaluations (and checkpoints); 0: only at the end
    samples: int = 3  # validation examples to show at each evaluation, with the outputs of the model
    snapshots: int = 0  # number of weight snapshots to keep, at log-spaced steps from the first to the last
    tensorboard: bool = False  # write curves, samples and attention maps for TensorBoard
    wandb: bool = False  # send curves and samples to Weights & Biases
    best_by: str = "loss"  # what makes an evaluation the best: the lowest loss, or the highest measure
    best_examples: int = 200  # validation examples that best_by is measured on, unless it is the loss; 0: all
    keep: Literal["last", "best"] = "last"  # which weights the run ends with: the last, or the best evaluation's
    patience: int = 0  # stop after this many evaluations without improvement; 0: never
    seed: int = 0
    device: str = "auto"  # cpu, cuda, mps; auto: the fastest available
    precision: Literal["auto", "float32", "bfloat16"] = "auto"  # auto: bfloat16 where the device supports it well
    deterministic: bool = False  # on a GPU: deterministic kernels, some of which are slower
    compile: Literal["auto", "yes", "no"] = "auto"  # auto: on a GPU, if the run is long enough to gain time
    parallel: Literal["ddp", "fsdp"] = "ddp"  # several processes: each has the whole model, or (fsdp) a shard of it
    checkpoint_activations: bool = False  # activation checkpointing: recompute blocks in the backward pass
    init: str = ""  # a run whose weights to start from; empty: random weights
    lora: int = 0  # rank of LoRA adapters beside frozen matrices; 0: train the matrices themselves
    lora_on: str = "*.query *.value"  # patterns of matrices that get an adapter; an embedding is trained whole
    freeze: str = ""  # patterns of parameters that are not trained, separated by spaces: "encoder.* *.embedding.*"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("train.best_by", self.best_by, measures())
        counts = "lora step_tokens warmup clip weight_decay r_drop evaluate_every samples snapshots"
        self.require_each("steps average_last", lambda n: n > 0, "be at least 1")
        self.require_each(f"{counts} patience best_examples", lambda n: n >= 0, "not be negative")
        self.require_each("snapshots", lambda n: n <= 10_000, "be at most 10,000")
        self.require_each("label_smoothing final ema", lambda x: 0 <= x <= 1, "lie between 0 and 1")
        self.require_each("beta1 beta2", lambda x: 0 <= x < 1, "be at least 0 and below 1")
        require(
            not self.lora or (self.average == "none" and self.parallel == "ddp"),
            f"train.lora = {self.lora} needs train.average = 'none' and train.parallel = 'ddp'; change one of them",
        )
        self.require_each("learning_rate temperature", lambda x: 0 < x <= 1e30, "be above 0, and at most 1e30")
        self.require_each("seed", lambda n: -(2**63) <= n < 2**63, "lie between -2^63 and 2^63 - 1")

    @property
    def passes(self) -> int:
        """How often each batch is computed in a step: twice with R-Drop."""
        return 2 if self.r_drop else 1


@dataclass(frozen=True)
class Recipe:
    """A whole experiment."""

    name: str = ""
    about: str = ""  # one line for lists
    format: int = RUN_FORMAT  # of the run folder; written by clearhead, not set by users
    model: ModelConfig = field(default_factory=ModelConfig)
    tokenizer: TokenizerConfig = field(default_factory=TokenizerConfig)
    data: DataConfig = field(default_factory=DataConfig)
    train: TrainConfig = field(default_factory=TrainConfig)

    def __post_init__(self) -> None:
        choices = ("loss", *TASKS[self.data.task].measures)
        require(
            self.train.best_by in choices,
            f"train.best_by = {self.train.best_by!r} is not measured for data.task = {self.data.task!r}; "
            f"choose {' or '.join(choices)}",
        )
        if self.train.r_drop:
            setting = f"train.r_drop = {self.train.r_drop}"
            predicts = TASKS[self.data.task].loss == "cross entropy"
            require(predicts, f"{setting} does not work for data.task = {self.data.task!r}; leave it out")
            noise = self.model.dropout + self.model.attention_dropout + self.model.token_dropout
            require(
                noise > 0, f"{setting} needs dropout, but model.dropout = {self.model.dropout}; set it, e.g. to 0.2"
            )
