"""Exported ONNX programs: the same numbers at other sizes, the same translations without torch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import clearhead
from clearhead.config import Family, UserError
from clearhead.decode.translate import SearchSettings, translate
from clearhead.exchange import onnx
from clearhead.exchange.programs import Program, programs_of, settings_of
from clearhead.exchange.targets import export_run
from clearhead.runs import Run, open_run
from command_line import Verb
from program_inputs import SIZES, random_inputs
from saved_runs import save
from tiny_runs import SENTENCES, TEXT, tiny_run

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "translate_onnx.py"
onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: pip install 'clearhead[onnx]'")


def session(path: Path) -> Any:
    return onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])


def test_sentence_vectors_are_those_of_embed(tmp_path: Path, verb: Verb) -> None:
    run = save(tiny_run("encoder-only", head="embedding", position="learned", layers=1), tmp_path / "run")
    told = f"{tmp_path / 'exported'}: model.onnx, settings.json, tokenizer.json\n"
    assert verb("export", run, tmp_path / "exported", "--to", "onnx") == ([], told, 0)
    program = session(tmp_path / "exported" / "model.onnx")
    assert [(each.name, each.shape) for each in program.get_inputs()] == [
        ("ids", ["batch", "length"]),
        ("real", ["batch", "length"]),
    ]
    loaded = clearhead.load(run)
    tokenizer = loaded.run.tokenizers.target
    for text in SENTENCES:
        ids = np.array([[tokenizer.start, *tokenizer.encode(text), tokenizer.end]])
        [vector] = program.run(["vector"], {"ids": ids, "real": np.ones_like(ids, dtype=bool)})
        np.testing.assert_allclose(vector[0], loaded.embed(text).numpy(), atol=1e-5)


def translations(folder: Path, *texts: str) -> list[str]:
    """What the example prints, in a process that cannot import torch or clearhead."""
    code = "import runpy, sys; sys.modules |= {'torch': None, 'clearhead': None}; sys.argv = sys.argv[1:]; "
    code += "runpy.run_path(sys.argv[0], run_name='__main__')"
    command = [sys.executable, "-c", code, EXAMPLE, folder, *texts]
    done = subprocess.run(command, input="", capture_output=True, text=True, check=True, timeout=100)
    return done.stdout.splitlines()


PRE_NORM = {"position": "learned", "norm_order": "pre", "kv_heads": 2, "layers": 1}


@pytest.fixture(scope="module", params=[{"position": "rotary"}, PRE_NORM], ids=["rotary", "pre-norm"])
def exported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Path]:
    """A translator, and the folder it was exported into."""
    folder = tmp_path_factory.mktemp("onnx")
    run = open_run(save(tiny_run(**request.param), folder / "run"))
    export_run(run.folder, folder / "exported", "onnx")
    return run, folder / "exported"


@pytest.mark.slow
def test_the_example_translates_as_greedy_search_does(exported: tuple[Run, Path]) -> None:
    run, folder = exported
    texts = [*SENTENCES, "a <end> cat", "x"]
    greedy = [best.text for best, *_ in translate(run, texts, SearchSettings(beam=1))]
    assert translations(folder) == []  # an empty stdin
    assert translations(folder, *texts) == "".join(f"{text}\n" for text in greedy).splitlines()  # each may have several


@torch.no_grad()
def compare(program: Program, folder: Path) -> None:
    """Compare a program that was written with its module, at sizes that it was not recorded with."""
    written = session(folder / f"{program.name}.onnx")
    for sizes in SIZES:
        inputs = random_inputs(program, sizes)
        expected = program.module(**inputs)
        found = written.run(program.outputs, {name: tensor.numpy() for name, tensor in inputs.items()})
        for ours, theirs in zip(expected if isinstance(expected, tuple) else [expected], found, strict=True):
            np.testing.assert_allclose(theirs, ours.numpy(), atol=1e-4, rtol=1e-4)


@pytest.mark.slow
def test_the_programs_of_a_translator_equal_the_model_at_other_sizes(exported: tuple[Run, Path]) -> None:
    run, folder = exported
    for program in programs_of(run.model):
        compare(program, folder)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "settings"),
    [
        (
            "decoder-only",
            {"layers": 1, "norm": "rms", "activation": "swiglu", "position": "rotary", "kv_heads": 2, "window": 4},
        ),
        ("encoder-only", {"layers": 1}),
        ("encoder-only", {"layers": 1, "head": "classes", "position": "learned", "segments": 2}),
    ],
)
def test_programs_equal_the_model_at_other_sizes(family: Family, settings: dict[str, Any], tmp_path: Path) -> None:
    [program] = programs_of(tiny_run(family, **settings).model)
    onnx.write_float32(program, tmp_path)
    compare(program, tmp_path)


@pytest.mark.slow
def test_int8_is_smaller_and_close(tmp_path: Path, verb: Verb) -> None:
    folder = save(tiny_run("encoder-only", d_model=64, d_ff=1024, layers=1), tmp_path / "run")
    _, told, code = verb("export", folder, tmp_path / "int8", "--to", "onnx-int8")
    assert ("quantised to int8" in told, code) == (True, 0)
    program = tmp_path / "int8" / "model.onnx"
    assert program.stat().st_size < (folder / "model.safetensors").stat().st_size / 2
    run = open_run(folder)
    ids = torch.tensor([run.tokenizers.target.encode(TEXT)])
    with torch.no_grad():
        exact = run.model(ids).numpy()
    [rounded] = session(program).run(None, {"ids": ids.numpy(), "real": np.ones(ids.shape, dtype=bool)})
    assert np.abs(exact - rounded).max() > 1e-4 * np.abs(exact).max()
    assert np.abs(exact - rounded).max() < 0.1 * np.abs(exact).max()


@pytest.mark.slow
def test_int8_reads_a_table_that_embeddings_and_logits_share(tmp_path: Path) -> None:
    [program] = programs_of(tiny_run("decoder-only", d_model=64, layers=1, tied="output").model)
    onnx.write_int8(program, tmp_path)
    inputs = random_inputs(program, SIZES[0])
    with torch.no_grad():
        exact = program.module(**inputs)[0].numpy()
    rounded = session(tmp_path / "decoder.onnx").run(
        ["logits"], {name: tensor.numpy() for name, tensor in inputs.items()}
    )[0]
    assert np.abs(exact - rounded).max() < 0.1 * np.abs(exact).max()


def test_the_settings_have_what_a_user_of_the_programs_needs() -> None:
    assert settings_of(tiny_run("encoder-only", head="classes"))["labels"] == ["bad", "good", "so so"]
    run = tiny_run(position="learned", max_length=40)
    settings = settings_of(run)
    assert (settings["source_end"], settings["start"]) == (run.tokenizers.source.end, run.tokenizers.target.start)
    assert settings["max_tokens"] == 39


def test_missing_packages_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx, "PACKAGES", ("onnx", "no_such_package"))
    with pytest.raises(UserError, match=r"needs no_such_package: pip install 'clearhead\[onnx\]'"):
        export_run(tmp_path / "run", tmp_path / "exported", "onnx")
