"""A trace draws itself in a notebook: the model with its tensors, static, and safe to show."""

from __future__ import annotations

import base64
import re
from html.parser import HTMLParser
from io import BytesIO
from typing import Any

import pytest
import torch

from clearhead.inspect.notebook import colours, png
from clearhead.inspect.trace import trace
from explored_runs import KINDS, opened
from tiny_runs import TEXT


class Balance(HTMLParser):
    """Every element is closed in its turn."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        if tag not in ("img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def image_of(data: bytes) -> Any:
    pillow = pytest.importorskip("PIL.Image", reason="Pillow is not installed: pip install pillow")
    return pillow.open(BytesIO(data))


@pytest.mark.parametrize("kind", KINDS)
def test_every_family_draws_itself(kind: str) -> None:
    traced = trace(opened(kind), TEXT)
    html = traced._repr_html_()
    found = Balance()
    found.feed(html)
    assert found.open == []
    assert "script" not in found.seen
    assert "http" not in html
    for name in (name for name in traced if name.endswith(".weights")):
        assert f'title="{name}"' in html
    assert ("next token" in html) == (opened(kind).recipe.model.head == "vocabulary")


def test_pictures_have_a_pixel_for_each_cell() -> None:
    traced = trace(opened("translator"), TEXT, "a cat")
    html = traced._repr_html_()
    name = "decoder.blocks.0.cross_attention.weights"
    [data] = re.findall(f'title="{name}"[^>]*base64,([^"]+)"', html)
    picture = image_of(base64.b64decode(data))
    weights = traced[name][0].mean(0)
    assert picture.size == (weights.size(1), weights.size(0))
    darkest = min(
        ((x, y) for x in range(picture.width) for y in range(picture.height)), key=lambda at: sum(picture.getpixel(at))
    )
    assert weights[darkest[1], darkest[0]] == weights.max()


def test_signs_are_purple_and_green() -> None:
    (below, zero, above) = colours(torch.tensor([[-1.0, 0.0, 1.0]]), positive=False)[0].tolist()
    assert below[0] > below[1] < below[2]
    assert above[1] > above[0]
    assert min(zero) > 240
    assert image_of(png(torch.zeros(2, 3, 3, dtype=torch.uint8))).size == (3, 2)


def test_text_is_shown_as_text_and_a_closed_trace_says_so() -> None:
    with trace(opened("writer"), "<b>a</b> <script>alert(1)</script>") as traced:
        assert "<script" not in traced._repr_html_()
    assert "0 tensors" in traced._repr_html_()
