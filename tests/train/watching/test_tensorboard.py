"""TensorBoard files: curves, samples and attention."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

from clearhead.config import DataConfig, Recipe, TrainConfig, UserError
from clearhead.data.batches import Batch
from clearhead.train.run import train
from tiny_models import random_ids
from watched_runs import log_of, metrics_of


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
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'clearhead[watch]'")
    from clearhead.train.watching.dashboards import attention_weights, draw_attention
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
    with pytest.raises(UserError, match=r"train.tensorboard = true needs"):
        train(Recipe(data=DataConfig(corpus="phrasebook"), train=TrainConfig(tensorboard=True)), tmp_path / "run")
    assert not (tmp_path / "run").exists()
