"""Training survives or explains: wild settings, damaged and hostile files, a full disk, a folder that disappears."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from clearhead import device
from clearhead.config import Recipe, TokenizerConfig, UserError
from clearhead.evaluate.scores import evaluate
from clearhead.files import read_metrics
from clearhead.recipes import write_recipe
from clearhead.runs import open_run
from clearhead.terminal.program import program_name
from clearhead.text.tokenizer import Tokenizer, load_tokenizer, train_tokenizer
from clearhead.text.tokenizer_formats import repeats_group
from clearhead.train import loop
from clearhead.train.checkpoint import checkpoint_folders, load_checkpoint
from clearhead.train.run import train
from clearhead.train.watching import log as log_module
from command_line import Verb
from ordinary_user import as_ordinary_user, folder_for_all

# --- settings ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("train.seed=99999999999999999999", "train.seed = 99999999999999999999: must lie between"),
        ("data.seed=99999999999999999999", "data.seed = 99999999999999999999: must lie between"),
        ("train.learning_rate=1e300", "train.learning_rate = 1e+300: must be above 0, and at most 1e30"),
        ("model.d_model=100000000000", "of memory, and"),
    ],
)
def test_wild_settings_get_a_sentence(verb: Verb, recipe: Recipe, tmp_path: Path, setting: str, message: str) -> None:
    write_recipe(recipe, tmp_path / "tiny.toml")
    _, notes, code = verb("train", tmp_path / "tiny.toml", setting, "--run", tmp_path / "run")
    assert (message in notes, code) == (True, 1), notes
    assert not (tmp_path / "run" / "run.toml").exists()


def test_a_model_that_is_too_large_for_the_memory_is_refused_with_both_numbers(
    recipe: Recipe, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device, "available_memory", lambda _: 10_000)
    with pytest.raises(UserError, match=r"needs at least 0\.0 GB of memory, and 0\.0 GB are available on cpu"):
        train(recipe, tmp_path / "other", quiet=True)
    with pytest.raises(UserError, match=r"needs at least 0\.0 GB of memory, and 0\.0 GB are available on cpu"):
        open_run(run)


def test_the_limit_of_a_container_counts(tmp_path: Path) -> None:
    assert device.memory_of_container(tmp_path) > 1 << 60
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.current").write_text("900\n")
    (tmp_path / "memory.stat").write_text("anon 500\ninactive_file 300\nactive_file 50\n")
    assert device.memory_of_container(tmp_path) == 450


def test_the_loss_that_is_not_finite_names_the_rate_to_resume_with(recipe: Recipe, tmp_path: Path) -> None:
    wild = replace(
        recipe, train=replace(recipe.train, steps=20, evaluate_every=0, learning_rate=1e30, warmup=0, clip=0.0)
    )
    with pytest.raises(UserError, match=r"--resume: train\.learning_rate=3\.3e\+29"):
        train(wild, tmp_path, quiet=True)
    train(replace(recipe, train=replace(wild.train, learning_rate=1e-3)), tmp_path, resume=True, quiet=True)


# --- weights of another run -------------------------------------------------------------------------------------------


def test_the_log_says_which_weights_were_taken(
    recipe: Recipe, trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = replace(recipe, model=replace(recipe.model, d_ff=64), train=replace(recipe.train, init=str(trained)))
    train(other, tmp_path / "other")
    said = capsys.readouterr().err
    assert "train.init: " in said
    assert f"are those of {trained}, 6 stay random: encoder.blocks.0.feed_forward" in said
    train(replace(recipe, train=replace(recipe.train, init=str(trained))), tmp_path / "same")
    assert f"are those of {trained}\n" in capsys.readouterr().err


def test_adapters_of_random_weights_are_noticed(
    recipe: Recipe, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train(replace(recipe, train=replace(recipe.train, lora=2)), tmp_path)
    assert "train.lora without train.init: the weights that it adapts are random" in capsys.readouterr().err


def test_the_embeddings_of_another_tokenizer_are_refused(recipe: Recipe, trained: Path, tmp_path: Path) -> None:
    begun = replace(recipe, data=replace(recipe.data, seed=5), train=replace(recipe.train, init=str(trained)))
    with pytest.raises(UserError, match=r"has another tokenizer.*tokenizer\.path="):
        train(begun, tmp_path / "other", quiet=True)
    own = replace(begun, tokenizer=TokenizerConfig(path=str(trained)))
    train(own, tmp_path / "other", quiet=True)


# --- files ------------------------------------------------------------------------------------------------------------


def edit_json(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.mark.parametrize("step", ["abc", 3, None, [1]])
def test_an_edited_manifest_is_refused(recipe: Recipe, run: Path, step: object) -> None:
    manifest = checkpoint_folders(run)[-1] / "manifest.json"
    edit_json(manifest, step=step)
    with pytest.raises(UserError, match=r"is damaged .*remove the folder to continue from step-00000002"):
        train(recipe, run, resume=True, quiet=True)
    earlier = {name: value for name, value in json.loads(manifest.read_text()).items() if name != "hash"}
    manifest.write_text(json.dumps(earlier))  # as an earlier version wrote it
    with pytest.raises(UserError, match="is damaged"):
        load_checkpoint(manifest.parent)
    manifest.write_text(json.dumps({**earlier, "step": 4}))
    assert load_checkpoint(manifest.parent).step == 4


def test_edited_facts_of_a_checkpoint_are_refused(run: Path) -> None:
    manifest = checkpoint_folders(run)[-1] / "manifest.json"
    facts = json.loads(manifest.read_text())["facts"]
    edit_json(manifest, facts={**facts, "best": 0.0})
    with pytest.raises(UserError, match=r"is damaged \(manifest.json differs from what was written\)"):
        load_checkpoint(manifest.parent)


def test_damaged_lines_of_metrics_are_left_out(recipe: Recipe, run: Path) -> None:
    good = read_metrics(run)
    with (run / "metrics.jsonl").open("a") as file:
        file.write('[1,2]\n"a"\n7\n{"kind": "train", "step": "abc"}\n{"kind": "train", "step": null}\n')
    assert read_metrics(run) == good
    train(recipe, run, resume=True, quiet=True)


def test_a_folder_that_disappears_ends_the_training_with_a_sentence(
    recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train_step = loop.train_step

    def removing(*arguments: Any) -> None:
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
        train_step(*arguments)

    monkeypatch.setattr(loop, "train_step", removing)
    for snapshots in (0, 3):
        settings = replace(recipe.train, snapshots=snapshots)
        with pytest.raises(UserError, match="is gone: it was removed or renamed"):
            train(replace(recipe, train=settings), tmp_path / "run", quiet=True)
        assert not (tmp_path / "run").exists()


def test_a_folder_that_cannot_be_written_is_a_sentence(recipe: Recipe, trained: Path) -> None:
    with folder_for_all() as place:
        run = shutil.copytree(trained, place / "run")
        (run / ".lock").unlink()
        with (
            as_ordinary_user(),
            pytest.raises(UserError, match=r"cannot write into the run folder .*Permission denied"),
        ):
            train(recipe, run, resume=True, quiet=True)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_a_disk_that_is_full_for_metrics_is_a_sentence(
    recipe: Recipe, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_module, "open_metrics", lambda *_: Path("/dev/full").open("a"))  # noqa: SIM115
    with pytest.raises(UserError, match=r"cannot write metrics.jsonl: the disk is full; .*--resume"):
        train(replace(recipe, train=replace(recipe.train, steps=6)), run, resume=True, quiet=True)


# --- hostile run folders ----------------------------------------------------------------------------------------------


def replace_setting(name: str, value: str) -> Callable[[Path], None]:
    def change(run: Path) -> None:
        lines = (run / "run.toml").read_text().splitlines()
        changed = [f"{name} = {value}" if line.startswith(f"{name} = ") else line for line in lines]
        (run / "run.toml").write_text("\n".join(changed))

    return change


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (replace_setting("layers", "1000000000"), "they do not belong together"),
        (replace_setting("encoder_layers", "1000000000"), "they do not belong together"),
        (replace_setting("d_ff", "1000000000000"), "they do not belong together"),
        (lambda run: edit_json(run / "facts.json", longest=-5), "facts.json is damaged"),
        (lambda run: edit_json(run / "facts.json", tokenizers=[1]), "facts.json is damaged"),
    ],
)
def test_a_hostile_run_is_refused_before_anything_is_built(
    run: Path, damage: Callable[[Path], None], message: str
) -> None:
    damage(run)
    with pytest.raises(UserError, match=message):
        open_run(run)


@pytest.mark.parametrize(
    ("pattern", "hostile"),
    [
        (r"(a+)+$", True),
        (r"(?:a|aa)*b", True),
        (r"((x)){2,}", True),
        (r"(?:a|aa){1,99}$", True),
        (r"(?<=\w)▁(?=\w)", False),
        (r" ?[^(\s|[.,!?…。，、।۔،])]+", False),  # BLOOM
        (
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s+",
            False,
        ),  # GPT-4
        (r"\(+\)+", False),
    ],
)
def test_patterns_that_take_exponential_time_are_recognised(pattern: str, hostile: bool) -> None:
    assert repeats_group(pattern) == hostile


def test_a_tokenizer_with_a_regular_expression_bomb_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    train_tokenizer(TokenizerConfig(vocab=300), ["the red car"] * 20, progress=False).save(path)
    bomb = {"type": "Split", "pattern": {"Regex": r"(a+)+$"}, "behavior": "Isolated", "invert": False}
    edit_json(path, pre_tokenizer=bomb)
    with pytest.raises(UserError, match="repeats a group, which can take exponential time"):
        load_tokenizer(path)


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"normalizer": {"type": "Precompiled", "precompiled_charsmap": "/////w=="}}, "the tokenizer library fails"),
        (
            {"pre_tokenizer": {"type": "FixedLength", "length": 0}},
            "cannot encode the text: chunk size",
        ),
    ],
)
def test_a_file_that_makes_the_tokenizer_library_panic_is_one_sentence(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], part: dict[str, Any], message: str
) -> None:
    path = tmp_path / "tokenizer.json"
    train_tokenizer(TokenizerConfig(vocab=300), ["the red car"] * 20, progress=False).save(path)
    edit_json(path, **part)
    with pytest.raises(UserError, match=message):
        load_tokenizer(path)
    os.write(2, b"stderr is back")
    assert capfd.readouterr() == ("", "stderr is back")


def test_a_decoder_that_panics_is_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    train_tokenizer(TokenizerConfig(vocab=300), ["the red car"] * 20, progress=False).save(path)
    edit_json(path, decoder={"type": "Strip", "content": "a", "start": 9, "stop": 9})
    tokenizer = load_tokenizer(path)
    with pytest.raises(UserError, match="this tokenizer cannot decode the ids: index out of bounds"):
        tokenizer.decode(tokenizer.encode("a"))


def test_a_panic_of_the_tokenizer_library_is_a_sentence() -> None:
    class PanicException(BaseException):
        pass

    class Backend:
        def encode_batch_fast(self, texts: list[str], add_special_tokens: bool) -> None:
            raise PanicException("retry-limit-in-match over")

    tokenizer = object.__new__(Tokenizer)
    tokenizer.backend = Backend()
    with pytest.raises(UserError, match="cannot encode the text: retry-limit-in-match over"):
        tokenizer._ids(["a"])


# --- the log ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stderr", ["full", "closed", "pipe"])
def test_training_goes_on_without_its_log(recipe: Recipe, tmp_path: Path, stderr: str) -> None:
    write_recipe(recipe, tmp_path / "tiny.toml")
    run = tmp_path / "run"
    redirection = {"full": "2>/dev/full", "closed": "2>&-", "pipe": "2>&1 | head -1 >/dev/null; exit ${PIPESTATUS[0]}"}
    command = f"{sys.executable} -m clearhead train {tmp_path / 'tiny.toml'} --run {run} {redirection[stderr]}"
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(["bash", "-c", command], env=environment, capture_output=True, text=True, timeout=120)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    assert [row["step"] for row in read_metrics(run) if row["kind"] == "train"] == [1, 2, 3, 4]


def test_other_programs_on_the_cores_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device.os, "cpu_count", lambda: 4)
    monkeypatch.setattr(device.torch, "get_num_threads", lambda: 4)
    monkeypatch.setattr(device, "busy_cores", lambda _: 2.2)
    assert "1.8 of 4 are free" in device.busy_cores_warning()
    assert "OMP_NUM_THREADS=1 " in device.busy_cores_warning()
    monkeypatch.setattr(device, "busy_cores", lambda _: 0.1)
    assert device.busy_cores_warning() == ""
    monkeypatch.setattr(device.torch, "get_num_threads", lambda: 1)
    monkeypatch.setattr(device, "busy_cores", lambda _: 4.0)
    assert device.busy_cores_warning() == ""


def test_busy_cores_are_measured() -> None:
    assert 0 <= device.busy_cores(0.05) <= (os.cpu_count() or 1)


# --- the end, and no validation ---------------------------------------------------------------------------------------


def test_the_last_line_says_where_the_run_is_and_what_to_type_next(verb: Verb, recipe: Recipe, tmp_path: Path) -> None:
    write_recipe(recipe, tmp_path / "tiny.toml")
    _, notes, code = verb("train", tmp_path / "tiny.toml", "--run", tmp_path / "my run")
    assert code == 0
    folder = f"{tmp_path}/my run"
    assert notes.splitlines()[-1] == f"the run is in {folder}; next: {program_name()} translate '{folder}' \"a text\""


@pytest.fixture
def without_valid(recipe: Recipe, tmp_path: Path) -> Recipe:
    """A recipe for a folder that has a train file and nothing else."""
    (tmp_path / "data").mkdir()
    rows = "".join(f"the red car {n}\tla voiture rouge {n}\n" for n in range(60))
    (tmp_path / "data" / "train.tsv").write_text("en\tfr\n" + rows)
    data = replace(recipe.data, corpus="", path=str(tmp_path / "data"), source="en", target="fr")
    return replace(recipe, data=data)


def test_the_card_shows_only_commands_that_work_in_the_folder(
    without_valid: Recipe, recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    held_out = replace(without_valid.data, hold_out=0.2)
    relative = replace(held_out, path="data")
    cases = {"without": without_valid.data, "held": held_out, "relative": relative, "built in": recipe.data}
    for name, data in cases.items():
        train(replace(recipe, data=data), tmp_path / name, quiet=True)
        shown = "clearhead evaluate . --split valid" in (tmp_path / name / "README.md").read_text()
        assert shown == (name in ("held", "built in")), name
    monkeypatch.chdir("relative")
    with pytest.raises(UserError, match=r"called from another folder before, set data.path=PATH"):
        evaluate(open_run("."), "valid")


@pytest.mark.parametrize("average", ["none", "last"])
def test_training_needs_no_validation_data(
    without_valid: Recipe, tmp_path: Path, capsys: pytest.CaptureFixture[str], average: str
) -> None:
    run = tmp_path / "run"
    settings = replace(without_valid.train, average=average)
    train(replace(without_valid, train=settings), run)
    said = capsys.readouterr().err
    assert said.count("no split 'valid', so nothing is evaluated; data.hold_out=0.05") == 1
    assert "validation" not in said
    assert {row["kind"] for row in read_metrics(run)} == {"train"}
    assert open_run(run)
    train(replace(without_valid, train=replace(settings, steps=6)), run, resume=True, quiet=True)


@pytest.mark.parametrize(("setting", "value"), [("keep", "best"), ("patience", 2), ("best_by", "bleu")])
def test_what_needs_validation_data_says_so(without_valid: Recipe, tmp_path: Path, setting: str, value: Any) -> None:
    settings = replace(without_valid.train, **{setting: value})
    with pytest.raises(UserError, match=rf"train\.{setting} = .* needs validation data.*data\.hold_out=0\.05"):
        train(replace(without_valid, train=settings), tmp_path / "run", quiet=True)


def test_a_dry_run_needs_no_validation_data(verb: Verb, without_valid: Recipe, tmp_path: Path) -> None:
    write_recipe(without_valid, tmp_path / "tiny.toml")
    lines, notes, code = verb("train", tmp_path / "tiny.toml", "--dry-run")
    assert (code, any(line.startswith("time: ") for line in lines)) == (0, True), notes
