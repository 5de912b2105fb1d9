"""What a page shows is what works: the Python blocks of each page run, in order, sharing their names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from clearhead.recipes import load_recipe
from clearhead.train.run import train

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder `runs` as a reader has it after `make demo`, if the demo took five steps."""
    folder = tmp_path_factory.mktemp("reader")
    small = "data.size=200 tokenizer.vocab=400 model.d_model=32 model.d_ff=64 train.steps=5 train.samples=0"
    train(load_recipe("phrasebook", [*small.split(), f"data.cache={folder}"]), folder / "runs" / "demo", quiet=True)
    return folder / "runs"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_blocks_run(page: Path, runs: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").symlink_to(runs)
    text, names = page.read_text(encoding="utf8"), {"__name__": page.stem}
    for block in BLOCK.finditer(text):
        line = text.count("\n", 0, block.start(1))
        exec(compile("\n" * line + block[1], str(page), "exec"), names)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for link in LINK.findall(page.read_text(encoding="utf8")):
        assert (page.parent / link).exists(), f"{page.name} links to {link}"


# --- names of files and functions -------------------------------------------------------------------------------------

PACKAGE = ROOT / "src" / "clearhead"
FILE_NAME = re.compile(r"[\w./-]+\.(?:py|js)\b")
WALK_STEP = re.compile(r"^\| `([\w./]+\.(?:py|js))` \| (`[\w.`, ]+`) \|", re.MULTILINE)
FILES = [
    path.relative_to(ROOT).as_posix()
    for folder in ("src", "tests", "bench", "docs", "recipes")
    for path in (ROOT / folder).rglob("*")
    if "__pycache__" not in path.parts
]


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"], ids=lambda page: page.name)
def test_files_that_a_page_names_exist(page: Path) -> None:
    for name in FILE_NAME.findall(page.read_text(encoding="utf8")):
        path = name.removeprefix("../").removeprefix("./")
        assert any(f"/{file}".endswith(f"/{path}") for file in FILES), f"{page.name} names {name}"


def named_in_tree() -> Iterator[str]:
    """Every path of the tree in architecture.md, its parents joined by the indentation."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf8")
    tree = page.split("## The tree")[1].split("```")[1].strip().splitlines()
    parents: dict[int, str] = {}
    for line in tree:
        depth = len(line) - len(line.lstrip())
        parent = "".join(parents[d] for d in sorted(parents) if d < depth)
        names = re.match(r"[\w./-]+(?:, [\w./-]+)*", line.strip())
        assert names is not None, line
        for name in names[0].split(", "):
            if name.endswith("/"):
                parents = {d: p for d, p in parents.items() if d < depth} | {depth: name}
            yield parent + name


def test_the_tree_names_what_exists_and_every_room() -> None:
    named = list(named_in_tree())
    assert [name for name in named if not (ROOT / name).exists()] == []
    rooms = {path for path in PACKAGE.iterdir() if path.name[0] != "_" and (path.is_dir() or path.suffix == ".py")}
    assert {path.name for path in rooms} <= {Path(name).name for name in named}


def test_the_walks_name_functions_that_exist() -> None:
    steps = WALK_STEP.findall((ROOT / "docs" / "architecture.md").read_text(encoding="utf8"))
    assert len(steps) > 30
    for file, functions in steps:
        code = (PACKAGE / file).read_text(encoding="utf8")
        for word in functions.replace("`", "").replace(",", "").replace(".", " ").split():
            assert re.search(rf"^\s*(?:export )?(?:async )?(?:def|class|function) {word}\b", code, re.MULTILINE), (
                f"{file} has no {word}"
            )
