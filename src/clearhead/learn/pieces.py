"""Files of students: how they are loaded, the skeleton they start from, and their lines of a traceback."""

from __future__ import annotations

import ast
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

SOLUTIONS = Path(__file__).parent / "solutions"
TO_DO = "raise NotImplementedError  # replace this line by your code"
SHOWN_FRAMES = 4  # of a traceback that are shown, the last ones


def solution_path(name: str) -> Path:
    """The file with the solution of an exercise."""
    return SOLUTIONS / file_name(name)


def file_name(name: str) -> str:
    """The name of an exercise's file: layer_norm.py for layer-norm."""
    return f"{name.replace('-', '_')}.py"


def describe(name: str) -> tuple[str, str]:
    """The title of an exercise, and the idea behind it: the docstring of its solution."""
    text = ast.get_docstring(ast.parse(solution_path(name).read_text(encoding="utf8"))) or ""
    title, _, idea = text.partition("\n\n")
    return title.rstrip("."), idea


# --- the skeleton -----------------------------------------------------------------------------------------------------


def make_skeleton(solution: str) -> str:
    """Return a solution whose functions are left to write: each keeps its first line and its docstring."""
    lines = solution.splitlines()
    for function in reversed(list(functions_to_write(ast.parse(solution)))):
        docstring = function.body[0]
        indent = " " * docstring.col_offset
        lines[docstring.end_lineno or 0 : function.end_lineno] = [indent + TO_DO]
    return "\n".join(lines) + "\n"


def functions_to_write(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    """The functions and methods of a solution, in their order; `__init__` is given."""
    for node in tree.body:
        inside = node.body if isinstance(node, ast.ClassDef) else [node]
        for function in inside:
            if isinstance(function, ast.FunctionDef) and function.name != "__init__":
                yield function


# --- loading ----------------------------------------------------------------------------------------------------------


def load_piece(path: Path, text: str | None = None) -> ModuleType:
    """Run the file of a student (or another text in its place) as a module, which can import its neighbours."""
    module = ModuleType(f"learn_{path.stem}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # where dataclasses look up their types
    folder = str(path.parent.resolve())
    if text is None and folder not in sys.path:
        sys.path.insert(0, folder)
    source = path.read_text(encoding="utf8") if text is None else text
    exec(compile(source, str(path), "exec"), module.__dict__)
    return module


def load_solution(name: str, old: str = "", new: str = "") -> ModuleType:
    """Load the solution of an exercise, with an edit if one is given."""
    path = solution_path(name)
    text = path.read_text(encoding="utf8")
    assert not old or text.count(old) == 1, f"{path.name} has {text.count(old)} times {old!r}"
    return load_piece(path, text.replace(old, new) if old else text)


# --- tracebacks -------------------------------------------------------------------------------------------------------


def student_lines(error: BaseException, path: Path) -> list[str]:
    """The lines of a traceback that are in the student's folder, and the error itself."""
    if isinstance(error, SyntaxError) and error.filename and is_beside(error.filename, path):
        arrow = [f"    {' ' * ((error.offset or 1) - 1)}^"] if error.text else []
        shown = [f"    {(error.text or '').rstrip()}", *arrow] if error.text else []
        return [f"{Path(error.filename).name}, line {error.lineno}", *shown, f"{type(error).__name__}: {error.msg}"]
    frames = stack_lines(traceback.extract_tb(error.__traceback__), path)
    message = str(error).strip().split("\n")[0]
    return [*frames, f"{type(error).__name__}: {message}" if message else type(error).__name__]


def stack_lines(stack: traceback.StackSummary, path: Path) -> list[str]:
    """The last frames of a stack that are in the student's folder, two lines each."""
    lines = []
    for frame in [frame for frame in stack if is_beside(frame.filename, path)][-SHOWN_FRAMES:]:
        lines += [f"{Path(frame.filename).name}, line {frame.lineno}, in {frame.name}", f"    {frame.line}"]
    return lines


def is_beside(file: str, path: Path) -> bool:
    """Whether a file lies in the folder of another."""
    return Path(file).resolve().parent == path.resolve().parent
