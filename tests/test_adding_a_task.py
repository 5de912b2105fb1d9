"""A new task is one entry of TASKS, one kind of batch and one loss: nothing else in the tree has to know of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import get_args, get_type_hints

import numpy as np
import pytest
from torch import Tensor

from clearhead.config import DataConfig, Family, ModelConfig, Recipe, TokenizerConfig, TrainConfig, UserError, check
from clearhead.data.batches import Batch, Dataset, PaddedExamples, RandomKey, TokenColumn, batch_of
from clearhead.data.datasets import DATASETS, EncodedSplit
from clearhead.data.encode import ENCODERS
from clearhead.data.plan import PlannedBatch
from clearhead.data.readers.fields import EXAMPLES, column_settings
from clearhead.data.summary import show_corpus
from clearhead.evaluate.evaluation import Evaluation
from clearhead.evaluate.measures import exact_match
from clearhead.evaluate.results import Case, Cases, Results, Score
from clearhead.evaluate.scores import SCORERS, evaluate
from clearhead.files import read_metrics
from clearhead.inspect.web.facts import describe
from clearhead.library import Loaded, load
from clearhead.tasks import TASKS, Task, measures
from clearhead.train.loss import LOSSES, Objective, cross_entropy
from clearhead.train.run import train
from clearhead.train.watching.dry_run import dry_run
from clearhead.train.watching.samples import SAMPLERS

PACKAGE = Path(__file__).parents[1] / "src" / "clearhead"
REGISTRIES = {
    "example": (EXAMPLES, ENCODERS),
    "batches": (DATASETS,),
    "loss": (LOSSES,),
    "samples": (SAMPLERS,),
    "scorer": (SCORERS,),
}


# --- a toy task: read a text, write its tokens in reverse order -------------------------------------------------------

REVERSAL = Task(
    family="encoder-decoder",
    example="document",
    columns=("text",),
    batches="reversed documents",
    loss="reversal",
    verbs=("translate",),
    commands=('clearhead translate . "backwards"',),
    settings=("separator",),
    every_token_learned=True,
    measures=("reversed",),
    samples="translations",
    sample_texts=("forwards", "backwards", "output"),
    scorer="reversal",
)


def pad_reversed_documents(text: TokenColumn) -> PaddedExamples:
    """Documents ([start] ids of each) as the source, and the same tokens in reverse order as the target."""

    def batch(planned: PlannedBatch, _: RandomKey) -> Batch:
        rows, real = text.read(planned.members, planned.widths[0])  # (B, T): [start] a b c
        source = np.where(real, np.roll(rows, -1, axis=1), text.pad)
        last = real.sum(axis=1) - 1
        source[np.arange(len(rows)), last] = text.end  # a b c [end]
        target = rows.copy()
        for row, count in zip(target, last, strict=True):
            row[1 : count + 1] = row[count:0:-1]  # [start] c b a
        targets = np.where(real, np.roll(target, -1, axis=1), -100)
        targets[np.arange(len(rows)), last] = text.end  # c b a [end]
        return batch_of(targets, source=source, source_real=real, target=target)

    return PaddedExamples(np.stack([text.lengths, text.lengths], axis=1), batch)


def reversed_documents(split: EncodedSplit) -> Dataset:
    return split.bucketed(pad_reversed_documents(split.column("text")))


def score_reversal(evaluation: Evaluation) -> Results:
    texts = [document.text for document in evaluation.examples()]
    outputs = [Loaded(evaluation.run).translate(text, beam=1) for text in texts]
    wanted = [text[::-1] for text in texts]
    cases = [Case(float(output == right), {"output": output}) for output, right in zip(outputs, wanted, strict=True)]
    score = Score("reversed", "reversed", 100 * exact_match(outputs, wanted), "percent")
    return evaluation.results(len(texts), [score], Cases("exact match", cases), [])


@pytest.fixture
def losses(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Add the task; the list gets the targets of each batch whose loss is computed."""
    seen: list[int] = []

    def reversal(objective: Objective, batch: Batch) -> Tensor:
        seen.append(batch.tokens)
        return cross_entropy(objective, batch)

    monkeypatch.setitem(TASKS, "reversal", REVERSAL)
    monkeypatch.setitem(DATASETS, "reversed documents", reversed_documents)
    monkeypatch.setitem(LOSSES, "reversal", reversal)
    monkeypatch.setitem(SCORERS, "reversal", score_reversal)
    return seen


