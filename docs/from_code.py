"""What the pages of the site take from the code: lines of the source, settings, commands, questions."""

from __future__ import annotations

import ast
import importlib
import re
import textwrap
from itertools import product
from pathlib import Path

DOCS = Path(__file__).parent
ROOTS = (DOCS.parent / "src", DOCS)  # where symbols are looked up: the package, and the experiments


def find(symbol: str) -> tuple[Path, int, int]:
    """The file of a class, function, method or constant, and its first and last line."""
    parts = symbol.split(".")
    for root, count in product(ROOTS, range(len(parts) - 1, 0, -1)):
        path = root.joinpath(*parts[:count]).with_suffix(".py")
        if path.is_file():
            node: ast.AST = ast.parse(path.read_text(encoding="utf8"))
            for name in parts[count:]:
                inside = [inner for inner in ast.iter_child_nodes(node) if name in names_of(inner)]
                if not inside:
                    raise LookupError(f"{path} has no {symbol}")
                node = inside[0]
            first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))])  # type: ignore[attr-defined]
            return path, first, node.end_lineno  # type: ignore[attr-defined]
    raise LookupError(f"there is no {symbol} in src or docs")


def names_of(node: ast.AST) -> list[str]:
    """The names that a statement defines."""
    if isinstance(node, ast.Assign):
        return [target.id for target in node.targets if isinstance(target, ast.Name)]
    target = getattr(node, "target", None)
    return [getattr(node, "name", target.id if isinstance(target, ast.Name) else "")]


def source(symbols: str) -> str:
    """The code of one or several symbols of one file, one in a line, as a block with the name of the file."""
    found = [find(symbol) for symbol in symbols.split()]
    path = found[0][0]
    lines = path.read_text(encoding="utf8").splitlines()
    code = "\n\n".join(textwrap.dedent("\n".join(lines[first - 1 : last])) for _, first, last in found)
    where = ", ".join(f"{first}-{last}" for _, first, last in found)
    return f'```python title="{path.relative_to(DOCS.parent).as_posix()}, lines {where}"\n{code}\n```'


def computed(name: str) -> str:
    """A text that a script computed."""
    text = (DOCS / "course" / "computed" / f"{name}.txt").read_text(encoding="utf8").rstrip()
    return re.sub(r"<(?=\w)", "&lt;", text) if text.startswith("|") else f"```text\n{text}\n```"  # a table is Markdown


FIELD = re.compile(r"    (?P<name>\w+): (?P<kind>[^#=]+?)(?: = (?P<value>.+?))?(?:  # (?P<about>.+))?")


def settings(name: str) -> str:
    """The settings of a class in config.py as a table, with the comments beside them."""
    path, first, last = find(f"clearhead.config.{name}")
    rows = ["| setting | values | default | meaning |", "|---|---|---|---|"]
    for line in path.read_text(encoding="utf8").splitlines()[first - 1 : last]:
        if line.startswith("    def "):
            break
        if found := FIELD.fullmatch(line):
            kind = found["kind"].removeprefix("Literal[").removesuffix("]").replace('"', "").replace("|", "or")
            rows.append(f"| `{found['name']}` | {kind} | `{found['value']}` | {escape(found['about'] or '')} |")
    return "\n".join(rows)


def escape(text: str) -> str:
    """Text for a cell of a table."""
    return text.replace("|", "\\|").replace("*", "\\*").replace("<", "&lt;").replace("$", "\\$")


def commands(_all: str) -> str:
    """Every verb with its options, as `clearhead VERB --help` says them."""
    text: str = importlib.import_module("clearhead.cli").app.generate_docs(output_format="markdown")
    verbs = text[text.index("\n## clearhead ") :]
    return re.sub(r"<(?=\w+>)", "&lt;", verbs.replace("```console", "```text"))


def questions(chapter: str, answers: bool) -> str:
    """The questions of a chapter, as `clearhead learn quiz` asks them; each answer is folded, or below its question."""
    lines = []
    quiz = importlib.import_module("clearhead.learn.quiz")
    for number, question in enumerate(quiz.find_chapter(chapter).questions, 1):
        lines.append(f"**{number}. {escape(question.ask)}**\n")
        lines += [f"- {escape(choice)}" for choice in question.choices()]
        answer = f"**{escape(question.right)}.** {escape(question.explain)}"
        lines.append(f"\n{answer}\n" if answers else f'\n??? success "Answer"\n\n    {answer}\n')
    return "\n".join([*lines, f"The same in the terminal: `clearhead learn quiz {chapter}`."])
