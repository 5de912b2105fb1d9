"""The command line of all verbs: help, mistakes, the wrong verb."""

from __future__ import annotations

import errno
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from clearhead.cli import VERBS, app
from clearhead.recipes import recipe_names
from command_line import TRAINED, Verb, start
from ordinary_user import as_ordinary_user, folder_for_all
from patience import PATIENCE
from saved_runs import save
from tiny_runs import tiny_run


@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        (("no/where", "a"), "there is no such folder", 1),
        ((TRAINED, "a", "--beam", 0), "beam = 0: must be at least 1", 1),
        ((TRAINED, "a", "--temperature", 0.5), "are for sampling: add --sample", 1),
        ((TRAINED, "a", "--seed", 1), "are for sampling: add --sample", 1),
        ((TRAINED, "a", "--sample", "--temperature", 0), "temperature = 0.0: must be above 0", 1),
        ((TRAINED, "a", "--sample", "--temperature", "1e-300"), "temperature = 1e-300: must be above 0", 1),
        ((TRAINED, "a", "--sample", "--seed", 10**20 - 1), "seed = 99999999999999999999: must be between", 1),
        (
            (TRAINED, "a", "--length-penalty", "1e308"),
            "length_penalty = 1e+308: must not be negative, and at most 10; 0 ranks",
            1,
        ),
        ((TRAINED, "a", "--baem", 4), "Did you mean --beam?", 2),
        ((TRAINED, "a", "--beam", "four"), "four", 2),
        ((TRAINED, "-5 degrees"), 'A text that begins with a dash goes after --: translate RUN -- "-5 degrees"', 2),
        ((TRAINED, "-5 degrees"), "Unknown option: -5 degrees", 2),
    ],
)
def test_mistakes_get_a_sentence_and_an_exit_code(
    verb: Verb, arguments: tuple[object, ...], message: str, code: int
) -> None:
    lines, notes, stopped = verb("translate", *arguments)
    assert (message in notes, stopped, lines) == (True, code, [])


@pytest.mark.parametrize(
    ("option", "setting"),
    [
        ("--train.steps=3", "train.steps=500"),
        ("--steps", "train.steps"),
        ("--max-length", "model.max_length or data.max_length"),
    ],
)
def test_a_setting_with_dashes_is_told_how_to_be_written(verb: Verb, option: str, setting: str) -> None:
    _, notes, code = verb("train", "phrasebook", option)
    assert (f"Settings are written without dashes: {setting}" in notes, code) == (True, 2)


@pytest.mark.parametrize(
    ("arguments", "remedy"),
    [
        (("train", "reviews", "--lr", "1e-3"), "Write train.learning_rate=1e-3"),
        (("train", "reviews", "--train.lr=1e-3"), "Write train.learning_rate=1e-3"),
        (("train", "reviews", "--epochs", 3), "Write train.steps=1000 (training is counted in steps"),
        (("train", "reviews", "--batch-size", 8), "Write data.batch_tokens=4096 (a batch is counted in tokens"),
        (("train", "--config", "x.toml"), "clearhead train my.toml"),
        (("train", "reviews", "--output_dir", "x"), "Write --run FOLDER"),
        (("generate", "--model", TRAINED, "--prompt", "a"), 'clearhead VERB RUN "a text"'),
        (("translate", TRAINED, "--num_beams", 3, "a"), "Write --beam 4"),
        (("generate", TRAINED, "--max_new_tokens", 3, "a"), "Write --tokens 100"),
    ],
)
def test_options_of_other_tools_are_told_how_to_be_written(
    verb: Verb, arguments: tuple[object, ...], remedy: str
) -> None:
    lines, notes, code = verb(*arguments)
    assert (remedy in unwrapped(notes), lines, code) == (True, [], 2), notes


def test_a_verb_without_settings_is_not_told_to_write_them(verb: Verb) -> None:
    _, notes, code = verb("translate", TRAINED, "--batch-size", 3, "a")
    assert ("Unknown option: --batch-size" in notes, "data.batch_tokens" in notes, code) == (True, False, 2)


