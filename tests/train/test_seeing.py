"""A run can be watched, and is the same run when nobody watches."""

from __future__ import annotations

import io
import json
import math
import re
import shutil
import sys
from dataclasses import replace
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from safetensors.torch import load_file

from clearhead import cli
from clearhead.config import DataConfig, ModelConfig, Recipe, TokenizerConfig, TrainConfig, UserError
from clearhead.data.batches import IGNORE, Batch
from clearhead.data.loader import open_batches
from clearhead.data.sources import open_corpus
from clearhead.device import Machine
from clearhead.recipes import write_recipe
from clearhead.tasks import TASKS
from clearhead.terminal.chart import Curve, draw
from clearhead.train.checkpoint import checkpoint_folders
from clearhead.train.cost import BatchShape, forward_lines, total
from clearhead.train.prepare import prepare_tokenizers
from clearhead.train.run import train
from clearhead.train.watching import speed
from clearhead.train.watching.dry_run import dry_run
from clearhead.train.watching.log import Log, format_sample
from clearhead.train.watching.plot import plot_runs, plot_schedule, read_history, smoothed
from clearhead.train.watching.samples import first_examples
from clearhead.train.watching.snapshots import snapshot_steps
from clearhead.train.watching.speed import Throughput, known_gpu, measured_peak, tokens_read, training_flops
from tiny_models import random_ids

CPU = Machine(torch.device("cpu"), torch.float32, False)
RECIPE = Recipe(
    name="tiny",
    data=DataConfig(corpus="phrasebook", size=300, batch_tokens=512),
    tokenizer=TokenizerConfig(vocab=400),
    model=ModelConfig(d_model=16, d_ff=32, layers=1, heads=2, dropout=0.2),
    train=TrainConfig(steps=12, evaluate_every=4, warmup=3, device="cpu", samples=2, snapshots=5, tensorboard=True),
)


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Recipe:
    return replace(RECIPE, data=replace(RECIPE.data, cache=str(tmp_path_factory.mktemp("cache"))))


