"""The structure of the code: who may import whom, how long files, functions and signatures may be, what needs torch."""

from __future__ import annotations

import ast
import keyword
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from clearhead.cli import VERBS, app
from patience import PATIENCE

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "clearhead"
MODULES = sorted(PACKAGE.rglob("*.py"))
PAGE = sorted(path for path in PACKAGE.rglob("page/**/*") if path.suffix in (".js", ".css"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))

# room -> what it may import: rooms of ours, and packages of others beyond the standard library
ROOMS: dict[str, tuple[str, str]] = {
    "tasks": ("", ""),
    "config": ("tasks", ""),
    "files": ("config", ""),
    "renamed": ("", ""),
    "habits": ("", ""),
    "bundled": ("config", ""),
    "presets": ("config", ""),
    "recipes": ("config files habits presets", ""),
    "device": ("config", "torch"),
    "terminal": ("config terminal text", "rich torch"),
    "model": ("config model", "torch"),
    "fast": ("config data.batches decode device fast model train", "torch triton"),
    "text": ("config files terminal text", "torch numpy tokenizers rich"),
    "data": ("config corpora data files tasks terminal text", "torch numpy zstandard datasets rich clearhead"),
    "corpora": ("config corpora data.examples text.dialogue", ""),
    "runs": ("bundled config device files model recipes tasks text", "torch safetensors"),
    "decode": ("config data decode device fast.choose model renamed runs tasks text", "torch numpy"),
    "evaluate": (
        "config data decode evaluate fast.choose files model recipes runs tasks terminal text",
        "torch numpy sacrebleu rich matplotlib",
    ),
    "train": (
        "config data decode device evaluate fast.choose files model recipes runs tasks terminal text train",
        "torch numpy safetensors rich matplotlib wandb clearhead",
    ),
    "inspect": (
        "config data decode fast.choose files inspect model recipes renamed runs tasks terminal text",
        "torch numpy rich",
    ),
    "glass": ("inspect", ""),  # the old name of inspect
    "exchange": (
        "bundled config decode exchange fast.choose files model recipes runs tasks text",
        "torch safetensors tokenizers huggingface_hub gguf onnx onnxruntime",
    ),
    "library": ("bundled config data decode device evaluate fast.choose inspect model runs text", "torch"),
    "serve": (
        "config data decode fast.choose inspect model runs serve tasks text",
        "torch numpy fastapi h11 pydantic starlette uvicorn",
    ),
    "learn": (
        "bundled config data decode files learn model recipes runs terminal text train",
        "torch numpy tokenizers rich clearhead",
    ),
    "bench": (
        "bench config data decode device exchange fast.choose files library model presets recipes runs text train",
        "torch numpy rich matplotlib transformers ctranslate2 clearhead",
    ),
    "verbs": (
        "bench bundled config corpora data decode device evaluate exchange files inspect learn library presets recipes "
        "runs serve tasks terminal text train verbs",
        "torch numpy rich cyclopts",
    ),
    "cli": ("config files habits recipes terminal.streams", "cyclopts rich clearhead"),  # and the verbs, when called
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
    """What a file imports, inside its functions too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    return {name for name in found if name.split(".")[0] not in sys.stdlib_module_names}


def each(paths: list[Path]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("path", paths, ids=lambda p: str(p.relative_to(ROOT)))


each_module = each(MODULES)


@each_module
def test_rooms_import_only_what_they_may(path: Path) -> None:
    allowed = MAY_IMPORT[room_of(path)]
    for name in imports_of(path):
        parents = {name.rsplit(".", n)[0] for n in range(name.count(".") + 1)} - {"clearhead"} | {name}
        assert parents & allowed, f"{path.relative_to(ROOT)} may not import {name}"


def test_the_model_can_be_read_in_one_sitting() -> None:
    lines = [line for path in (PACKAGE / "model").glob("*.py") for line in path.read_text().splitlines()]
    assert len([line for line in lines if line.strip()]) <= 830


LONGEST_FILE = 400  # lines


@each([*MODULES, *PAGE, *TESTS])
def test_files_are_short(path: Path) -> None:
    length = len(path.read_text().splitlines())
    assert length <= LONGEST_FILE, f"{path.relative_to(ROOT).as_posix()} has {length} lines"


def is_kernel(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Kernels of Triton take strides and sizes one by one."""
    return any(ast.unparse(decorator).startswith("triton.jit") for decorator in node.decorator_list)


@each_module
def test_functions_fit_on_a_screen(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not is_kernel(node):
            arguments = node.args.posonlyargs + node.args.args + node.args.kwonlyargs
            count = len([a for a in arguments if a.arg not in ("self", "cls")])
            length = (node.end_lineno or 0) - node.lineno + 1
            assert count < 8, f"{path.name}: {node.name} takes {count} arguments"
            assert length <= 60, f"{path.name}: {node.name} has {length} lines"


# --- the command line -------------------------------------------------------------------------------------------------


def file_of(verb: str) -> str:
    """The file and the function of a verb have its name, with a line below it if Python has that word itself."""
    return f"{verb}_" if keyword.iskeyword(verb) else verb


def test_every_verb_is_implemented_in_the_file_of_its_name() -> None:
    files = {path.stem for path in (PACKAGE / "verbs").glob("*.py")} - {"__init__", "options"}
    assert files == {file_of(verb) for verb in VERBS}


@pytest.mark.parametrize("verb", VERBS)
def test_the_overview_quotes_the_first_line_of_each_verbs_help(verb: str) -> None:
    function = app[verb].default_command
    assert function is not None
    assert (function.__module__, function.__name__) == (f"clearhead.verbs.{file_of(verb)}", file_of(verb))
    assert (function.__doc__ or "").splitlines()[0] == VERBS[verb]


def test_help_does_not_wait_for_torch() -> None:
    code = """import sys
from clearhead.cli import VERBS, app
app(["--help"], result_action="return_value")
assert not any(name.startswith("clearhead.verbs") for name in sys.modules), "the overview imports verbs"
for verb in VERBS:
    app([verb, "--help"], result_action="return_value")
    assert "torch" not in sys.modules, f"{verb} --help imports torch"
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE)
    assert (result.stderr, result.returncode) == ("", 0)
    assert all(f"Usage: clearhead {verb} " in result.stdout for verb in VERBS)


def test_class_names_are_unique() -> None:
    """A name in a traceback or a search leads to one class; the solutions of exercises repeat those of the paper."""
    found: dict[str, list[str]] = {}
    for path in MODULES:
        if "solutions" not in path.parts:
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ClassDef):
                    found.setdefault(node.name, []).append(path.relative_to(PACKAGE).as_posix())
    assert {name: paths for name, paths in found.items() if len(paths) > 1} == {}


def test_test_files_have_different_names() -> None:
    """Pytest imports them by their names alone."""
    names = [path.name for path in TESTS if path.name.startswith("test_")]
    assert sorted(names) == sorted(set(names))


def test_consoles_are_made_in_one_place() -> None:
    """Others would read brackets and colons in file names and data as markup."""
    users = [path.name for path in MODULES if "Console(" in path.read_text()]
    assert users == ["console.py"]
    assert not [path.name for path in MODULES if "[/]" in path.read_text()]


# --- the files of the repository --------------------------------------------------------------------------------------

# folders of somebody's machine, files by their address, package indexes other than the public ones
OF_A_MACHINE = re.compile(r"(?<![\w.])/(home|root|work|Users)/|\b[A-Z]:\\+Users|file:///|--index-url|/simple/")
ALLOWED = {"tests/test_house.py"}  # has the patterns


def tracked_files() -> list[tuple[str, Path]]:
    """The mode and the path of every file that git knows."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    if not shutil.which("git"):
        pytest.skip("git is not installed")
    listed = subprocess.run(["git", "ls-files", "-sz"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    entries = [entry.split("\t", 1) for entry in listed.split("\0") if entry]
    return [(facts.split()[0], ROOT / name) for facts, name in entries]


def test_no_file_is_a_symbolic_link() -> None:
    assert [path.name for mode, path in tracked_files() if mode == "120000"] == []


def test_no_file_names_a_folder_or_an_index_of_one_machine() -> None:
    for _, path in tracked_files():
        name = path.relative_to(ROOT).as_posix()
        content = path.read_bytes() if path.is_file() and name not in ALLOWED else b""
        if b"\0" not in content:  # else it is not text
            found = OF_A_MACHINE.search(content.decode("utf8", "replace"))
            assert not found, f"{name} has {found[0]}"
