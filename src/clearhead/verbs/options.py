"""Options that several verbs share. Each dataclass is a group of them, which cyclopts adds to the options of a verb."""

# Annotations are evaluated here, unlike elsewhere: cyclopts looks up their names in the module of a subclass.

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from clearhead.config import Weights, require
from clearhead.terminal.pipes import note, read_texts
from clearhead.terminal.progress import track

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cyclopts import Token

    from clearhead.decode.batching import PaddedBatch
    from clearhead.decode.sampling import SamplingSettings
    from clearhead.runs import Run


def folder_path(_: type, tokens: "Sequence[Token]") -> Path:
    """Return the folder of an option; an empty name is refused, because it would mean the current folder."""
    require(bool(tokens[0].value.strip()), "an empty name is not a folder")
    return Path(tokens[0].value)


DELAY = 2.0  # seconds until a progress bar is drawn

Flag = Annotated[bool, Parameter(negative="", show_default=False)]
NewRunFolder = Annotated[Path, Parameter(converter=folder_path)]
RunFolder = Annotated[Path, Parameter(help="The folder of a run, or the name of one that comes with clearhead.")]
Beam = Annotated[int, Parameter(help="Beam width: hypotheses kept at each step; 1 is greedy search.")]
Temperature = Annotated[float, Parameter(help="Below 1 sharpens the distribution, above 1 flattens it.")]
TopK = Annotated[int, Parameter(help="Sample from the k most likely tokens only; 0: from all.")]
TopP = Annotated[float, Parameter(help="Sample from the most likely tokens that together have this probability.")]
Seed = Annotated[int | None, Parameter(help="The same seed gives the same text, with the same number of threads.")]
JsonLines = Annotated[Flag, Parameter(help="Write one JSON object per line.")]
JsonObject = Annotated[Flag, Parameter(help="Write one JSON object instead of tables.")]


@Parameter(name="*")
@dataclass(frozen=True)
class LoadOptions:
    """How the weights of a run are stored in memory, and on which device."""

    weights: Annotated[
        Weights,
        Parameter(
            help="How to store matrices; fewer bits are faster and slightly less exact. auto: float32 on a CPU, "
            "bfloat16 on a GPU; float16 is for CPUs, bfloat16 for those with units for it, int8 for CPUs and, with "
            "--device cuda, for large models."
        ),
    ] = "auto"
    device: Annotated[str, Parameter(help="Device to compute on: cpu, cuda, mps; auto: the fastest available.")] = (
        "auto"
    )

    def open(self, folder: str | Path, verb: str = "") -> "Run":
        """Open a run on the device; if a verb is given, the run must be one that it can be used with."""
        from clearhead.device import choose_decoding_device
        from clearhead.library import load

        run = load(folder, str(choose_decoding_device(self.device, self.weights)), self.weights).run
        if verb:
            run.require_verb(verb)
        return run


def read_texts_for(run: "Run", arguments: Sequence[str], empty: bool = True) -> Iterator[list[str]]:
    """Yield texts as `read_texts` does; warn about each that is unlike the data that the run was trained on."""
    named: set[str] = set()
    for batch in read_texts(arguments, empty):
        for text in batch:
            warn_about(run, text, named)
        yield batch


def warn_about(run: "Run", text: str, named: set[str] | None = None) -> None:
    """Warn about texts that are unlike the training data; each unknown word is named once."""
    from clearhead.decode.limits import shortened, warnings_about

    for warning in warnings_about(run, text, named):
        note(f"{shortened(text)!r}: {warning}")


def show_progress(batches: "Iterable[PaddedBatch]", total: int) -> "Iterable[PaddedBatch]":
    """Yield the same batches; draw a progress bar if they take long, as those of a very long text do."""
    return track(batches, "computing", total, "spans", lambda batch: len(batch.members), total == 1, DELAY)


@Parameter(name="*")
@dataclass(frozen=True)
class SamplingOptions:
    """How the next token is chosen; each verb has its own defaults, and may add fields of `SamplingSettings`."""

    temperature: Temperature = 1.0
    top_p: TopP = 1.0
    seed: Seed = None
    greedy: Annotated[Flag, Parameter(help="Take the most likely token at each step instead of sampling.")] = False

    def choice(self) -> "SamplingSettings | None":
        """Return how to sample, or None for greedy decoding, which no sampling option may come with."""
        from clearhead.decode.sampling import SamplingSettings

        given = {field.name: getattr(self, field.name) for field in fields(self)}
        del given["seed"], given["greedy"]
        choice = SamplingSettings(**given)
        if not self.greedy:
            return choice
        require(
            self == replace(type(self)(), seed=self.seed, greedy=True),
            "--greedy takes the most likely token at each step, so nothing is sampled: leave out --greedy, or the "
            "sampling options (--temperature, ...)",
        )
        return None