@pytest.fixture
def recipe(losses: list[int], tmp_path: Path) -> Recipe:
    """A run of the toy task, in a few steps, on texts of single letters."""
    del losses
    letters = np.random.default_rng(0).integers(0, 6, (60, 5))
    lines = ["".join("abcdef"[number] for number in row) for row in letters]
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "train.txt").write_text("\n".join(lines))
    (tmp_path / "texts" / "valid.txt").write_text("\n".join(lines[:10]))
    return Recipe(
        name="backwards",
        model=ModelConfig(d_model=32, d_ff=64, layers=1, heads=2, dropout=0.0),
        tokenizer=TokenizerConfig(kind="characters"),
        data=DataConfig(
            task="reversal",
            path=str(tmp_path / "texts"),
            separator="\n",
            batch_tokens=400,
            cache=str(tmp_path / "cache"),
        ),
        train=TrainConfig(steps=4, evaluate_every=2, best_by="reversed", samples=2, warmup=1, device="cpu"),
    )


def test_a_task_is_trained_and_used_through_its_entry(
    recipe: Recipe, losses: list[int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    train(recipe, folder)
    assert losses
    assert "perplexity" in capsys.readouterr().err
    metrics = read_metrics(folder)
    [sample, *_] = [row for row in metrics if row["kind"] == "sample"]
    assert sample["forwards"] == sample["backwards"][::-1]
    assert all("reversed" in row for row in metrics if row["kind"] == "valid")
    assert 'clearhead translate . "backwards"' in (folder / "README.md").read_text()
    loaded = load(folder)
    assert isinstance(loaded.translate("abc"), str)
    with pytest.raises(UserError, match="use it with `clearhead translate`"):
        loaded.generate("abc")
    assert evaluate(loaded.run, "valid", quiet=True)["reversed"] >= 0
    assert loaded.trace("abc")["encoder.blocks.0.attention.weights"].shape == (1, 2, 4, 4)
    assert sample["forwards"] in describe(loaded.run)["examples"]


def test_a_task_is_looked_at_through_its_entry(recipe: Recipe, capsys: pytest.CaptureFixture[str]) -> None:
    dry_run(recipe)
    show_corpus(recipe, samples=2)
    shown = capsys.readouterr().out
    assert "60 examples in" in shown
    assert "reversal" in shown
    assert column_settings("reversal") == ["data.text=FIELD"]


def test_a_task_is_a_value_of_the_settings_like_any_other(recipe: Recipe) -> None:
    assert recipe.data.task == "reversal"
    with pytest.raises(UserError, match=r"similarity \| reversal; did you mean 'reversal'\?"):
        DataConfig(task="reversals")
    with pytest.raises(UserError, match=r"train\.best_by = 'bleu' is not measured for data\.task = 'reversal'"):
        Recipe(data=recipe.data, train=TrainConfig(best_by="bleu"))


# --- the table --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TASKS)
def test_what_an_entry_names_is_there(name: str) -> None:
    task = TASKS[name]
    for field, registries in REGISTRIES.items():
        for registry in registries:
            assert getattr(task, field) in registry
    assert task.family in get_args(Family)
    check("model.head", get_type_hints(ModelConfig)["head"], task.head)
    settings = (*task.columns, *task.optional_columns, *task.settings)
    assert {*settings} <= {field.name for field in fields(DataConfig)}
    assert {*task.measures} <= {*measures()}
    assert task.sample_texts


def test_everything_that_is_registered_is_used() -> None:
    for field, registries in REGISTRIES.items():
        for registry in registries:
            assert {*registry} == {getattr(task, field) for task in TASKS.values()}


def test_no_other_table_or_branch_knows_the_tasks() -> None:
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.name != "tasks.py":
            tree = ast.parse(path.read_text(encoding="utf8"))
            found += [f"{path.relative_to(PACKAGE)}:{line}" for line in second_tables(tree)]
    assert found == []


def second_tables(tree: ast.AST) -> Iterator[int]:
    """Lines with a collection of several tasks, or a comparison of a task with a name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict | ast.Tuple | ast.List | ast.Set):
            items = node.keys if isinstance(node, ast.Dict) else node.elts
            if len({item.value for item in items if isinstance(item, ast.Constant)} & {*TASKS}) > 1:
                yield node.lineno
        if isinstance(node, ast.Compare | ast.Match):
            sides = [node.subject] if isinstance(node, ast.Match) else [node.left, *node.comparators]
            if any(is_task(side) for side in sides) and any(is_task_name(each) for each in ast.walk(node)):
                yield node.lineno


def is_task(node: ast.AST) -> bool:
    return (isinstance(node, ast.Attribute) and node.attr == "task") or (
        isinstance(node, ast.Name) and node.id == "task"
    )


def is_task_name(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value in TASKS


@pytest.mark.parametrize(
    "code",
    [
        'FAMILY_OF = {"translation": 1, "language": 2}',
        'WORDS = ("chat", "masked")',
        'if config.task == "chat": pass',
        'if task in ("chat", "other"): pass',
        'match run.recipe.data.task:\n    case "chat": pass',
    ],
)
def test_a_second_table_is_found(code: str) -> None:
    assert list(second_tables(ast.parse(code)))
