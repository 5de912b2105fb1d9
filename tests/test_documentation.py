"""What a page shows is what works: the Python blocks of each page run, in order, sharing their names."""

from __future__ import annotations

import re
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
