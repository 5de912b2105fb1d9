"""A Markdown extension: formulas as MathML, and blocks whose content comes from the code when the site is built.

A block with one of these languages holds the name of what takes its place:

    source     a class, function or method: clearhead.model.attention.masked_softmax
    computed   a text that a script wrote, of docs/course/computed
    settings   a class of settings in config.py, as a table
    commands   `all`: every verb with its options
    quiz       a chapter of the course: its three questions
    answers    a chapter of the course: the answers to its questions

A link in the line below a block leads readers of the Markdown file to what it shows; the site leaves it out.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from xml.etree.ElementTree import Element

from from_code import commands, computed, questions, settings, source
from latex2mathml.converter import convert
from markdown import Markdown
from markdown.extensions import Extension
from markdown.inlinepatterns import InlineProcessor
from markdown.preprocessors import Preprocessor
from markdown.treeprocessors import Treeprocessor

BLOCK = re.compile(
    r"^```(source|computed|settings|commands|quiz|answers)\n(.*?)\n```$(?:\n\[[^\]\n]+\]\([^)\n]+\)$)?",
    re.DOTALL | re.MULTILINE,
)
FENCE = re.compile(r"^(```+).*?^\1$", re.DOTALL | re.MULTILINE)
DISPLAY = re.compile(r"^\$\$(.+?)\$\$$", re.DOTALL | re.MULTILINE)
INLINE = r"(?<![\\$\w])\$(?![\s$])([^$\n]+?)(?<![\s\\])\$(?![\w$])"
OUTSIDE = re.compile(r"(\.\./)+(src|tests|recipes|bench|examples|[A-Z]+\.md)")

FILLED: dict[str, Callable[[str], str]] = {
    "source": source,
    "computed": computed,
    "settings": settings,
    "commands": commands,
    "quiz": lambda chapter: questions(chapter, answers=False),
    "answers": lambda chapter: questions(chapter, answers=True),
}


def fill(text: str) -> str:
    """Return a page with its blocks filled."""
    return BLOCK.sub(lambda found: FILLED[found[1]](found[2].strip()), text)


class Blocks(Preprocessor):
    """Fills blocks and draws displayed formulas, before anything else reads the page."""

    def run(self, lines: list[str]) -> list[str]:
        """The lines of the page, with the content of its blocks."""
        text = fill("\n".join(lines))
        parts, end = [], 0
        for fence in FENCE.finditer(text):
            parts += [self.draw(text[end : fence.start()]), fence[0]]
            end = fence.end()
        return "".join([*parts, self.draw(text[end:])]).split("\n")

    def draw(self, text: str) -> str:
        """Displayed formulas as MathML."""
        return DISPLAY.sub(lambda found: self.md.htmlStash.store(convert(found[1].strip(), display="block")), text)


class InlineFormula(InlineProcessor):
    """A formula between two dollar signs."""

    def handleMatch(self, m: re.Match[str], data: str) -> tuple[str, int, int]:  # noqa: ARG002, N802
        """The formula as MathML."""
        return self.md.htmlStash.store(convert(m[1])), m.start(0), m.end(0)


class OutsideLinks(Treeprocessor):
    """Links to files of the repository that are not part of the site: the text stays, the link goes."""

    def run(self, root: Element) -> None:
        """Remove the address of each link that leads out of docs/."""
        for link in root.iter("a"):
            if OUTSIDE.match(link.get("href", "")):
                link.tag = "span"
                link.attrib.pop("href")


class Enlarged(Treeprocessor):
    """Pictures that open alone when they are clicked: on a phone their labels are small."""

    def run(self, root: Element) -> None:
        """Put each picture into a link to itself."""
        for parent in list(root.iter()):
            for index, picture in enumerate(list(parent)):
                if picture.tag == "img" and parent.tag != "a":
                    link = Element("a", {"href": picture.get("src", ""), "title": "Open the picture alone"})
                    link.tail = picture.tail
                    picture.tail = None
                    link.append(picture)
                    parent[index] = link


class Includes(Extension):
    """All of the above."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802
        """Register the processors."""
        md.preprocessors.register(Blocks(md), "filled-blocks", 27)  # after white space, before fences
        md.inlinePatterns.register(InlineFormula(INLINE, md), "formula", 185)  # after code, before escapes
        md.treeprocessors.register(OutsideLinks(md), "outside-links", 1)
        md.treeprocessors.register(Enlarged(md), "enlarged", 2)


def makeExtension(**settings: object) -> Includes:  # noqa: N802
    """What Markdown calls."""
    return Includes(**settings)
