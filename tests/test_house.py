"""The house keeps its order: who may import whom, how long things may be, what the command line does without torch."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "clearhead"
MODULES = sorted(PACKAGE.rglob("*.py"))

# room -> what it may import: rooms of ours, and packages of others beyond the standard library
ROOMS: dict[str, tuple[str, str]] = {
    "config": ("", ""),
    "files": ("config", ""),
    "presets": ("config", ""),
    "recipes": ("config files presets", ""),
    "device": ("config", "torch"),
    "terminal": ("config terminal text", "rich torch"),
    "model": ("config model", "torch"),
    "text": ("config files terminal text", "torch numpy tokenizers rich"),
    "data": ("config corpora data files terminal text", "torch numpy zstandard datasets rich clearhead"),
    "corpora": ("config corpora data.examples text.dialogue", ""),
    "runs": ("config files model recipes text", "torch safetensors"),
    "decode": ("config data model runs text decode", "torch numpy"),
    "evaluate": (
        "config data decode evaluate files model recipes runs terminal text",
        "torch numpy sacrebleu rich matplotlib",
    ),
    "train": (
        "config data decode device evaluate files model recipes runs terminal text train",
        "torch numpy safetensors rich matplotlib clearhead",
    ),
    "glass": ("config data decode files glass model recipes runs terminal text", "torch numpy rich"),
    "library": ("config data decode evaluate glass runs text", "torch"),
    "verbs": (
        "config corpora data decode device evaluate files glass library presets recipes runs terminal text train verbs",
        "torch numpy rich",
    ),
    "cli": ("config", "cyclopts clearhead"),
    "__main__": ("cli", ""),
    "__init__": ("library", ""),
}
MAY_IMPORT = {
    room: {*(f"clearhead.{name}" for name in ours.split()), *theirs.split()} for room, (ours, theirs) in ROOMS.items()
}


def room_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else path.stem


def imports_of(path: Path) -> set[str]:
    """What a file imports, inside its functions too; the verbs of the command line may import what they like."""
    found, tree = set(), ast.parse(path.read_text())
    for node in tree.body if path.name == "cli.py" else ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    return {name for name in found if name.split(".")[0] not in sys.stdlib_module_names}


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_rooms_import_only_what_they_may(path: Path) -> None:
    allowed = MAY_IMPORT[room_of(path)]
    for name in imports_of(path):
        parents = {name.rsplit(".", n)[0] for n in range(name.count(".") + 1)} - {"clearhead"} | {name}
        assert parents & allowed, f"{path.relative_to(ROOT)} may not import {name}"


def test_the_model_can_be_read_in_one_sitting() -> None:
    lines = [line for path in (PACKAGE / "model").glob("*.py") for line in path.read_text().splitlines()]
    assert len([line for line in lines if line.strip()]) <= 800


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_functions_fit_on_a_screen(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef):
            arguments = node.args.posonlyargs + node.args.args
            count = len([a for a in arguments if a.arg not in ("self", "cls")])
            length = (node.end_lineno or 0) - node.lineno + 1
            assert count < 8, f"{path.name}: {node.name} takes {count} arguments"
            assert length <= 60, f"{path.name}: {node.name} has {length} lines"


def clearhead(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "clearhead", *arguments], capture_output=True, text=True, timeout=120)


def test_help_does_not_wait_for_torch() -> None:
    code = """import atexit, sys, clearhead.cli
atexit.register(lambda: print("torch" in sys.modules))
clearhead.cli.app(["--help"])"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "size" in result.stdout
    assert result.stdout.strip().endswith("False")


def test_size_shows_its_arithmetic() -> None:
    result = clearhead("size", "gpt2", "model.layers=24", "--batch", "8")
    assert result.returncode == 0, result.stderr
    assert "50,257 × 768" in result.stdout
    assert "209,494,272" in result.stdout  # 124,439,808 and twelve blocks more
    assert "training time" in result.stdout


def test_size_of_a_recipe_takes_its_tokenizers_vocabulary() -> None:
    result = clearhead("size", "phrasebook", "tokenizer.vocab=5000")
    assert result.returncode == 0, result.stderr
    assert "5,000 × 128" in result.stdout


def test_size_as_json_is_json() -> None:
    read = json.loads(clearhead("size", "tiny-decoder-only", "--json").stdout)
    assert sum(read["parameters"].values()) == 116_480
    assert read["training seconds"] > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("size", "gpt3"), "'gpt3' is no preset and no recipe; did you mean 'gpt2'?"),
        (("size", "gpt2", "model.heads=7"), "model.d_model = 768 is not divisible by model.heads = 7"),
        (("size", "gpt2", "--gpu", "h1000"), "--gpu 'h1000': unknown; did you mean 'h100'?"),
        (("size", "gpt2", "--batch", "0"), "--batch 0: must be at least 1"),
    ],
)
def test_mistakes_get_a_sentence_and_no_traceback(arguments: tuple[str, ...], message: str) -> None:
    result = clearhead(*arguments)
    assert result.returncode == 1
    assert message in result.stderr
    assert "Traceback" not in result.stderr
