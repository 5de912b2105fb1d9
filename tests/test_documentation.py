"""What a page shows is what works: the Python blocks of each page run, in order, sharing their names.

A block `output` right below a Python block is what that block prints.
"""

from __future__ import annotations

import io
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from clearhead.recipes import load_recipe
from clearhead.train.run import train
from command_line import Verb

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```$(?:\n\n^```output\n(.*?)^```$)?", re.DOTALL | re.MULTILINE)
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
        printed = io.StringIO()
        with redirect_stdout(printed):
            exec(compile("\n" * line + block[1], str(page), "exec"), names)
        assert block[2] in (None, printed.getvalue()), f"{page.name}, line {line}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for link in LINK.findall(page.read_text(encoding="utf8")):
        assert (page.parent / link).exists(), f"{page.name} links to {link}"


def test_the_smaller_model_for_your_own_data_is_a_recipe() -> None:
    page = (ROOT / "docs" / "your-own-data.md").read_text(encoding="utf8")
    [settings] = re.findall(r"`(model\.d_model=\d+ train\.steps=\d+ train\.r_drop=0)`", page)
    assert load_recipe("tatoeba-en-fr", settings.split()).train.steps == 2000


PROMISE = re.compile(
    r"bit for bit|last bit|bit-identical|exactly the same weights|same every time|never\s+stopped|same seed gives"
)


@pytest.mark.parametrize(
    "page", [*PAGES, *sorted((ROOT / "src" / "clearhead" / "verbs").glob("*.py"))], ids=lambda page: page.name
)
def test_what_promises_the_same_numbers_says_that_threads_matter(page: Path) -> None:
    text = page.read_text(encoding="utf8")
    assert not PROMISE.search(text) or "threads" in text


# --- names of files and functions -------------------------------------------------------------------------------------

PACKAGE = ROOT / "src" / "clearhead"
FILE_NAME = re.compile(r"[\w./-]+\.(?:py|js)\b")
WALK_STEP = re.compile(r"^\| `([\w./]+\.(?:py|js))` \| (`[\w.`, ]+`) \|", re.MULTILINE)
WRITTEN = ("learn/attention.py", "learn/block.py")  # by the reader
FILES = [
    path.relative_to(ROOT).as_posix()
    for folder in ("src", "tests", "bench", "docs", "examples", "recipes", "tools")
    for path in (ROOT / folder).rglob("*")
    if "__pycache__" not in path.parts
]


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"], ids=lambda page: page.name)
def test_files_that_a_page_names_exist(page: Path) -> None:
    for name in FILE_NAME.findall(page.read_text(encoding="utf8")):
        if name in WRITTEN:
            continue
        path = name.removeprefix("../").removeprefix("../").removeprefix("./")
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


INDEX_ENTRY = re.compile(r"^\| [^|]+ \| `([\w./]+\.py)` \| (`[\w.`, ]+`) \|$", re.MULTILINE)


def test_the_index_names_what_exists() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf8")
    index = page.split("## Where is ...?")[1].split("## ")[0]
    entries = INDEX_ENTRY.findall(index)
    assert len(entries) == index.count("\n| ") - 1  # all but the heading
    for file, names in entries:
        code = (PACKAGE / file).read_text(encoding="utf8")
        for name in names.replace("`", "").replace(",", "").replace(".", " ").split():
            assert re.search(rf"^\s*(?:(?:def|class) {name}\b|{name} = )", code, re.MULTILINE), f"{file} has no {name}"


def test_the_table_of_fast_paths_has_every_file_with_its_test_and_gain() -> None:
    page = (PACKAGE / "fast" / "README.md").read_text(encoding="utf8")
    rows = [[cell.strip() for cell in row.split("|")[1:-1]] for row in page.splitlines() if row.startswith("| `")]
    listed = [file for row in rows for file in re.findall(r"`([\w/]+\.py)`", row[0])]
    files = [path.relative_to(PACKAGE / "fast").as_posix() for path in (PACKAGE / "fast").rglob("*.py")]
    inits = [file for file in files if file.endswith("__init__.py")]
    assert sorted([*listed, *inits, "choose.py"]) == sorted(files)
    for _, replaces, tests, gain, _ in rows:
        assert replaces
        assert gain
        identity = re.findall(r"`(tests/[\w/.]+)`", tests)
        assert identity
        assert all((ROOT / test).exists() for test in identity)


# --- commands ---------------------------------------------------------------------------------------------------------

ANY_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"(?:\$ )?((?:clearhead|torchrun|srun|python) .*)")
NOT_RUN = {  # what a command contains -> why no test runs it
    "runs/multi30k": "needs a corpus that is not shipped",
    "--nnodes": "needs several machines",
    "clearhead import": "needs a model that is not shipped",
    "runs/llama": "is an imported model",
    "runs/bert": "is an imported model",
    "clearhead learn": "has its own tests",
    "make demo": "is more than one command",
}
SMALLER = {  # what is added to a command, so that it takes seconds
    "train": "data.size=200 tokenizer.vocab=400 model.layers=1 model.d_model=32 model.heads=4 model.d_ff=64 "
    "train.steps=4",
    "evaluate": "--limit 4",
    "explore": "--port 0",
    "serve": "--port 0",
    "learn": "--steps 4",
    "bench": "--quick --rounds 1 --no-peers --only cpu-train-demo",
}
RECIPES = {"demo": "phrasebook", "one": "phrasebook", "two": "phrasebook"}  # of runs that are not named after theirs


