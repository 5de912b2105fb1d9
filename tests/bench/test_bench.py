"""`clearhead bench` measures every row here or says why not; its ratios, JSON and picture are right."""

from __future__ import annotations

import json
import multiprocessing
import os
from functools import partial
from pathlib import Path

import pytest
import torch

from clearhead.bench import runner
from clearhead.bench.contest import (
    Case,
    Cases,
    Entry,
    PreparedCase,
    Sample,
    Setup,
    Work,
    contest,
    median_ratio,
    reason_of,
    serve,
    speed_ratio,
    timed,
)
from clearhead.bench.material import bucketed_pairs, one_of_each_shape, random_texts, smaller, write_random_run
from clearhead.bench.report import Measured, as_json, circumstances, same_texts
from clearhead.bench.rows import OURS, ROWS, Workspace
from clearhead.config import UserError
from clearhead.decode.translate import SearchSettings, translate
from clearhead.library import load
from clearhead.presets import PRESETS
from command_line import Verb


def entry(who: str, *seconds: float, units: float = 10, texts: tuple[str, ...] = ()) -> Entry:
    samples = [Sample(each, units, 2_000_000_000, 0, texts) for each in seconds]
    return Entry(who, "batch 1", 3.0, samples, texts)


# --- ratios -----------------------------------------------------------------------------------------------------------


def test_a_ratio_is_the_median_of_the_ratios_of_rounds() -> None:
    assert median_ratio([2, 30, 4], [1, 10, 4]) == 2
    ours = entry("clearhead", 1, 10, 4)  # the machine was busy in the second round, for both
    assert speed_ratio(ours, entry("peer", 2, 20, 8)) == 2
    assert speed_ratio(ours, entry("half the work in the same time", 1, 10, 4, units=5)) == 2


def test_texts_are_compared_if_both_have_some() -> None:
    assert same_texts(entry("a", 1, texts=("x", "y")), entry("b", 1, texts=("x", "z"))) == 0.5
    assert same_texts(entry("a", 1), entry("b", 1)) is None


def test_json_has_ratios_medians_memory_and_reasons() -> None:
    peer = entry("peer", 2, 3, 4)
    missing = Entry("other", "", reason="other is not installed")
    measured = Measured(ROWS[0], [missing, entry("clearhead", 1, 1, 1), peer])
    read = json.loads(as_json([measured], circumstances(threads=3)))
    facts = read["circumstances"]
    assert (facts["torch"], facts["threads"], facts["sizes"]) == (torch.__version__, 3, "")
    [row] = read["rows"]
    assert (row["name"], row["missing"]) == ("train-gpt2", ["other: other is not installed"])
    [[ours, theirs]] = row["cases"]
    assert (ours["value"], ours["ours_is_faster"], ours["gpu_memory_gb"]) == (10, 1, 2)
    assert (theirs["value"], theirs["ours_is_faster"], theirs["rounds"]) == (
        pytest.approx(10 / 3, abs=1e-3),
        3,
        [2, 3, 4],
    )


def test_a_row_in_which_ours_fails_has_no_cases() -> None:
    failed = Entry("clearhead", "batch 1", reason="failed: no")
    measured = Measured(ROWS[0], [failed, entry("peer", 1)])
    assert measured.cases() == []
    assert measured.reasons() == ["clearhead, batch 1: failed: no"]


# --- contestants in their own processes -------------------------------------------------------------------------------


def contestant(name: str) -> Cases:
    """A contestant for tests, which must be a function of a module: another process imports it."""
    if name == "missing":
        import nothing_of_that_name  # type: ignore[import-not-found]  # noqa: F401

    def case(text: str) -> Case:
        if name == "fails" and text == "b":
            raise UserError("b cannot be done")
        if name == "fails" and text == "d":
            os._exit(3)
        return lambda: Work(len(text), (text,))

    return {text: partial(case, text) for text in "abcde"}


@pytest.mark.long
def test_contestants_take_turns_and_those_that_cannot_are_named() -> None:
    shown: list[str] = []
    names = ("works", "missing", "fails")
    entries = contest({name: partial(contestant, name) for name in names}, Setup(2, 1), shown.append)
    found = {(each.who, each.case): each for each in entries}
    assert found["missing", ""].reason == "nothing_of_that_name is not installed"
    assert found["fails", "b"].reason == "b cannot be done"
    assert found["fails", "d"].reason == found["fails", "e"].reason == "its process ended with exit code 3"
    counts = {who: [len(found[who, case].samples) for case in "abcde"] for who in ("works", "fails")}
    assert counts == {"works": [2, 2, 2, 2, 2], "fails": [2, 0, 2, 0, 0]}
    assert found["works", "a"].texts == ("a",)
    turns = [line for line in shown if "round" in line and ", a:" in line]
    assert turns == [f"{who}, a: round {turn} of 2" for turn in (1, 2) for who in counts]


