"""Reports: self-contained pages with escaped text, images, JSON without NaN, signatures on one line."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from clearhead.evaluate.html_report import html_report
from clearhead.evaluate.report import as_json_object, show, write_report
from clearhead.evaluate.results import Case, Cases, Results, Score

HOSTILE = "<script>alert('x')</script> & \"quotes\" $x$ [red]"
SIGNATURE = "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0|and:longer|than:a|terminal:is"


def some_results(**changes: Any) -> Results:
    texts = {"source": HOSTILE, "reference": f"the {HOSTILE}", "output": f"a {HOSTILE}"}
    cases = Cases("ROUGE-L", [Case(i / 20, texts) for i in range(20)])
    scores = [Score("bleu", "BLEU", 12.3456, SIGNATURE), Score("odd", "odd", math.nan)]
    found = Results(HOSTILE, "translation", HOSTILE, "test", 20, scores, cases, [HOSTILE])
    return replace(found, **changes)


def test_a_page_is_self_contained_and_escapes_all_text() -> None:
    classes = some_results(labels=(HOSTILE, "b"), confusion=((3, 1), (0, 2)))
    for text in (html_report(some_results()), html_report(classes)):
        assert "<script" not in text
        assert not re.search(r"(src|href|url\(|@import|https?:)", text.split("<body>")[0])
        assert text.count("<div") == text.count("</div>")
        assert "12.35" in text
        assert SIGNATURE in text
        assert "Worst examples" in text
    assert "<ins>the</ins>" in html_report(some_results())
    assert "<del>a</del>" in html_report(some_results())
    assert "Confusion matrix" in html_report(classes)


@pytest.mark.parametrize("labels", [(), ("a$b$", HOSTILE)])
def test_a_picture_can_be_drawn_of_anything(tmp_path: Path, labels: tuple[str, ...]) -> None:
    pytest.importorskip("matplotlib")
    scores = some_results(labels=labels, confusion=((3, 1), (0, 2)) if labels else ())
    write_report(scores, tmp_path / "report.png")
    assert (tmp_path / "report.png").read_bytes().startswith(b"\x89PNG")


def test_numbers_in_json_are_rounded_and_nan_is_null() -> None:
    perfect = Score("perfect", "perfect", 100.00000000000004)
    scores = some_results(labels=("a", "b"), confusion=((3, 1), (0, 2)))
    text = json.dumps(as_json_object(replace(scores, scores=[*scores.scores, perfect])), allow_nan=False)
    read = json.loads(text)
    assert read["scores"] == {"bleu": 12.3456, "odd": None, "perfect": 100.0}
    assert read["f1"] == {"a": 85.714286, "b": 80.0}


def test_a_signature_stays_on_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    show(some_results(), as_json=False)
    _, bleu, odd, note = capsys.readouterr().out.splitlines()
    assert bleu == f"BLEU  12.35  {SIGNATURE}"
    assert odd.rstrip() == "odd     nan"
    assert note == HOSTILE
