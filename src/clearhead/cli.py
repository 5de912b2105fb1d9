"""The command line: one verb, one function. What a verb needs is imported inside it, so that help comes at once."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from clearhead import __version__
from clearhead.config import UserError

app = App(
    name="clearhead",
    help="A Transformer with nothing hidden: build, train, use and look inside all three families.",
    version=__version__,
    help_format="plaintext",  # Markdown would cost a third of the start-up time
)


def main() -> None:
    """Run a verb; what the user can put right is said in a sentence, not in a traceback."""
    try:
        app()
    except UserError as error:
        sys.exit(f"clearhead: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:  # `| head` has seen enough
        sys.stderr.close()
        sys.exit(0)


@app.command
def demo() -> None:
    """Build each family, walk a batch through it, show every shape on the way."""
    from clearhead.demo import walk_families

    walk_families()


@app.command
def size(
    name: str,
    *overrides: str,
    batch: int = 32,
    length: int = 128,
    tokens: float = 1e9,
    gpus: int = 1,
    gpu: str = "h100",
    utilisation: float = 0.4,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Parameters, FLOPs, memory and training time of a model, with the arithmetic that gives them.

    Parameters
    ----------
    name
        A preset (paper-base, gpt2, bert-base, ...), a recipe's name, or the path of a recipe.
    overrides
        Changes to its settings: model.layers=12 model.d_model=768
    batch
        Sequences in one step.
    length
        Tokens of one sequence; of source and target each, in an encoder-decoder.
    tokens
        Tokens to train on; in an encoder-decoder target tokens, with as many of the source.
    gpus
        How many GPUs share the work.
    gpu
        Which: p100, t4, v100, l4, a100, rtx4090, h100, h200, b200.
    utilisation
        The part of their peak that training reaches; 0.3 to 0.5 is usual.
    json
        Write one JSON object instead of tables.

    """
    from clearhead.envelope import Training, named_model, show

    show(name, named_model(name, overrides), Training(batch, length, tokens, gpu, gpus, utilisation), json)


@app.command
def data(name: str = "", *overrides: str, samples: int = 5) -> None:
    """List corpora; or show one: sizes, vocabulary, lengths, and samples with their tokens in colour.

    Parameters
    ----------
    name
        An embedded corpus, a recipe, hf:NAME for a Hugging Face data set, or a file or folder of your own.
    overrides
        Settings of the data and of the tokenizer: data.source=en data.target=de tokenizer.vocab=4000
    samples
        How many examples to show.

    """
    from clearhead.datasheet import list_corpora, settings_of, show_corpus

    if name:
        show_corpus(settings_of(name, overrides), samples)
    else:
        list_corpora()


@app.command
def train(
    recipe: str,
    *overrides: str,
    run: Path | None = None,
    resume: bool = False,
    dry_run: Annotated[bool, Parameter(negative="")] = False,
    plot_schedule: Annotated[bool, Parameter(negative="")] = False,
    out: Path | None = None,
) -> None:
    """Train a recipe into a run folder; Ctrl-C saves, and --resume goes on as if nothing had happened.

    Parameters
    ----------
    recipe
        The name of a recipe, or the path of a .toml file.
    overrides
        Changes to its settings: train.steps=500 model.layers=2
    run
        The folder to train into; runs/NAME by default.
    resume
        Go on with a run that was stopped.
    dry_run
        Show the data, a batch in words, the model, its memory and time, and take some steps; write nothing.
    plot_schedule
        Show the learning rate over the steps instead.
    out
        With --plot-schedule: a .png, .svg or .pdf file for the picture.

    """
    from clearhead.recipes import load_recipe

    loaded = load_recipe(recipe, overrides)
    if out and not plot_schedule:
        raise UserError(f"--out {out} is for the picture of --plot-schedule; where to train into is --run")
    if plot_schedule:
        from clearhead.train.plot import plot_schedule as plot

        plot(loaded, out)
    elif dry_run:
        from clearhead.train.dry_run import dry_run as try_out

        try_out(loaded)
    else:
        from clearhead.train.run import train as train_run

        train_run(loaded, run or Path("runs") / loaded.name, resume)


@app.command
def plot(*runs: Path, out: Path | None = None) -> None:
    """Draw the loss of runs in the terminal; or loss, learning rate and gradient as a picture.

    Parameters
    ----------
    runs
        Run folders; several are drawn over each other.
    out
        A .png, .svg or .pdf file for the picture.

    """
    from clearhead.train.plot import plot_runs

    plot_runs(runs, out)