@pytest.mark.parametrize("measured", [0, 1])
def test_a_contestant_ends_in_silence_with_the_main_process(
    measured: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("signal.signal", lambda *_: None)
    ours, theirs = multiprocessing.Pipe()
    if measured:
        ours.send("case")
    else:
        ours.close()

    def case() -> Work:
        ours.close()
        return Work(1)

    serve(theirs, lambda: {"case": lambda: case}, Setup())
    assert not capsys.readouterr().err


def test_a_contestant_that_does_not_fit_is_named() -> None:
    assert reason_of(torch.OutOfMemoryError()) == reason_of(MemoryError()) == "does not fit into memory"


# --- what is measured with --------------------------------------------------------------------------------------------


def test_random_runs_write_as_many_tokens_as_they_are_asked_for(tmp_path: Path) -> None:
    folder = write_random_run(tmp_path / "decoder", smaller(PRESETS["gpt2"]))
    prompts = random_texts(folder, 3, 7)
    generated = load(folder).generate(prompts, 9)
    assert [len(text.split()) for text in (*prompts, *generated)] == [7, 7, 7, 9, 9, 9]
    folder = write_random_run(tmp_path / "pairs", smaller(PRESETS["paper-base"]))
    found = translate(load(folder).run, random_texts(folder, 3, 7), SearchSettings(2, 0.0, longest=5))
    assert [len(best.text.split()) for best, *_ in found] == [5, 5, 5]


def test_bucketed_pairs_come_in_few_shapes_with_little_padding() -> None:
    batches = bucketed_pairs(300, 2048, pairs=3000)
    shapes = one_of_each_shape(batches)
    assert 5 < len(shapes) < len(list(batches.epoch(0)))
    real = sum(int(batch.inputs["source_real"].sum()) for batch in batches.epoch(0))
    assert real > 0.9 * sum(batch.inputs["source"].numel() for batch in batches.epoch(0))


# --- the verb ---------------------------------------------------------------------------------------------------------


def test_rows_for_a_gpu_are_skipped_with_a_word(verb: Verb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    lines, notes, code = verb("bench", "--only", "gpu", "--json", tmp_path / "all.json", "--plot", tmp_path / "all.png")
    assert code == 0
    assert "train gpt2, T 1,024: skipped: no GPU here" in lines
    assert "generate: skipped: no GPU here" in notes
    assert not any("above 1, clearhead is faster" in line for line in lines)  # nothing was compared
    read = json.loads((tmp_path / "all.json").read_text(encoding="utf8"))
    assert {row["name"] for row in read["rows"]} == {row.name for row in ROWS if row.device == "cuda"}
    assert {row["skipped"] for row in read["rows"]} == {"no GPU here"}
    assert (tmp_path / "all.png").read_bytes().startswith(b"\x89PNG")


def test_every_row_has_a_title_that_is_understood_alone() -> None:
    assert [row.title for row in ROWS if "the same" in row.title] == []


def test_rows_that_do_not_fit_are_skipped_with_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "available_memory", lambda _: 1_000_000_000)
    [measured] = runner.measure(runner.choose_rows(["cpu-generate"]), 1, 1, False, False, print)
    assert measured.skipped == "needs about 5 GB of memory, 1 GB are available"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--only", "generat"), "--only 'generat': no such row; did you mean 'generate'?"),
        (("--json", "nowhere/a.json"), "--json nowhere/a.json: there is no folder nowhere; create it first"),
        (("--json", "README.md"), "--json README.md: the name must end with .json"),
        (("--json", "."), "--json .: this is a folder; name a file in it"),
        (("--plot", "nowhere/a.png"), "--plot nowhere/a.png: there is no folder nowhere; create it first"),
        (("--plot", "a.txt"), "--plot a.txt: the name must end with .png or .svg or .pdf"),
        (("--rounds", "0"), "--rounds 0: must be at least 1"),
    ],
)
def test_mistakes_get_a_sentence(verb: Verb, arguments: tuple[str, ...], message: str) -> None:
    lines, notes, code = verb("bench", *arguments)
    assert (message in notes, code, lines) == (True, 1, [])


def test_a_row_is_measured_with_its_peer(verb: Verb, tmp_path: Path) -> None:
    files = ("--json", tmp_path / "one.json", "--plot", tmp_path / "one.png")
    lines, notes, code = verb("bench", "--quick", "--rounds", "2", "--threads", "1", "--only", "cpu-train-demo", *files)
    assert code == 0
    assert "cpu-train-demo: 512 tokens" in notes
    assert "× nn.Transformer (" in "\n".join(lines)
    assert "threads 1, sizes tiny, so that the numbers mean nothing" in " ".join(lines)
    [row] = json.loads((tmp_path / "one.json").read_text(encoding="utf8"))["rows"]
    [[ours, peer]] = row["cases"]
    assert (ours["who"], peer["who"], len(ours["rounds"]), row["missing"]) == (OURS, "nn.Transformer", 2, [])
    assert ours["units"] == peer["units"] > 0  # both counted the targets of the same batches
    assert (tmp_path / "one.png").read_bytes().startswith(b"\x89PNG")


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Tiny sizes; without a GPU, its rows on a CPU."""
    gpu = "cuda" if torch.cuda.is_available() else "cpu"
    return Workspace(tmp_path_factory.mktemp("bench"), quick=True, threads=1, gpu=gpu)


@pytest.mark.slow
@pytest.mark.parametrize("name", [row.name for row in ROWS])
def test_every_row_can_be_measured(name: str, workspace: Workspace) -> None:
    """Ours alone, in this process."""
    [row] = runner.choose_rows([name])
    prepared = PreparedCase(row.contestants(workspace)[OURS]())
    assert prepared.cases
    for case in prepared.cases:
        assert timed(prepared.get(case), cpu_time=False).units > 0


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(("name", "package"), [("generate", "transformers"), ("translate", "ctranslate2")])
def test_peers_with_the_same_weights_write_the_same(name: str, package: str, tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    pytest.importorskip(package)
    [row] = runner.choose_rows([name])
    contestants = row.contestants(Workspace(tmp_path, quick=True, threads=1, gpu="cpu"))
    chosen = {who: prepare for who, prepare in contestants.items() if who != "transformers, static cache"}
    for ours, *peers in Measured(row, contest(chosen, Setup(1, 1), print)).cases():
        assert peers
        shares = [same_texts(ours, peer) or 0 for peer in peers]
        assert min(shares) >= 0.98  # a few hypotheses are equally likely, up to rounding
