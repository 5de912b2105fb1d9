"""`clearhead translate`: translations or summaries, by beam search or by sampling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from clearhead.bundled import run_and_texts
from clearhead.config import require
from clearhead.decode.defaults import BEAM, LENGTH_PENALTY
from clearhead.terminal.pipes import note, write_lines, write_objects
from clearhead.verbs.options import Beam, Flag, JsonLines, LoadOptions, read_texts_for, show_progress

if TYPE_CHECKING:
    from clearhead.decode.translate import SearchSettings, Translation
    from clearhead.runs import Run


@Parameter(name="*")
@dataclass(frozen=True)
class SearchOptions:
    """How to find a translation: by beam search, or by sampling."""

    beam: Beam = BEAM
    length_penalty: Annotated[
        float, Parameter(help=f"Above 0 favours longer translations; the paper uses {LENGTH_PENALTY}.")
    ] = LENGTH_PENALTY
    nbest: Annotated[
        int, Parameter(help="Translations to give for each text, best first, with their scores; samples may repeat.")
    ] = 1
    prefix: Annotated[str, Parameter(help="Each translation has to begin with this text.")] = ""
    sample: Annotated[Flag, Parameter(help="Sample the translations instead of searching for the best.")] = False
    temperature: Annotated[
        float, Parameter(help="With --sample: below 1 sharpens the distribution, above 1 flattens it.")
    ] = 1.0
    top_k: Annotated[int, Parameter(help="With --sample: from the k most likely tokens only; 0: from all.")] = 0
    top_p: Annotated[
        float, Parameter(help="With --sample: from the most likely tokens that together have this probability.")
    ] = 1.0
    seed: Annotated[
        int | None, Parameter(help="With --sample: the same seed gives the same text, with as many threads.")
    ] = None

    def searching(self) -> SearchSettings:
        """Return the same as settings of the decoder."""
        from clearhead.decode.sampling import SamplingSettings
        from clearhead.decode.translate import SearchSettings

        choice = SamplingSettings(self.temperature, self.top_k, self.top_p)
        require(
            self.sample or (choice == SamplingSettings() and self.seed is None),
            "--temperature, --top-k, --top-p and --seed are for sampling: add --sample",
        )
        sampled = choice if self.sample else None
        return SearchSettings(self.beam, self.length_penalty, self.nbest, sampled, self.seed, self.prefix)


def translate(
    *texts: str,
    search: SearchOptions = SearchOptions(),
    load: LoadOptions = LoadOptions(),
    json: JsonLines = False,
) -> None:
    """Translate or summarise texts with a run trained on pairs; without texts, each line of stdin.

    Parameters
    ----------
    texts
        What to translate; a text that is too long for the model is translated sentence by sentence. If the first is
        a run (its folder, or the name of one that comes with clearhead), it translates the others; by default
        english-french.

    """
    from clearhead.decode.translate import translate as translate_batch

    how = search.searching()
    run, given = run_and_texts(texts)
    opened = load.open(run, "translate")
    for batch in read_texts_for(opened, given):
        found = translate_batch(opened, batch, how, show_progress)
        unfinished = sum(not best.ended for best, *_ in found)
        if unfinished:
            note(f"{unfinished} of {len(batch)} translations reached the length limit and were cut off")
        note_other_numbers(opened, [(text, best.text) for text, (best, *_) in zip(batch, found, strict=True)])
        if json:
            pairs = zip(batch, found, strict=True)
            write_objects({"source": source, "translations": [asdict(each) for each in best]} for source, best in pairs)
        else:
            write_lines(line for best in found for line in lines_of(best, how.nbest))
        if how.seed is not None:
            how = replace(how, seed=how.seed + len(batch))  # each text has its own seed


def note_other_numbers(run: Run, pairs: Sequence[tuple[str, str]]) -> None:
    """Say how many translations have other numbers than their text, with the first of them."""
    from clearhead.decode.limits import has_other_numbers, shortened

    if not run.one_sentence:
        return  # it may write summaries, which leave numbers out
    changed = [pair for pair in pairs if has_other_numbers(*pair)]
    if changed:
        (text, translation), *_ = changed
        example = f"{shortened(text)!r} -> {shortened(translation)!r}"
        note(f"check the numbers in {len(changed):,} of {len(pairs):,} translations; they differ in {example}")


def lines_of(best: Sequence[Translation], nbest: int) -> list[str]:
    """Return a single translation as it is, several with their scores in front."""
    return [best[0].text] if nbest == 1 else [f"{each.score:.4f}\t{each.text}" for each in best]
