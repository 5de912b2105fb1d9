"""Programs of a run: they compute what the model computes, and so do the files of torch, at other sizes too."""

from __future__ import annotations

import resource
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from clearhead.config import Family, UserError
from clearhead.exchange.programs import Program, programs_of
from clearhead.exchange.targets import Target, export_run
from clearhead.exchange.torch_programs import write_compiled, write_recorded, write_traced
from clearhead.model import DecoderOnly, EncoderDecoder
from command_line import Verb
from forked import PROCESSES
from patience import PATIENCE
from program_inputs import SIZES, random_inputs
from saved_runs import save
from tiny_runs import tiny_run

MODERN = {"norm": "rms", "activation": "swiglu", "position": "rotary", "kv_heads": 2}
RUNS: list[tuple[Family, dict[str, Any]]] = [
    ("encoder-decoder", {}),
    ("decoder-only", MODERN | {"window": 4}),
    ("encoder-only", {"head": "embedding", "position": "learned"}),
]


@pytest.mark.parametrize("settings", [{"position": "learned"}, MODERN, MODERN | {"window": 3}])
@torch.no_grad()
def test_prompts_of_different_lengths_are_read_as_the_model_reads_them(settings: dict[str, Any]) -> None:
    model = tiny_run("decoder-only", **settings).model
    assert isinstance(model, DecoderOnly)
    [program] = programs_of(model)
    ids = torch.randint(90, (2, 9))
    padding = torch.tensor([0, 4])
    real = torch.arange(6) >= padding[:, None]
    expected, state = model.start(ids[:, :6], real)
    empty = program.inputs["keys"][:, :, :, :0]
    logits, keys, values = program.module(ids[:, :6], padding, empty, empty)
    torch.testing.assert_close(logits, expected)
    for column in (6, 7, 8):
        new = ids[:, column : column + 1]
        logits, keys, values = program.module(new, padding, keys, values)
        torch.testing.assert_close(logits, model.step(new, state))


@torch.no_grad()
def test_a_translator_steps_as_the_model_does() -> None:
    model = tiny_run(position="rotary", kv_heads=2).model
    assert isinstance(model, EncoderDecoder)
    encoder, decoder = programs_of(model)
    source = torch.randint(90, (2, 7))
    real = torch.arange(7) < torch.tensor([7, 4])[:, None]
    ids = torch.randint(90, (2, 4))
    expected, state = model.start(source, ids[:, :3], real)
    empty = decoder.inputs["keys"][:, :, :, :0]
    memory = [real, *encoder.module(source, real)]
    none = torch.zeros(2, dtype=torch.long)
    logits, keys, values = decoder.module(ids[:, :3], none, empty, empty, *memory)
    torch.testing.assert_close(logits, expected)
    logits, _, _ = decoder.module(ids[:, 3:], none, keys, values, *memory)
    torch.testing.assert_close(logits, model.step(ids[:, 3:], state))


@torch.no_grad()
def compare(program: Program, loaded: Callable[..., Any]) -> None:
    """Compare a program that was written and loaded with its module, at sizes that it was not recorded with."""
    for sizes in SIZES:
        inputs = random_inputs(program, sizes)
        expected = program.module(**inputs)
        found = loaded(**inputs)
        torch.testing.assert_close(
            [found] if isinstance(found, Tensor) else list(found),
            [expected] if isinstance(expected, Tensor) else list(expected),
            atol=1e-4,
            rtol=1e-4,
        )


@pytest.mark.parametrize(("family", "settings"), RUNS)
def test_torchscript_is_for_all_sizes(family: Family, settings: dict[str, Any], tmp_path: Path) -> None:
    for program in programs_of(tiny_run(family, **settings).model):
        write_traced(program, tmp_path)
        compare(program, torch.jit.load(tmp_path / f"{program.name}.pt"))


@pytest.mark.slow
@pytest.mark.parametrize(("family", "settings"), RUNS)
def test_recorded_programs_are_for_all_sizes(family: Family, settings: dict[str, Any], tmp_path: Path) -> None:
    for program in programs_of(tiny_run(family, **settings).model):
        write_recorded(program, tmp_path)
        compare(program, torch.export.load(tmp_path / f"{program.name}.pt2").module())


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(900)  # compiling takes minutes on a busy machine
@pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed: apt install g++")
def test_compiled_programs_are_for_all_sizes(tmp_path: Path) -> None:
    [program] = programs_of(tiny_run("decoder-only", **MODERN, layers=1).model)
    write_compiled(program, tmp_path)
    compare(program, torch._inductor.aoti_load_package(str(tmp_path / "decoder.pt2")))


def test_the_command_line_says_that_torchscript_is_deprecated(tmp_path: Path, verb: Verb) -> None:
    run = save(tiny_run(), tmp_path / "run")
    _, told, code = verb("export", run, tmp_path / "exported", "--to", "torchscript")
    assert ("deprecated" in told, code) == (True, 0)
    written = {path.name for path in (tmp_path / "exported").iterdir()}
    assert written == {"encoder.pt", "decoder.pt", "settings.json", "tokenizer.source.json", "tokenizer.target.json"}
    assert "is not empty" in verb("export", run, tmp_path / "exported", "--to", "torch")[1]


def test_a_compiler_is_needed_for_machine_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match=r"needs a C\+\+ compiler: install g\+\+, or use --to torch"):
        export_run(tmp_path / "run", tmp_path / "exported", "aotinductor")


@pytest.mark.parametrize("target", ["torch", "torchscript", "huggingface", "compact"])
def test_a_full_disk_is_an_error_and_leaves_no_folder(target: Target, tmp_path: Path) -> None:
    """In a process of its own, which torch would abort."""
    (tmp_path / "to").mkdir()
    arguments = (save(tiny_run(), tmp_path / "run"), tmp_path / "to" / "exported", target, tmp_path / "said")
    process = PROCESSES.Process(target=export_to_a_full_disk, args=arguments)
    process.start()
    process.join(PATIENCE)
    assert process.exitcode == 0
    assert (tmp_path / "said").read_text().endswith(": the disk is full")
    assert list((tmp_path / "to").iterdir()) == []


def export_to_a_full_disk(run: Path, folder: Path, target: Target, said: Path) -> None:
    """Export where each file may have 20,000 bytes; write down what is said to the user."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
    with pytest.raises(UserError) as error:
        export_run(run, folder, target)
    said.write_text(str(error.value))
