"""Make a notebook of each chapter of the course, from the same page: `make notebooks` writes them to site/notebooks.

Python blocks become cells. Blocks that are filled from the code stay text; what a cell prints is left to running it.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import jupytext
import nbformat
from includes import fill
from nbformat import NotebookNode

DOCS = Path(__file__).parent
OUTPUT = re.compile(r"\n\n```output\n.*?^```$", re.DOTALL | re.MULTILINE)
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FOLDED = re.compile(r'^\?\?\? success "Answer"\n\n    (.*)$', re.MULTILINE)
SHOWN = re.compile(r"^```python title=\"(.*?)\"\n", re.MULTILINE)
TO_ROOT = 'import os\n\nos.chdir("../..")  # from site/notebooks to the folder that has runs/demo'
LINK = re.compile(r"\]\((?!https?:|#)(?:\.\./)?([\w/.-]+?)\.md")


def make_notebook(page: str) -> NotebookNode:
    """Return the notebook of a page in Markdown."""
    text = fill(OUTPUT.sub("", page))
    text = SHOWN.sub(r"`\1`\n\n```py\n", text)  # of the project: to read, not to run
    text = FOLDED.sub(r"<details><summary>Answer</summary>\1</details>", text)
    text = text.replace("](pictures/", "](../course/pictures/")
    text = LINK.sub(lambda found: f"](../{'' if '/' in found[1] else 'course/'}{found[1]}.html", text)
    if '"runs/demo"' in text:
        text = f"```python\n{TO_ROOT}\n```\n\n{text}"
    notebook = jupytext.reads(text, fmt="md")
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return notebook


def main(folder: Path) -> None:
    """Write all notebooks."""
    folder.mkdir(parents=True, exist_ok=True)
    for page in sorted((DOCS / "course").glob("[0-9]*.md")):
        nbformat.write(make_notebook(page.read_text(encoding="utf8")), folder / f"{page.stem}.ipynb")  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else DOCS.parent / "site" / "notebooks")