def commands_of(page: Path) -> Iterator[tuple[str, str]]:
    """The commands of a page in their order, each with the lines below it: what it prints, if the page shows that."""
    recipes = iter(("phrasebook", "reviews", "headlines", "paraphrases"))  # a run of its own for each RECIPE
    blocks = ANY_BLOCK.findall(page.read_text(encoding="utf8"))
    for text in (text for language, text in blocks if language in ("", "text")):
        lines = text.replace("\\\n", " ").splitlines()
        starts = [number for number, line in enumerate(lines) if COMMAND.fullmatch(line)]
        for start, end in pairwise([*starts, len(lines)]):
            found = COMMAND.fullmatch(lines[start])
            if found is not None and not any(words in found[1] for words in NOT_RUN):
                command = found[1].replace("RECIPE", next(recipes)) if "RECIPE" in found[1] else found[1]
                yield command, "\n".join(lines[start + 1 : end]).strip()


def smaller(command: str) -> list[str]:
    """The words of a command, with what makes it smaller and without its comment."""
    words = shlex.split(command.replace("--nproc-per-node 4", "--nproc-per-node 2"), comments=True)
    verb = words[words.index("clearhead") + 1] if "clearhead" in words else ""
    lists_recipes = words[-1] == "train"
    return [*words, *([] if lists_recipes else SMALLER.get(verb, "").split())]


@pytest.fixture(scope="module")
def tiny_run(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A function that returns a run of a recipe, trained for four steps; each recipe is trained once."""

    @cache
    def trained(recipe: str) -> Path:
        folder = tmp_path_factory.mktemp(recipe) / recipe
        train(load_recipe(recipe, SMALLER["train"].split()), folder, quiet=True)
        return folder

    return trained


def own_tables() -> dict[str, str]:
    """The files of the page about own data: a spreadsheet with semicolons, texts, conversations, and pairs."""
    spoken = [{"role": role, "content": f"{role} speaks"} for role in ("user", "assistant")]
    return {
        "my/reviews.csv": "review;stars\n" + "Cold soup, again;bad\nWarm soup;good\n" * 20,
        "my/texts/one.md": "It was a story.\n" * 40,
        "my/texts/below/two.txt": "It was another story.\n" * 40,
        "my/chats.jsonl": f"{json.dumps({'messages': spoken})}\n" * 20,
        "my/pairs.csv": "asked,known\n" + "".join(f"number {n}?,what is {n}?\n" for n in range(20)),
        "my/scored.csv": "asked,known,score\n" + "".join(f"number {n}?,what is {n}?,{n % 6}\n" for n in range(40)),
    }


@pytest.fixture
def reader(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of somebody who follows a page, with a few files; servers stop at once, no browser is opened."""
    texts = {"english.txt": "the red car is fast\n", "sentences.txt": "a cat\na dog\n"}
    texts |= {"my/folder/train.en": "a cat\na dog\n", "my/folder/train.fr": "un chat\nun chien\n"}
    texts |= {"my.toml": (ROOT / "recipes" / "phrasebook.toml").read_text(encoding="utf8")}
    texts |= own_tables()
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp()))
    monkeypatch.setattr("webbrowser.open", lambda _address: True)
    monkeypatch.setattr("clearhead.inspect.web.server.Server.serve_forever", lambda _server: None)
    monkeypatch.setattr("uvicorn.Server.run", lambda _server, sockets: [each.close() for each in sockets])
    return tmp_path


def run_in_shell(words: list[str]) -> tuple[str, int]:
    """Run a command that is not clearhead's or has its output redirected; return what it says and its exit code."""
    programs = {"clearhead": [sys.executable, "-m", "clearhead"], "python": [sys.executable]}
    programs["torchrun"] = [sys.executable, "-m", "torch.distributed.run"]
    line = shlex.join([*programs[words[0]], *words[1:]]).replace("'<'", "<").replace("'>'", ">")
    done = subprocess.run(line, shell=True, capture_output=True, text=True, check=False, timeout=200)
    return done.stdout + done.stderr, done.returncode


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if any(commands_of(page))], ids=lambda page: page.name)
def test_commands_work_in_the_order_of_the_page(
    page: Path, verb: Verb, reader: Path, tiny_run: Callable[[str], Path]
) -> None:
    for command, shown in commands_of(page):
        words = smaller(command)
        for name in (word.removeprefix("runs/") for word in words if word.startswith("runs/")):
            if not (reader / "runs" / name).exists() and words[1] != "train":
                shutil.copytree(tiny_run(RECIPES.get(name, name)), reader / "runs" / name)
        if words[0] == "clearhead" and ">" not in words:
            given = (reader / words[words.index("<") + 1]).read_text() if "<" in words else ""
            lines, error, code = verb(*(words[1 : words.index("<")] if given else words[1:]), stdin=given)
            said = "\n".join([*lines, error])
        else:
            said, code = run_in_shell(words)
        refused = shown.startswith("clearhead: ") or "✗" in shown
        assert code == refused, f"{page.name}: {command}\n{said}"
        assert not refused or shown in said
