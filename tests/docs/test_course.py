"""The course: what its pages include exists, its links open the explorer in a state that it has, its scripts run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import parse_qs

import pytest

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
CHAPTERS = sorted((DOCS / "course").glob("[0-9]*.md"))
EXPERIMENTS = sorted(path for path in (DOCS / "experiments").glob("*.py") if path.stem != "small")
PAGE = ROOT / "src" / "clearhead" / "inspect" / "web" / "page"
FILLED = re.compile(r"^```(source|computed|settings)\n(.*?)\n```$", re.DOTALL | re.MULTILINE)
EXPLORER = re.compile(r"http://127\.0\.0\.1:8642/#([^)\s]+)")
PICTURE = re.compile(r"!\[(.*?)\]\((pictures/[\w.-]+)\)")


@pytest.fixture(autouse=True)
def scripts_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(DOCS))


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: page.name)
def test_what_a_page_includes_exists(page: Path) -> None:
    import from_code

    for kind, name in FILLED.findall(page.read_text(encoding="utf8")):
        text = getattr(from_code, kind)(name)
        assert len(text.splitlines()) > 2, f"{page.name}: {kind} {name}"


@pytest.mark.parametrize("page", CHAPTERS, ids=lambda page: page.stem)
def test_readers_of_the_file_find_what_a_block_shows(page: Path) -> None:
    """A page of GitHub shows the name in such a block, and not its content: the line below it is a link."""
    import from_code
    import includes

    text = page.read_text(encoding="utf8")
    for block in FILLED.finditer(text):
        kind, name = block.groups()
        path = f"computed/{name}.txt"
        if kind == "source":
            path = from_code.find(name.split()[0])[0].relative_to(ROOT).as_posix()
        link = f"[{path}]({'../../' if kind == 'source' else ''}{path})"
        assert text[block.end() + 1 :].splitlines()[0] == link, f"{page.name}: the line below {name} should be {link}"
    assert "](../../src" not in includes.fill(text)


def test_the_source_of_a_symbol_is_its_lines() -> None:
    import from_code

    text = from_code.source("clearhead.model.attention.masked_softmax")
    assert text.splitlines()[1].startswith("def masked_softmax(")
    assert text.splitlines()[-2].strip().startswith("return torch.where(mask, weights, 0.0)")
    with pytest.raises(LookupError, match="has no"):
        from_code.source("clearhead.model.attention.no_such_function")


def test_every_setting_is_in_the_table() -> None:
    from dataclasses import fields

    import from_code

    from clearhead import config

    for section in ("ModelConfig", "TokenizerConfig", "DataConfig", "TrainConfig"):
        rows = from_code.settings(section).splitlines()[2:]
        assert [row.split("`")[1] for row in rows] == [field.name for field in fields(getattr(config, section))]


@pytest.mark.parametrize("page", CHAPTERS, ids=lambda page: page.stem)
def test_a_chapter_has_all_of_its_parts(page: Path) -> None:
    text = page.read_text(encoding="utf8")
    parts = ["> **Question.**", "```source\n", "## Try it", "\n```quiz\n", "Exercise", "```python\n"]
    assert [part for part in parts if part not in text] == []
    pictures = PICTURE.findall(text)
    assert pictures
    for about, path in pictures:
        assert about, f"{path} has no description"
        assert (page.parent / path).is_file()


@pytest.mark.parametrize("page", CHAPTERS, ids=lambda page: page.stem)
def test_links_to_the_explorer_are_states_that_it_has(page: Path) -> None:
    start = (PAGE / "state.js").read_text(encoding="utf8").split("const START = {")[1].split("\n};")[0]
    keys = set(re.findall(r"^  (\w+):", start, re.MULTILINE))
    views = {path.stem for path in (PAGE / "views").glob("*.js")}
    links = EXPLORER.findall(page.read_text(encoding="utf8"))
    for link in links:
        state = parse_qs(link, strict_parsing=True)
        assert set(state) <= keys
        assert set(state["view"]) <= views
        if state["view"][0] in ("embedding", "position", "residual", "addnorm", "feedforward"):
            assert "stack" in state, f"{link} opens the decoder's, whatever the text says"


def test_chapters_name_exercises_and_quizzes_that_exist() -> None:
    import from_code

    from clearhead.learn.catalogue import NAMES

    texts = [page.read_text(encoding="utf8") for page in CHAPTERS]
    named = {name for text in texts for name in re.findall(r"clearhead learn (?:start|check|use) ([\w-]+)", text)}
    assert named == set(NAMES)
    for text in texts:
        [chapter] = re.findall(r"^```quiz\n(.*?)\n```$", text, re.MULTILINE)
        assert from_code.questions(chapter, answers=False).count('??? success "Answer"') == 3


def test_exercises_come_in_the_order_of_the_chapters() -> None:
    from clearhead.learn.catalogue import NAMES

    last = {}  # exercise -> the last chapter that says to start it
    for page in CHAPTERS:
        for name in re.findall(r"clearhead learn start ([\w-]+)", page.read_text(encoding="utf8")):
            last[name] = page.stem
    assert list(NAMES) == sorted(NAMES, key=lambda name: last[name])


ALL = "import runpy, sys; [runpy.run_path(path, run_name='__main__') for path in sys.argv[2:]]"


@pytest.mark.slow
def test_experiments_run(tmp_path: Path) -> None:
    """All in one process, which imports torch once."""
    before = {path: path.stat().st_mtime_ns for path in (DOCS / "course").rglob("*.*")}
    command = [sys.executable, "-c", ALL, "--quick", *map(str, EXPERIMENTS)]
    paths = os.pathsep.join([str(DOCS / "experiments"), *sys.path])
    environment = {**os.environ, "PYTHONPATH": paths}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Measured with") == len(EXPERIMENTS)
    assert before == {path: path.stat().st_mtime_ns for path in (DOCS / "course").rglob("*.*")}


@pytest.mark.long
@pytest.mark.slow
def test_every_picture_can_be_drawn_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from clearhead.recipes import load_recipe
    from clearhead.train.run import train

    monkeypatch.syspath_prepend(str(DOCS / "experiments"))
    import course_pictures
    from course_drawings import changes

    small = "data.size=300 tokenizer.vocab=700 model.d_model=32 model.d_ff=64 train.steps=3 train.samples=0"
    train(load_recipe("phrasebook", [*small.split(), f"data.cache={tmp_path}"]), tmp_path / "run", quiet=True)
    monkeypatch.setattr(changes, "SENTENCES", 4)
    course_pictures.draw(tmp_path / "run", tmp_path / "course")
    for name in course_pictures.PICTURES:
        assert (tmp_path / "course" / "pictures" / f"{name}.png").stat().st_size > 1000
        assert (tmp_path / "course" / "computed" / f"{name}.txt").read_text()
        assert (DOCS / "course" / "computed" / f"{name}.txt").is_file()
    shutil.rmtree(tmp_path / "course")