@pytest.mark.parametrize("words", ["foo", "trian reviews", "help foo"])
def test_an_unknown_command_lists_all(verb: Verb, words: str) -> None:
    lines, notes, code = verb(*words.split())
    said = unwrapped(notes)
    assert (f"Unknown command '{words.split()[-1 if 'foo' in words else 0]}'" in said, lines, code) == (True, [], 2)
    assert f"Commands: {', '.join(VERBS)}" in said
    assert ("Did you mean 'train'?" in said) == ("trian" in words)


@pytest.mark.parametrize(
    ("words", "options"), [("version", "--version"), ("help", "--help"), ("help train", "train --help")]
)
def test_help_and_version_need_no_dashes(verb: Verb, words: str, options: str) -> None:
    assert verb(*words.split()) == verb(*options.split())


def unwrapped(notes: str) -> str:
    """What a panel says, on one line."""
    return " ".join(notes.translate(str.maketrans("", "", "╭╮╰╯│─")).split())


@pytest.mark.skipif(not shutil.which("bash"), reason="there is no bash")
def test_a_shell_completes_verbs_and_options(verb: Verb) -> None:
    script, _, code = verb("completion", "bash")
    assert code == 0
    for typed, expected in (("tr", "train translate"), ("translate --bea", "--beam"), ("export --to gg", "gguf")):
        line = f"COMP_WORDS=(clearhead {typed}); COMP_CWORD={len(typed.split())}; _clearhead"
        said = subprocess.run(
            ["bash", "-c", "\n".join([*script, line, 'echo "${COMPREPLY[@]}"'])],
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
        assert (said.stdout.strip(), said.stderr) == (expected, "")


def test_a_row_without_its_option_is_told_how_to_be_chosen(verb: Verb) -> None:
    _, notes, code = verb("bench", "start")
    assert ("Rows are chosen with --only: clearhead bench --only start" in notes, code) == (True, 2)


def test_a_setting_without_its_section_gets_it_suggested(verb: Verb) -> None:
    assert verb("train", "phrasebook", "steps=3")[1] == "clearhead: unknown setting steps; did you mean train.steps?"


def test_train_without_a_recipe_lists_all(verb: Verb) -> None:
    lines, _, code = verb("train")
    found = {line.split()[0]: line for line in lines if line and not line.startswith(" ")}
    assert (set(recipe_names()) - found.keys(), code) == (set(), 0)
    assert "nothing" in found["phrasebook"]
    assert "data/sst2" in found["sst2"]
    assert "runs/books" in found["instructions-from-books"]
    needy = [" nothing " not in line for name, line in found.items() if name in recipe_names()]
    assert needy == sorted(needy)  # first those that need nothing
    for option in (("--resume",), ("--out", "schedule.png")):
        _, notes, code = verb("train", *option)
        assert ("which recipe?" in notes, code) == (True, 1)


def test_an_empty_name_is_no_recipe(verb: Verb) -> None:
    """Such as an unset variable of a script: it must not pass for a training."""
    lines, notes, code = verb("train", "", "train.steps=5")
    assert ("recipe '': no recipe of this name" in notes, code, lines) == (True, 1, [])


@pytest.mark.parametrize(
    ("name", "option"), [("generate", "--repetition-penalty"), ("generate", "--top-p"), ("chat", "--temperature")]
)
def test_greedy_text_is_not_drawn(verb: Verb, name: str, option: str) -> None:
    lines, notes, code = verb(name, TRAINED, "--greedy", option, 0.5)
    assert ("--greedy takes the most likely token" in notes, code, lines) == (True, 1, [])


@pytest.mark.parametrize("name", [name for name in app if not name.startswith("-")])
def test_help_explains_every_option(name: str) -> None:
    arguments = app[name].assemble_argument_collection(parse_docstring=True)
    assert arguments
    options = [argument for argument in arguments if not argument.children]  # else a group of them, which is flattened
    assert [option.name for option in options if not option.parameter.help] == []


@pytest.mark.parametrize("name", ["translate", "generate", "chat", "classify", "embed"])
def test_the_wrong_verb_names_the_right_one(verb: Verb, runs: dict[str, Path], name: str) -> None:
    task, right = ("language", "generate") if name == "translate" else ("translation", "translate")
    _, notes, code = verb(name, runs[task], *([] if name == "chat" else ["a"]))
    assert (f"was trained for {task}" in notes, f"use it with `clearhead {right}`" in notes, code) == (True, True, 1)


@pytest.mark.parametrize("name", ["", "facts.json", "tokenizer.json", "model.safetensors", ".."])
def test_a_file_that_may_not_be_read_is_named(verb: Verb, name: str) -> None:
    with folder_for_all() as folder:
        save(tiny_run(), folder / "run")
        (folder / "run" / name).chmod(0)
        with as_ordinary_user():
            _, notes, code = verb("translate", folder / "run", "a cat")
        (folder / "run" / name).chmod(0o755)
    path = folder / "run" if name == ".." else folder / "run" / name
    assert (str(path) in notes, "Permission denied" in notes, code) == (True, True, 1), notes
    assert "train again" not in notes


def test_a_folder_in_the_place_of_a_file_is_named(verb: Verb, tmp_path: Path) -> None:
    save(tiny_run(), tmp_path)
    (tmp_path / "facts.json").unlink()
    (tmp_path / "facts.json").mkdir()
    _, notes, code = verb("translate", tmp_path, "a cat")
    assert (notes, code) == (f"clearhead: {tmp_path / 'facts.json'}: Is a directory", 1)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_a_full_disk_and_a_damaged_run_are_told_in_a_sentence(tmp_path: Path, verb: Verb) -> None:
    with open("/dev/full", "wb") as full:
        process = start("translate", TRAINED, "a cat", stdout=full, stderr=subprocess.PIPE)
        _, errors = process.communicate(timeout=100)
    assert (errors, process.returncode) == (b"clearhead: cannot write the results: No space left on device\n", 1)
    folder = save(tiny_run(), tmp_path)
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    _, notes, code = verb("translate", folder, "a cat")
    assert ("the weights cannot be read" in notes, "take them from a copy" in notes, code) == (
        True,
        True,
        1,
    )


def test_a_working_folder_that_is_gone_is_an_error_in_a_sentence(tmp_path: Path) -> None:
    """Where torch ends the process with `Intel oneMKL FATAL ERROR`."""
    command = f"mkdir {tmp_path}/gone; cd {tmp_path}/gone; rmdir {tmp_path}/gone; {sys.executable} -m clearhead walk a"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=PATIENCE)
    said = "clearhead: the current folder has been deleted; change to one that exists: cd FOLDER\n"
    assert (done.stdout, done.stderr, done.returncode) == ("", said, 1)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.EMFILE, "Too many open files"), "Too many open files; allow more in this shell: ulimit -n 1024"),
        (OSError(errno.ENOSPC, "No space left on device", "a/b"), "a/b: the disk is full"),
        (OSError(errno.EACCES, "Permission denied", "a/b"), "a/b: Permission denied; change its permissions, or"),
        (ConnectionResetError("the line is dead"), "the line is dead"),
        (MemoryError(), "there is not enough memory for this"),
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"), "there is not enough memory for this"),
        (RuntimeError("can't start new thread"), "there is not enough memory for this"),
    ],
)
def test_what_the_system_refuses_is_told_in_a_sentence(
    verb: Verb, error: Exception, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("clearhead.cli.app", fail)
    _, notes, code = verb("size", "gpt2")
    assert (notes.startswith(f"clearhead: {said}"), code) == (True, 1), notes


def test_another_error_of_torch_is_not_hidden(verb: Verb, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("a mistake of ours")

    monkeypatch.setattr("clearhead.cli.app", fail)
    with pytest.raises(RuntimeError, match="a mistake of ours"):
        verb("size", "gpt2")
