"""`clearhead evaluate`: what a run scores on a split of its corpus."""

from __future__ import annotations

from pathlib import Path

from clearhead.decode.defaults import BEAM
from clearhead.verbs.options import Beam, JsonObject, LoadOptions, RunFolder


def evaluate(
    run: RunFolder,
    *overrides: str,
    split: str = "test",
    beam: Beam = BEAM,
    limit: int = 0,
    load: LoadOptions = LoadOptions(),
    json: JsonObject = False,
    report: Path | None = None,
) -> None:
    """Score a run on a split of its corpus: BLEU, perplexity, accuracy, correlation, depending on the task.

    Parameters
    ----------
    overrides
        Evaluate on other data than it was trained on: data.path=elsewhere data.test=test_2017
    split
        Which split of the corpus: test, valid, train, or another that the corpus has.
    limit
        Use only this many examples, from the first on; 0: all.
    report
        Write a page with the best and the worst examples (.html), or a picture (.png, .svg, .pdf).

    """
    from clearhead.evaluate.evaluation import with_other_data
    from clearhead.evaluate.report import check_report, show, write_report
    from clearhead.evaluate.scores import evaluate as measure

    if report:
        check_report(report)
    scores = measure(with_other_data(load.open(run), overrides), split, limit, beam)
    show(scores, json)
    if report:
        write_report(scores, report)