@pytest.fixture(scope="module")
def watched(recipe: Recipe, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that everything is watched of."""
    run = tmp_path_factory.mktemp("watched")
    train(recipe, run, quiet=True)
    return run


def strictly(text: str) -> Any:
    """JSON, and nothing that only Python reads."""

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is no JSON")

    return json.loads(text, parse_constant=refuse)


def metrics_of(run: Path, kind: str) -> list[dict[str, Any]]:
    lines = [strictly(line) for line in (run / "metrics.jsonl").read_text(encoding="utf8").splitlines()]
    return [line for line in lines if line["kind"] == kind]


def log_of(run: Path | None = None, **train_settings: Any) -> Log:
    settings = TrainConfig(samples=0, **train_settings)
    return Log(run, Recipe(model=ModelConfig(vocab=50), train=settings), CPU, 0, quiet=True)


def test_watching_changes_nothing(recipe: Recipe, watched: Path, tmp_path: Path) -> None:
    unwatched = replace(recipe.train, samples=0, snapshots=0, tensorboard=False)
    train(replace(recipe, train=unwatched), tmp_path, quiet=True)
    one, other = (load_file(run / "model.safetensors") for run in (watched, tmp_path))
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert not metrics_of(tmp_path, "sample")
    assert not {"snapshots", "tensorboard"} & {path.name for path in tmp_path.iterdir()}


def test_a_resumed_run_writes_each_line_and_snapshot_once(recipe: Recipe, watched: Path, tmp_path: Path) -> None:
    """Killed after step 12 was written down and before it was saved: the run goes on from step 8."""
    run = tmp_path / "run"
    shutil.copytree(watched, run)
    shutil.rmtree(checkpoint_folders(run)[-1])
    (run / "model.safetensors").unlink()
    with (run / "metrics.jsonl").open("ab") as file:
        file.write('{"kind": "train", "step": 13, "lo é'.encode()[:-1])
    newest = run / "snapshots" / "step-00000012.safetensors"
    newest.write_bytes(b"")
    newest.with_name("step-00000010.safetensors").write_bytes(b"")  # of a run that was to have other steps
    train(recipe, run, resume=True, quiet=True)
    assert [line["step"] for line in metrics_of(run, "train")] == [*range(1, 13)]
    assert [line["step"] for line in metrics_of(run, "valid")] == [4, 8, 12]
    assert [line["step"] for line in metrics_of(run, "sample")] == [4, 4, 8, 8, 12, 12]
    assert [line["loss"] for line in metrics_of(run, "train")] == [
        line["loss"] for line in metrics_of(watched, "train")
    ]
    assert {path.name for path in (run / "snapshots").iterdir()} == {p.name for p in (watched / "snapshots").iterdir()}
    for path in (watched / "snapshots").iterdir():
        assert (run / "snapshots" / path.name).read_bytes() == path.read_bytes()


def test_what_is_no_number_is_null(tmp_path: Path) -> None:
    with log_of(tmp_path) as log:
        log.skipped(3, math.nan, math.inf)
        log.record("note", 4, text="naïve\n", value=1.5)
    lines = [strictly(line) for line in (tmp_path / "metrics.jsonl").read_text(encoding="utf8").splitlines()]
    assert lines == [
        {"kind": "skipped", "step": 3, "loss": None, "norm": None},
        {"kind": "note", "step": 4, "text": "naïve\n", "value": 1.5},
    ]


@pytest.mark.parametrize("task", ["translation", "language", "chat", "masked", "classification", "similarity"])
def test_perplexity_is_for_words(task: str) -> None:
    log = Log(None, Recipe(data=DataConfig(task=task)), CPU, 0, quiet=True)
    assert ("perplexity 2.00" in log.describe_loss(math.log(2))) == (task not in ("classification", "similarity"))
    assert "perplexity" not in log.describe_loss(1.0, smoothing=0.1)  # that loss is no log-likelihood


# --- pace -------------------------------------------------------------------------------------------------------------


def test_pace_is_recent_and_leaves_evaluation_out(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(speed.time, "monotonic", lambda: now[0])
    throughput = Throughput()
    for seconds in [9.0] * 30 + [2.0] * speed.RECENT:
        now[0] += seconds
        throughput.step(tokens=10, flops=400)
        now[0] += 1000
        throughput.restart()
    assert throughput.seconds_per_step == 2.0
    assert throughput.tokens_per_second == 5
    assert throughput.flops_per_second == 200.0
    assert throughput.pause == 1000


def test_the_run_restarts_the_clock_after_evaluation(recipe: Recipe, tmp_path: Path, monkeypatch: Any) -> None:
    events: list[str] = []
    for name in ("step", "evaluated", "show_samples", "restart_clock"):
        method = getattr(Log, name)

        def noted(self: Log, *arguments: Any, name: str = name, method: Any = method) -> None:
            events.append(name)
            method(self, *arguments)

        monkeypatch.setattr(Log, name, noted)
    settings = replace(recipe.train, steps=2, evaluate_every=1, snapshots=0, tensorboard=False)
    train(replace(recipe, train=settings), tmp_path, quiet=True)
    assert events == ["restart_clock", *["step", "evaluated", "show_samples", "restart_clock"] * 2]


def test_flops_are_those_of_the_envelope() -> None:
    config = ModelConfig(family="decoder-only", vocab=50)
    ids, targets = random_ids(3, 7), random_ids(3, 7)
    lines = forward_lines(config, BatchShape(3, 7))
    assert training_flops(config, Batch({"ids": ids}, targets)) == pytest.approx(3 * 21 * total(lines))
    few = torch.full_like(targets, IGNORE)
    few[0, 0] = 1
    logits = next(line.value for line in lines if line.what == "logits")
    expected = 3 * 21 * (total(lines) - logits * 20 / 21)
    assert training_flops(config, Batch({"ids": ids}, few)) == pytest.approx(expected)


def test_padding_is_not_read() -> None:
    real = torch.tensor([[True, True, False], [True, True, True]])
    ids, targets = random_ids(2, 3), random_ids(2, 3).masked_fill(~real, IGNORE)
    assert tokens_read(TASKS["translation"], Batch({"source": random_ids(2, 9), "target": ids}, targets)) == 5
    assert tokens_read(TASKS["classification"], Batch({"ids": ids, "real": real}, torch.tensor([0, 1]))) == 5
    assert tokens_read(TASKS["masked"], Batch({"ids": ids}, torch.full_like(ids, IGNORE))) == 6


@pytest.mark.parametrize(
    ("name", "gpu"),
    [
        ("NVIDIA H200", "h200"),
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("NVIDIA A100-SXM4-40GB", "a100"),
        ("Tesla P100-PCIE-16GB", "p100"),
        ("NVIDIA GeForce RTX 4090", "rtx4090"),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", ""),
        ("NVIDIA L40S", ""),
        ("NVIDIA GH200 480GB", ""),
    ],
)
def test_gpus_are_known_by_their_whole_name(name: str, gpu: str) -> None:
    assert known_gpu(name) == gpu


def test_the_display_has_all_figures() -> None:
    assert measured_peak(CPU) > 1e8
    log = log_of(steps=100, evaluate_every=10)
    shown = Console(width=120, file=io.StringIO())
    shown.print(log.render())
    batch = Batch({"source": random_ids(4, 6), "target": random_ids(4, 6)}, random_ids(4, 6))
    log.step(25, 2.0, 0.1, 0.5, batch.tokens, [batch])
    shown.print(log.render())
    text = shown.file.getvalue()
    for words in (
        "the first step",
        "step 25 of 100",
        "loss 2.0000  perplexity 7.39",
        "tokens/s",
        "% of peak",
        "left",
    ):
        assert words in text
    assert re.search(r"\d (MB|GB)", text)  # which of them depends on what ran before in this process


# --- samples ----------------------------------------------------------------------------------------------------------

TASK_OF_CORPUS = {
    "phrasebook": ("translation", ModelConfig()),
    "stories": ("language", ModelConfig(family="decoder-only", position="learned", max_length=64)),
    "instructions": ("chat", ModelConfig(family="decoder-only")),
    "masked": ("masked", ModelConfig(family="encoder-only")),
    "reviews": ("classification", ModelConfig(family="encoder-only", head="classes")),
    "paraphrases": ("similarity", ModelConfig(family="encoder-only", head="embedding")),
}


@pytest.mark.parametrize("corpus", TASK_OF_CORPUS)
def test_samples_are_the_first_of_validation(corpus: str, recipe: Recipe, tmp_path: Path) -> None:
    task, shape = TASK_OF_CORPUS[corpus]
    name = "stories" if corpus == "masked" else corpus
    long = task in ("chat", "classification")
    data = replace(recipe.data, corpus=name, task=task, size=40, max_length=256 if long else 64, batch_tokens=1024)
    model = replace(shape, d_model=16, d_ff=32, layers=1, heads=2)
    settings = replace(recipe.train, steps=1, evaluate_every=0, snapshots=0, tensorboard=True)
    train(replace(recipe, data=data, model=model, train=settings), tmp_path, quiet=True)
    samples = metrics_of(tmp_path, "sample")
    assert len(samples) == 2
    first: Any = next(open_corpus(data).read("valid"))
    one = samples[0]
    match task:
        case "translation":
            assert (one["source"], one["reference"]) == (first.source, first.target)
            assert "output" in one
        case "language":
            assert first.text.replace("\n", "⏎").startswith(one["prompt"] + one["reference"])
        case "chat":
            question, answer, *_ = (message.content for message in first.messages if message.role != "system")
            assert one["prompt"].endswith(f"<user>{question}<end><assistant>".replace("\n", "⏎"))
            assert answer.replace("\n", "⏎").startswith(one["reference"])
        case "masked":
            assert "<mask>" in one["text"]
            assert one["hidden"].count("·") == one["guesses"].count("·")
        case "classification":
            assert (one["text"], one["label"]) == (first.text, first.label)
            assert one["prediction"] in {review.label for review in open_corpus(data).read("train")}
        case "similarity":
            assert (one["first"], one["second"], one["score"]) == (first.first, first.second, f"{first.score:.2f}")
            assert -1 <= float(one["cosine"]) <= 1
    assert format_sample({"source": "a", "output": "b"}).plain == "  source  a\n  output  b\n"


def test_first_examples_are_first_in_the_corpus_not_in_the_batches(recipe: Recipe) -> None:
    data, tokenizers = replace(recipe.data, batch_tokens=64), prepare_tokenizers(recipe)
    valid = open_batches(data, tokenizers, "valid")
    assert len(valid.dataset.buckets(0)) > 1
    batch = first_examples(valid, 3)
    rows = zip(batch.inputs["source"], batch.inputs["source_real"], strict=True)
    found = [tokenizers.source.decode(ids[real].tolist()) for ids, real in rows]
    assert found == [pair.source for pair in islice(open_corpus(data).read("valid"), 3)]


# --- snapshots --------------------------------------------------------------------------------------------------------


@given(st.integers(1, 10_000), st.integers(0, 60))
def test_snapshots_lie_log_spaced_from_first_to_last(steps: int, count: int) -> None:
    found = snapshot_steps(steps, count)
    assert len(found) == min(count, steps + 1)
    assert list(found) == sorted(set(found))
    if count:
        assert found[-1] == steps
    if count > 1:
        assert found[0] == 0
    gaps = [b - a for a, b in pairwise(found)]
    assert all(b >= a - 1 for a, b in pairwise(gaps))  # wider and wider, but for rounding


def test_snapshots_are_the_weights(recipe: Recipe, watched: Path) -> None:
    paths = sorted((watched / "snapshots").iterdir())
    assert [int(path.stem[5:]) for path in paths] == list(snapshot_steps(12, 5)) == [0, 1, 2, 5, 12]
    last, model = load_file(paths[-1]), load_file(watched / "model.safetensors")
    assert last.keys() == model.keys()
    assert all(torch.equal(last[name], model[name].half()) for name in model)
    start = load_file(paths[0])
    assert any(not torch.equal(start[name], last[name]) for name in model)


# --- TensorBoard ------------------------------------------------------------------------------------------------------


def test_tensorboard_shows_curves_samples_and_attention(watched: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    board = EventAccumulator(str(watched / "tensorboard"), size_guidance={"tensors": 0, "images": 0})
    board.Reload()
    for tag in ("loss/train", "learning rate", "gradient norm", "tokens per second"):
        assert [event.step for event in board.Scalars(tag)] == [*range(1, 13)]
    losses = [event.value for event in board.Scalars("loss/train")]
    assert losses == pytest.approx([line["loss"] for line in metrics_of(watched, "train")], rel=1e-6)
    assert [event.step for event in board.Scalars("loss/valid")] == [4, 8, 12]
    shown = board.Tensors("sample 2/text_summary")[-1].tensor_proto.string_val[0].decode()
    assert f"| output | {metrics_of(watched, 'sample')[-1]['output']} |" in shown
    [*_, picture] = board.Images("attention")
    assert picture.encoded_image_string.startswith(b"\x89PNG")
    assert picture.width > 300


def test_attention_is_that_of_the_model() -> None:
    from clearhead.train.watching.tensorboard import attention_weights, draw_attention
    from tiny_models import encoder_decoder

    model = encoder_decoder()
    batch = Batch({"source": random_ids(2, 5), "target": random_ids(2, 3)}, random_ids(2, 3))
    with torch.no_grad():
        weights = attention_weights(model, batch)
    assert weights.shape == (4, 3, 5)  # all heads of cross-attention
    torch.testing.assert_close(weights.sum(-1), torch.ones(4, 3, dtype=weights.dtype))
    assert not list(model.blocks())[-1].cross_attention.weights.observed
    figure = draw_attention(weights, ["$a", "b$", "c"], list("vwxyz"))
    assert [place.get_title() for place in figure.axes] == [f"head {n}" for n in range(4)]


def test_tensorboard_that_is_not_there_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(UserError, match=r"train.tensorboard = true needs.*pip install 'clearhead\[watch\]'"):
        log_of(tmp_path, tensorboard=True)


# --- plots ------------------------------------------------------------------------------------------------------------


def test_runs_are_plotted(watched: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plot_runs([watched], tmp_path / "curves.png")
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
    plot_runs([watched, watched], tmp_path / "curves.svg")
    assert "<svg" in (tmp_path / "curves.svg").read_text(encoding="utf8")
    plot_runs([watched], None)
    shown = capsys.readouterr().out
    assert "train" in shown
    assert "validation" in shown
    history = read_history(watched)
    assert history.losses == [line["loss"] for line in metrics_of(watched, "train")]
    assert [step for step, _ in history.valid] == [4, 8, 12]


def test_plots_refuse_what_they_cannot_read(watched: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"is not a run: there is no metrics\.jsonl"):
        plot_runs([tmp_path], None)
    with pytest.raises(UserError, match=r"must end with one of \.png"):
        plot_runs([watched], tmp_path / "curves.bmp")
    with pytest.raises(UserError, match="No such file or directory"):
        plot_runs([watched], tmp_path / "nowhere" / "curves.png")
    (tmp_path / "metrics.jsonl").write_text("[]\n", encoding="utf8")
    with pytest.raises(UserError, match="is damaged"):
        plot_runs([tmp_path], None)


def test_smoothing_keeps_a_constant_and_has_no_jump_at_the_start() -> None:
    assert smoothed([3.0] * 400) == pytest.approx([3.0] * 400)
    assert smoothed([8.0, *[2.0] * 999])[0] == 8.0


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=300), st.integers(40, 120))
def test_a_chart_fits_and_has_no_gaps(values: list[float], room: int) -> None:
    lines = draw([Curve("loss", range(len(values)), values)], "step", room).plain.splitlines()
    assert max(len(line.rstrip()) for line in lines) <= room
    body = [line.partition("│")[2] for line in lines if "│" in line]
    columns = ["".join(line.ljust(room)[column] for line in body).strip() for column in range(len(body[0]))]
    filled = [bool(column) for column in columns]
    assert any(filled)
    if len(values) > 1:
        assert all(filled)


def test_a_schedule_is_plotted_from_end_to_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe = Recipe(train=TrainConfig(steps=500, warmup=50, learning_rate=0.004, schedule="linear"))
    plot_schedule(recipe, None)
    shown = capsys.readouterr().out
    for words in ("learning rate, linear", "0.004 │", "500"):
        assert words in shown
    plot_schedule(recipe, tmp_path / "rate.svg")
    assert (tmp_path / "rate.svg").stat().st_size > 1000


# --- dry run and command line -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("corpus", TASK_OF_CORPUS)
def test_a_dry_run_shows_all_and_writes_nothing(
    corpus: str, recipe: Recipe, tmp_path: Path, monkeypatch: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")
    task, shape = TASK_OF_CORPUS[corpus]
    data = replace(recipe.data, corpus="stories" if corpus == "masked" else corpus, task=task, size=60, max_length=64)
    if task in ("chat", "classification"):
        data = replace(data, max_length=256, batch_tokens=1024)
    model = replace(shape, d_model=16, d_ff=32, layers=1, heads=2)
    dry_run(replace(recipe, data=data, model=model, train=replace(recipe.train, optimiser="muon")))
    shown = capsys.readouterr().out
    assert not list(tmp_path.iterdir())
    for words in (
        "train",
        "valid",
        "first batch",
        "to learn",
        "parameters",
        "memory",
        "Muon's one average",
        "first step: loss",
        "12 steps ×",
    ):
        assert words in shown
    if task == "translation":
        first = next(line for line in shown.splitlines() if "to learn  " in line)
        assert "│" in first
        assert "<end>" in first
    if task in ("masked", "chat"):
        assert "·│·" in shown


def test_what_was_dropped_is_shown(recipe: Recipe, capsys: pytest.CaptureFixture[str]) -> None:
    dry_run(replace(recipe, data=replace(recipe.data, max_length=16)))
    assert "examples of more than data.max_length = 16 tokens dropped" in capsys.readouterr().out


def test_the_command_line_sees_the_same(
    recipe: Recipe, watched: Path, tmp_path: Path, monkeypatch: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_recipe(recipe, tmp_path / "tiny.toml")

    def clearhead(*words: str) -> str:
        cli.app(words, exit_on_error=False, result_action="return_value")
        return capsys.readouterr().out

    assert "Nothing was written" in clearhead("train", "tiny.toml", "--dry-run")
    assert "learning rate, cosine" in clearhead("train", "tiny.toml", "--plot-schedule")
    assert "validation" in clearhead("plot", str(watched))
    clearhead("plot", str(watched), "--out", "curves.svg")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["curves.svg", "tiny.toml"]
    with pytest.raises(UserError, match=r"--out curves.png is for the picture of --plot-schedule"):
        clearhead("train", "tiny.toml", "--out", "curves.png")
    with pytest.raises(UserError, match=r"which run\?"):
        clearhead("plot")


@pytest.mark.parametrize("setting", ["samples", "snapshots"])
def test_counts_are_not_negative(setting: str) -> None:
    with pytest.raises(UserError, match=rf"train\.{setting} = -1: must not be negative"):
        TrainConfig(**{setting: -1})
    with pytest.raises(UserError, match=r"train\.tensorboard = 1: expected true or false"):
        TrainConfig(tensorboard=1)
