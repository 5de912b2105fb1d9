"""Results as one self-contained HTML page: scores, confusion matrix, score by length, best and worst examples.

All text of the corpus and of the model is escaped, so none of it can become HTML.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from html import escape

import numpy as np

from clearhead.evaluate.measures import class_f1
from clearhead.evaluate.results import Case, Results

EXTREMES = 12  # best and worst examples shown, of each
SHOWN_CHARACTERS = 1200  # characters shown of a text
GROUPS = 6  # number of length groups
STYLE = """
:root { color-scheme: light dark; --ink: light-dark(#1d2129, #e4e6ea); --pale: light-dark(#6a717c, #9aa1ac);
  --line: light-dark(#e3e5e9, #363b44); --paper: light-dark(#ffffff, #16181c); --card: light-dark(#f6f7f9, #1f2228);
  --blue: #2f6fb5; --right: light-dark(#d5efdc, #1e4a2c); --wrong: light-dark(#fbdcd3, #5f2a1c); }
* { box-sizing: border-box }
body { margin: 0 auto; max-width: 62rem; padding: 2.5rem 1.25rem 4rem; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif }
h1 { font-size: 1.6rem; margin: 0 } h2 { font-size: 1.1rem; margin: 2.5rem 0 .75rem }
p { margin: .25rem 0; color: var(--pale) }
.scores { display: grid; grid-template-columns: repeat(auto-fill, minmax(17rem, 1fr)); gap: .75rem; margin: 1.5rem 0 }
.scores div, .case { background: var(--card); border-radius: .6rem; padding: .9rem 1rem }
.scores b { display: block; font-size: 1.7rem; line-height: 1.2; font-variant-numeric: tabular-nums }
.scores small { display: block; color: var(--pale); overflow-wrap: anywhere }
table { border-collapse: collapse; font-variant-numeric: tabular-nums } .wide { overflow-x: auto }
th { font-weight: 500; color: var(--pale); text-align: left; padding: .3rem .7rem }
td { text-align: right; padding: .3rem .7rem; min-width: 3.5rem; border: 1px solid var(--line);
  background: color-mix(in srgb, var(--blue) var(--share, 0%), transparent) }
.lengths td { border: 0 } .lengths td:nth-child(2) { width: 24rem }
.lengths div { background: var(--blue); height: .8rem; border-radius: .2rem }
.case { margin-bottom: .6rem; display: grid; grid-template-columns: 6rem 1fr; gap: .15rem .75rem }
.case span { color: var(--pale) } .case div { overflow-wrap: anywhere; white-space: pre-wrap }
ins { background: var(--right); text-decoration: none } del { background: var(--wrong); text-decoration: none }
"""
HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
"""


def html_report(results: Results) -> str:
    """The whole page."""
    parts = [
        f"<h1>{escape(results.run)}</h1>",
        f"<p>{escape(results.about)}</p>",
        *score_cards(results),
        *(f"<p>{escape(note)}</p>" for note in results.notes),
        *confusion(results),
        *lengths(results),
        *examples(results),
    ]
    return HEAD.format(title=escape(results.run), style=STYLE) + "\n".join([*parts, "</body>", "</html>", ""])


def score_cards(results: Results) -> Iterator[str]:
    """One card for each score, with how it was computed."""
    yield '<div class="scores">'
    for score in results.scores:
        about = escape(score.about)
        yield f"<div>{escape(score.name)}<b>{score.value:,.2f}</b><small>{about}</small></div>"
    yield "</div>"


def confusion(results: Results) -> Iterator[str]:
    """The confusion matrix; the darker a cell, the larger its share of the row."""
    if not results.labels:
        return
    yield '<h2>Confusion matrix (rows: true class, columns: predicted class)</h2><div class="wide"><table>'
    heads = "".join(f"<th>{escape(name)}</th>" for name in (*results.labels, "F1"))
    yield f"<tr><th></th>{heads}</tr>"
    for name, row, f1 in zip(results.labels, results.confusion, class_f1(results.confusion), strict=True):
        total = max(1, sum(row))
        cells = "".join(f'<td style="--share: {70 * count / total:.0f}%">{count:,}</td>' for count in row)
        yield f"<tr><th>{escape(name)}</th>{cells}<td>{100 * f1:.1f}</td></tr>"
    yield "</table></div>"


def lengths(results: Results) -> Iterator[str]:
    """The mean score by length of the reference, for tasks that generate text."""
    written = [case for case in results.cases.each if {"reference", "output"} <= case.texts.keys()]
    if len(written) < 2 * GROUPS or results.labels:
        return
    sizes = np.array([len(case.texts["reference"].split()) for case in written])
    borders = np.unique(np.quantile(sizes, np.arange(1, GROUPS) / GROUPS))
    group_of = np.searchsorted(borders, sizes)  # texts of the same length are in the same group
    yield f'<h2>{escape(results.cases.by)} by the length of the reference</h2><table class="lengths">'
    for group in np.unique(group_of):
        members = np.flatnonzero(group_of == group)
        mean = 100 * sum(written[i].score for i in members) / len(members)
        least, most = sizes[members].min(), sizes[members].max()
        about = f"{least if least == most else f'{least} to {most}'} words, {len(members):,} examples"
        yield f'<tr><th>{about}</th><td><div style="width:{mean:.1f}%"></div></td><td>{mean:.1f}</td></tr>'
    yield "</table>"


def examples(results: Results) -> Iterator[str]:
    """The worst examples first, because they show most, then the best."""
    for title, some in zip(("Worst", "Best"), results.cases.extremes(EXTREMES), strict=True):
        if some:
            yield f"<h2>{title} examples, by {escape(results.cases.by)}</h2>"
            yield from map(example, some)


def example(case: Case) -> str:
    """One example, a line for each of its texts; words in which reference and output differ are marked."""
    texts = {name: escape(shortened(text)) for name, text in case.texts.items()}
    if {"reference", "output"} <= texts.keys():
        reference, output = case.texts["reference"], case.texts["output"]
        texts |= {"reference": marked(reference, output, "ins"), "output": marked(output, reference, "del")}
    rows = "".join(f"<span>{escape(name)}</span><div>{text}</div>" for name, text in texts.items())
    return f'<div class="case">{rows}<span>score</span><div>{case.score:.3f}</div></div>'


def marked(text: str, other: str, tag: str) -> str:
    """The escaped text, with `tag` around each word that `other` does not have in the same order."""
    ours, theirs = (re.split(r"(\s+)", shortened(each)) for each in (text, other))
    common = SequenceMatcher(a=ours, b=theirs, autojunk=False).get_matching_blocks()
    shared = {place for block in common for place in range(block.a, block.a + block.size)}
    return "".join(
        escape(word) if place in shared or not word.strip() else f"<{tag}>{escape(word)}</{tag}>"
        for place, word in enumerate(ours)
    )


def shortened(text: str) -> str:
    """The text, cut off if it is too long to show."""
    return text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + " …"
