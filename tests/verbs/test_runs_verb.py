"""`clearhead runs` lists what a folder holds, without opening a model."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import clearhead
from command_line import TRAINED, Verb
from ordinary_user import as_ordinary_user, folder_for_all


def test_runs_are_listed_with_what_they_can_do(verb: Verb, tmp_path: Path, runs: dict[str, Path]) -> None:
    shutil.copytree(TRAINED, tmp_path / "old")
    shutil.copytree(runs["masked"], tmp_path / "masked")
    shutil.copytree(TRAINED, tmp_path / "unfinished")
    (tmp_path / "unfinished" / "model.safetensors").unlink()
    shutil.copytree(TRAINED, tmp_path / "damaged")
    (tmp_path / "damaged" / "run.toml").write_text("[")
    (tmp_path / "no run").mkdir()
    lines, _, code = verb("runs", tmp_path, "--json")
    found = {Path(each["folder"]).name: each for each in map(json.loads, lines)}
    assert (code, [*found]) == (0, ["damaged", "masked", "old", "unfinished"])
    size = sum(p.numel() for p in clearhead.load(TRAINED).model.parameters())
    old = found["old"]
    assert (old["task"], old["parameters"], old["score"], old["step"]) == ("translation", size, "loss 2.485", 400)
    assert old["use"] == f"clearhead translate {tmp_path / 'old'}"
    assert old["bytes"] == sum(path.stat().st_size for path in (tmp_path / "old").iterdir())
    assert found["masked"]["use"].startswith("clearhead fill ")
    assert found["unfinished"]["use"] == f"clearhead train --resume {tmp_path / 'unfinished'}"
    assert "is not valid TOML" in found["damaged"]["use"]
    shown = "\n".join(verb("runs", tmp_path)[0])
    assert all(word in shown for word in ("translation", "loss 2.485", "400/400", f"{size:,}"))


def test_no_runs_are_a_sentence(verb: Verb, tmp_path: Path) -> None:
    assert verb("runs", tmp_path)[1:] == (
        f"clearhead: there is no run in {tmp_path}; `clearhead train RECIPE` creates one",
        1,
    )
    assert "is not a folder" in verb("runs", tmp_path / "nothing")[1]


def test_one_run_is_listed_by_its_own_folder(verb: Verb) -> None:
    [line], _, code = verb("runs", TRAINED, "--json")
    assert (Path(json.loads(line)["folder"]), code) == (TRAINED, 0)


def test_files_that_training_removes_meanwhile_are_not_counted(
    verb: Verb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = shutil.copytree(TRAINED, tmp_path / "run")
    rglob = Path.rglob
    monkeypatch.setattr(Path, "rglob", lambda path, pattern: [*rglob(path, pattern), run / "checkpoints" / ".gone"])
    assert verb("runs", tmp_path)[2] == 0


def test_what_may_not_be_read_is_listed_with_the_reason(verb: Verb) -> None:
    with folder_for_all() as folder:
        for name in ("good", "model.safetensors", "metrics.jsonl", "closed"):
            shutil.copytree(TRAINED, folder / name)
        for name in ("model.safetensors", "metrics.jsonl"):
            (folder / name / name).chmod(0)
        (folder / "closed").chmod(0)
        with as_ordinary_user():
            lines, _, code = verb("runs", folder, "--json")
        (folder / "closed").chmod(0o755)
    found = {Path(each["folder"]).name: each["use"] for each in map(json.loads, lines)}
    assert (code, [*found]) == (0, ["closed", "good", "metrics.jsonl", "model.safetensors"])
    for name in ("model.safetensors", "metrics.jsonl"):
        assert found[name] == f"{folder / name / name} cannot be read: Permission denied"
    assert found["closed"] == f"{folder / 'closed' / 'run.toml'} cannot be read: Permission denied"
    assert found["good"] == f"clearhead translate {folder / 'good'}"
