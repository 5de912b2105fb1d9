"""Make the slides of docs/teach/slides.md: one HTML file with arrow keys, a page each when printed."""

from __future__ import annotations

import re
from pathlib import Path

from markdown import Markdown

DOCS = Path(__file__).parent
FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)

PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>A Transformer with nothing hidden: slides</title>
<style>
  body {{ margin: 0; font: 22px/1.4 system-ui, sans-serif; color: #222; background: #fff; }}
  section {{ box-sizing: border-box; width: 100vw; height: 100vh; padding: 3vh 6vw; display: none;
    flex-direction: column; justify-content: center; }}
  section.shown {{ display: flex; }}
  h1 {{ font-size: 1.6em; margin: 0 0 .4em; color: #2563a8; }}
  img {{ max-width: 100%; max-height: 55vh; object-fit: contain; object-position: left; }}
  p, ul {{ margin: .4em 0; }}
  footer {{ position: fixed; right: 1em; bottom: .6em; font-size: .6em; color: #888; }}
  @media print {{
    @page {{ size: 297mm 167mm; margin: 0; }}
    section {{ display: flex; width: 297mm; height: 166mm; break-after: page; }}
    footer {{ display: none; }}
  }}
</style>
{sections}
<footer><span id="number">1</span> / {count} · arrow keys, Home, End; print for a PDF</footer>
<script>
  const slides = [...document.querySelectorAll("section")];
  let at = 0;
  function show(number) {{
    at = Math.min(Math.max(number, 0), slides.length - 1);
    slides.forEach((slide, index) => slide.classList.toggle("shown", index === at));
    document.getElementById("number").textContent = at + 1;
    history.replaceState(null, "", `#${{at + 1}}`);
  }}
  addEventListener("keydown", ({{ key }}) => {{
    const moves = {{ ArrowRight: at + 1, PageDown: at + 1, " ": at + 1, ArrowLeft: at - 1, PageUp: at - 1,
      Home: 0, End: slides.length }};
    if (key in moves) show(moves[key]);
  }});
  addEventListener("click", ({{ clientX }}) => show(clientX > innerWidth / 3 ? at + 1 : at - 1));
  show((Number.parseInt(location.hash.slice(1), 10) || 1) - 1);
</script>
"""


def make_slides(text: str) -> str:
    """Return the page with a section for each part of the text; lines of three dashes separate them."""
    parts = FRONT_MATTER.sub("", text).split("\n---\n")
    sections = []
    for part in parts:
        html = Markdown(extensions=["includes"]).convert(part.strip())
        sections.append(f"<section>\n{html}\n</section>")
    return PAGE.format(sections="\n".join(sections), count=len(parts))


def main(folder: Path) -> None:
    """Write slides.html into a folder of the site that has the pictures of the course beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    text = (DOCS / "teach" / "slides.md").read_text(encoding="utf8")
    (folder / "slides.html").write_text(make_slides(text), encoding="utf8")


if __name__ == "__main__":
    main(DOCS.parent / "site" / "teach")
