"""The documentation site: it is built offline, loads nothing from the network, and every link in it leads somewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from filelock import FileLock

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
WORDS = (
    "ba,commun,fille,fo,ist,te,nd,doesnt,astroid,rouge,ans,parallelise,parallelised,initialise,initialised,optimiser"
)

FRENCH = ("phrasebook-sample", "everyday-sentences")  # pages that are full of French


def needs(package: str) -> None:
    """Skip a test where the extra `docs` is not installed; in CI that is an error."""
    if find_spec(package) is None:
        assert not os.environ.get("CI"), f"{package} is missing: pip install '.[docs]'"
        pytest.skip(f"{package} is not installed: pip install '.[docs]'")


class Page(HTMLParser):
    """The ids of a page, its links, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.ids |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        elif tag in ("script", "img", "iframe", "link", "source"):
            address = values.get("src") or values.get("href") or ""
            if values.get("rel") not in ("canonical", "prev", "next"):
                self.loads.append(address)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built once as `make docs` does it, whichever process of the tests comes first."""
    needs("zensical")
    session = tmp_path_factory.getbasetemp()
    session = session.parent if os.environ.get("PYTEST_XDIST_WORKER") else session
    with FileLock(session / "site.lock"):
        if not (session / "site-is-built").exists():
            build()
            (session / "site-is-built").touch()
    return ROOT / "site"


def build() -> None:
    done = subprocess.run(
        [sys.executable, DOCS / "build_site.py"], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path.read_text(encoding="utf8")) for path in site.rglob("*.html")}


def test_every_page_is_in_the_navigation() -> None:
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf8").split("\nnav:\n")[1]
    pages = [path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md") if "vendor" not in path.parts]
    assert [page for page in pages if page != "teach/slides.md" and f" {page}\n" not in nav] == []


@pytest.mark.slow
def test_every_page_is_in_the_site(site: Path) -> None:
    sources = [path.relative_to(DOCS) for path in DOCS.rglob("*.md") if "vendor" not in path.parts]
    assert [path for path in sources if not (site / path.with_suffix(".html")).is_file()] == []


@pytest.mark.slow
def test_nothing_is_loaded_from_the_network(site: Path, pages: dict[Path, Page]) -> None:
    for path, page in pages.items():
        assert [address for address in page.loads if re.match(r"(https?:)?//", address)] == [], path.name
    for path in [*site.rglob("assets/**/*.css"), *site.rglob("assets/javascripts/**/*.js")]:
        text = path.read_text(encoding="utf8")
        assert not re.search(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//", text), path.name
        assert not re.search(r"unpkg\.com|jsdelivr|googleapis|cdnjs", text), path.name


@pytest.mark.slow
def test_links_and_anchors_lead_somewhere(site: Path, pages: dict[Path, Page]) -> None:
    broken = []
    for path, page in pages.items():
        for link in page.links + page.loads:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or path.name == "404.html":
                continue
            to = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            to = to / "index.html" if to.is_dir() else to
            if not to.exists() or (parts.fragment and to in pages and unquote(parts.fragment) not in pages[to].ids):
                broken.append(f"{path.relative_to(site)}: {link}")
    assert broken == []


@pytest.mark.slow
def test_formulas_are_drawn(site: Path) -> None:
    text = (site / "course" / "05-queries-keys-values.html").read_text(encoding="utf8")
    assert text.count("<math") >= 5
    assert "$$" not in text
    assert "wzxhzdk" not in text


@pytest.mark.slow
def test_pictures_can_be_opened_alone(pages: dict[Path, Page], site: Path) -> None:
    page = pages[site / "course" / "08-heads.html"]
    assert "pictures/heads.png" in page.links
    assert "pictures/heads.png" in page.loads


def test_pages_have_no_misspelled_words() -> None:
    needs("codespell_lib")
    pages = [ROOT / "README.md", *sorted(path for path in DOCS.rglob("*.md") if path.stem not in FRENCH)]
    command = [sys.executable, "-m", "codespell_lib", "-L", WORDS, *map(str, pages)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == ""


@pytest.mark.long
@pytest.mark.slow
def test_notebooks_of_the_chapters_run(tmp_path: Path) -> None:
    needs("nbmake")
    subprocess.run([sys.executable, DOCS / "make_notebooks.py", tmp_path], check=True)
    assert len(list(tmp_path.iterdir())) == len(list((DOCS / "course").glob("[0-9]*.md")))
    chosen = [tmp_path / f"{name}.ipynb" for name in ("02-tokens", "05-queries-keys-values", "21-fine-tuning")]
    command = [sys.executable, "-m", "pytest", "--nbmake", "-p", "no:cacheprovider", *chosen]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(chosen)} passed" in done.stdout


@pytest.mark.slow
def test_the_slides_can_be_shown_and_printed(site: Path) -> None:
    text = (site / "teach" / "slides.html").read_text(encoding="utf8")
    assert text.count("<section>") == 15
    assert "ArrowRight" in text
    assert "@media print" in text
