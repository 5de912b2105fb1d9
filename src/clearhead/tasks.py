"""What each task is: everything about a task that is not code, in one table.

What depends on the task is either looked up in `TASKS`, or it is code, registered under a name that the table gives:

    field     registry                              what is registered
    example   EXAMPLES in data/readers/fields.py    how the fields of a row become an example
              ENCODERS in data/encode.py            how examples become columns of token ids
    batches   DATASETS in data/datasets.py          how columns of token ids become batches
    loss      LOSSES in train/loss.py               what training minimises
    samples   SAMPLERS in train/watching/samples.py what is shown of the model's outputs during training
    scorer    SCORERS in evaluate/scores.py         what `clearhead evaluate` measures

To add a task, add an entry to `TASKS` and register its batches and its loss. It may name those of another task.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Task:
    """One task."""

    family: str  # the model.family that learns it
    example: str  # what its corpora consist of: pair, document, labelled text, dialogue or sentence pair
    columns: tuple[str, ...]  # settings of [data] that name the columns of a table to read
    batches: str  # how its examples are batched
    loss: str
    verbs: tuple[str, ...]  # commands that a trained run can be used with, the most useful one first
    commands: tuple[str, ...]  # the lines of the model card that say so
    head: str = "vocabulary"  # the model.head that learns it
    optional_columns: tuple[str, ...] = ()  # settings that may name further columns
    whole_column: str = ""  # setting that may name one column with a whole example (a list of messages) instead
    settings: tuple[str, ...] = ()  # further settings of [data] that only some tasks have
    special_tokens: tuple[str, ...] = ()  # what its tokenizer must have; appended where they are missing
    every_token_learned: bool = False  # each token that is not padding has a target
    measures: tuple[str, ...] = ()  # what train.best_by can be besides the loss; evaluate reports the first one first
    samples: str = ""  # how a few outputs are shown during training; empty: not at all
    sample_texts: tuple[str, ...] = ()  # the texts of one such sample; the first is what the model reads
    scorer: str = ""  # how evaluate measures a run; empty: not at all

    @property
    def predicts_tokens(self) -> bool:
        """Whether the loss is the mean of -log p over tokens, so that exp(loss) is the perplexity."""
        return self.head == "vocabulary"


TASKS: dict[str, Task] = {
    "translation": Task(
        family="encoder-decoder",
        example="pair",
        columns=("source", "target"),
        batches="pairs",
        loss="cross entropy",
        verbs=("translate",),
        commands=('clearhead translate . "a text"', "clearhead explore ."),
        settings=("bpe_dropout", "name_copies"),
        every_token_learned=True,
        measures=("bleu", "exact"),
        samples="translations",
        sample_texts=("source", "reference", "output"),
        scorer="translations",
    ),
    "language": Task(
        family="decoder-only",
        example="document",
        columns=("text",),
        batches="next tokens",
        loss="cross entropy",
        verbs=("generate",),
        commands=('clearhead generate . "a beginning"', "clearhead explore ."),
        settings=("separator", "pack", "document_mask"),
        every_token_learned=True,
        samples="continuations",
        sample_texts=("prompt", "reference", "output"),
        scorer="documents",
    ),
    "masked": Task(
        family="encoder-only",
        example="document",
        columns=("text",),
        batches="masked tokens",
        loss="cross entropy",
        verbs=("fill",),
        commands=('clearhead fill . "the <mask> sleeps"', "clearhead train RECIPE train.init=."),
        settings=("separator", "pack", "mask_rate"),
        measures=("accuracy",),
        samples="masked tokens",
        sample_texts=("text", "hidden", "guesses"),
        scorer="masked tokens",
    ),
    "classification": Task(
        family="encoder-only",
        head="classes",
        example="labelled text",
        columns=("text", "label"),
        batches="labelled texts",
        loss="cross entropy",
        verbs=("classify",),
        commands=('clearhead classify . "a text"',),
        measures=("accuracy",),
        samples="labels",
        sample_texts=("text", "label", "prediction"),
        scorer="labels",
    ),
    "chat": Task(
        family="decoder-only",
        example="dialogue",
        columns=("source", "target"),
        optional_columns=("context",),
        whole_column="text",
        batches="dialogues",
        loss="cross entropy",
        verbs=("chat", "generate"),
        commands=("clearhead chat .",),
        settings=("pack",),
        special_tokens=("system", "user", "assistant"),
        measures=("exact",),
        samples="continuations",
        sample_texts=("prompt", "reference", "output"),
        scorer="answers",
    ),
    "similarity": Task(
        family="encoder-only",
        head="embedding",
        example="sentence pair",
        columns=("text", "other"),
        optional_columns=("label",),
        batches="sentence pairs",
        loss="similarity",
        verbs=("embed",),
        commands=('clearhead embed . "a text"',),
        settings=("best_score",),
        measures=("correlation",),
        samples="similarities",
        sample_texts=("first", "second", "score", "cosine"),
        scorer="similarities",
    ),
}


def measures() -> tuple[str, ...]:
    """Every value that train.best_by can have, the loss first."""
    return tuple(dict.fromkeys(("loss", *(measure for task in TASKS.values() for measure in task.measures))))


def task_of(example: str) -> str:
    """The first task that learns from this kind of example."""
    return next(name for name, task in TASKS.items() if task.example == example)
