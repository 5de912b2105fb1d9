"""Build the documentation site into site/: `make docs`. Nothing in it is loaded from the network.

The theme loads a few scripts from a CDN. Two are served by the site itself, from docs/assets/vendor; the others belong
to features that the site does not use, and their addresses are removed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import make_slides

ROOT = Path(__file__).parent.parent
SITE = ROOT / "site"
SCRIPT = re.compile(r'(<script[^>]* src=")https://unpkg\.com/iframe-worker/shim(")')
MERMAID = re.compile(r'"https://unpkg\.com/mermaid@[^"]*"')
OTHERS = re.compile(r"https://(?:unpkg\.com|cdn\.jsdelivr\.net)[^\"'`\s]*")
BESIDE = 'new URL("../vendor/mermaid.tiny.js",document.querySelector("script[src*=bundle]").src).href'
NOT_SHOWN = ("*.py", "assets/vendor/README.html", "teach/slides.md")  # of docs/, which zensical copies


def make_self_contained(site: Path) -> None:
    """Let every page load its scripts from the site itself."""
    for page in site.rglob("*.html"):
        root = "../" * (len(page.relative_to(site).parts) - 1)
        text = page.read_text(encoding="utf8")
        page.write_text(SCRIPT.sub(rf"\g<1>{root}assets/vendor/iframe-worker.js\g<2>", text), encoding="utf8")
    for script in (site / "assets" / "javascripts").rglob("*.js"):
        text = script.read_text(encoding="utf8")
        script.write_text(OTHERS.sub("about:blank", MERMAID.sub(BESIDE, text)), encoding="utf8")
    for pattern in NOT_SHOWN:
        for path in site.glob(f"**/{pattern}"):
            path.unlink()


def main() -> None:
    """Build the site; a broken link is an error."""
    paths = os.pathsep.join([str(ROOT / "docs"), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict", "-f", "mkdocs.yml"]
    subprocess.run(command, check=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": paths})
    make_self_contained(SITE)
    make_slides.main(SITE / "teach")


if __name__ == "__main__":
    main()
