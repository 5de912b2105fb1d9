"""Plots of runs and schedules, in the terminal and as images."""

from __future__ import annotations

from pathlib import Path

import pytest

from clearhead.config import Recipe, TrainConfig, UserError
from clearhead.train.watching.plot import plot_runs, plot_schedule, read_history, smoothed
from clearhead.verbs.plot import plot
from watched_runs import metrics_of


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
    assert history.train["loss"] == [line["loss"] for line in metrics_of(watched, "train")]
    assert history.valid["step"] == [4, 8, 12]


def test_plots_refuse_what_they_cannot_read(watched: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"nothing to plot: it has no metrics\.jsonl"):
        plot_runs([tmp_path], None)
    with pytest.raises(UserError, match=r"english-french: nothing to plot: it has no metrics\.jsonl"):
        plot(Path("english-french"))
    with pytest.raises(UserError, match=r"nothing': there is no such folder; known runs: .*"):
        plot_runs([watched.parent / "nothing"], None)
    with pytest.raises(UserError, match=r"must end with \.png"):
        plot_runs([watched], tmp_path / "curves.bmp")
    with pytest.raises(UserError, match=r"--out .* there is no folder .*nowhere; create it first"):
        plot_runs([watched], tmp_path / "nowhere" / "curves.png")
    (tmp_path / "metrics.jsonl").write_text("[]\n", encoding="utf8")
    with pytest.raises(UserError, match="is damaged"):
        plot_runs([tmp_path], None)


@pytest.mark.parametrize("wrong", ["NaN", "-Infinity", "1e999", "9" * 400, "1.7e308", "null", '"high"', "[1]"])
@pytest.mark.parametrize("kind", ["train", "valid"])
def test_values_that_are_no_finite_numbers_are_left_out(watched: Path, tmp_path: Path, wrong: str, kind: str) -> None:
    damaged = f'{{"kind": "{kind}", "step": 13, "loss": {wrong}, "rate": 0.1, "norm": 1.0}}\n'
    (tmp_path / "metrics.jsonl").write_text((watched / "metrics.jsonl").read_text(encoding="utf8") + damaged)
    assert read_history(tmp_path)[1:] == read_history(watched)[1:]
    plot_runs([tmp_path], None)
    (tmp_path / "metrics.jsonl").write_text(damaged)
    with pytest.raises(UserError, match="has no steps with finite values to show yet"):
        plot_runs([tmp_path], None)


def test_smoothing_keeps_a_constant_and_has_no_jump_at_the_start() -> None:
    assert smoothed([3.0] * 400) == pytest.approx([3.0] * 400)
    assert smoothed([8.0, *[2.0] * 999])[0] == 8.0


def test_a_schedule_is_plotted_from_end_to_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe = Recipe(train=TrainConfig(steps=500, warmup=50, learning_rate=0.004, schedule="linear"))
    plot_schedule(recipe, None)
    shown = capsys.readouterr().out
    for words in ("learning rate, linear", "0.004 │", "500"):
        assert words in shown
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'clearhead[watch]'")
    plot_schedule(recipe, tmp_path / "rate.svg")
    assert (tmp_path / "rate.svg").stat().st_size > 1000
