"""The command line: one verb, one function. What a verb needs is imported inside it, so that help comes at once."""

# ruff: noqa: D417 - what several verbs share is explained once, by its type

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, CycloptsError, Parameter, UnknownOptionError

from clearhead import __version__
from clearhead.config import UserError, Weights

if TYPE_CHECKING:
    from rich.console import Group

Flag = Annotated[bool, Parameter(negative="", show_default=False)]
RunFolder = Annotated[Path, Parameter(help="The folder of a run.")]
Beam = Annotated[int, Parameter(help="Translations that are tried side by side; 1: greedy search.")]
Temperature = Annotated[float, Parameter(help="Below 1 bolder towards the likely, above 1 wilder.")]
TopP = Annotated[float, Parameter(help="Only among the likeliest tokens that together have this probability.")]
Greedy = Annotated[Flag, Parameter(help="Always the likeliest token: nothing is drawn.")]
Held = Annotated[Weights, Parameter(help="Matrices in fewer bits, on a CPU: smaller, faster, a little less exact.")]
Device = Annotated[str, Parameter(help="Where to compute: cpu, cuda, mps; auto: the best there is.")]
JsonLines = Annotated[Flag, Parameter(help="Write one JSON object a line.")]
JsonObject = Annotated[Flag, Parameter(help="Write one JSON object instead of tables.")]

NOTHING_DRAWN = "--greedy always takes the likeliest token: leave it out, or what says how to draw (--temperature, ...)"


def explained(error: CycloptsError) -> Group:
    """What is wrong with a command line; of an unknown option that may be a text, how to give one."""
    from cyclopts import CycloptsPanel
    from rich.console import Group

    given = (error.token.keyword or error.token.value or "") if isinstance(error, UnknownOptionError) else ""
    text = " " in given or (given.startswith("-") and not given.startswith("--"))
    hint = ['A text that begins with a dash goes behind --: translate RUN -- "-5 degrees"'] if text else []
    return Group(CycloptsPanel(error), *hint)


app = App(
    name="clearhead",
    help="A Transformer with nothing hidden: build, train, use and look inside all three families.",
    version=__version__,
    help_format="plaintext",  # Markdown would cost a third of the start-up time
    error_formatter=explained,
)


def main() -> None:
    """Run a verb; what the user can put right is said in a sentence, not in a traceback.

    Exit codes: 0 all is well, 1 something to put right, 2 not a command line of ours, 130 stopped by Ctrl-C.
    """
    try:
        app(sys.argv[1:], result_action="return_value")
        sys.stdout.flush()  # here a closed pipe can still be dealt with
    except UserError as error:
        sys.exit(f"clearhead: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:  # `| head` has seen enough
        from clearhead.terminal.pipes import forget_stdout

        forget_stdout()


@app.command
def demo(*overrides: str, run: Path = Path("runs/demo")) -> None:
    """Train an English-French translator from nothing, in minutes, and show it at work; later without training.

    Parameters
    ----------
    overrides
        Changes to the settings of the recipe `phrasebook`: train.steps=100
    run
        The folder to train into.

    """
    from clearhead.verbs.demo import demo as show

    show(run, overrides)


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
    json: JsonObject = False,
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

    """
    from clearhead.verbs.size import Training, named_recipe, show

    show(name, named_recipe(name, overrides), Training(batch, length, tokens, gpu, gpus, utilisation), json)


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
    from clearhead.verbs.data import list_corpora, settings_of, show_corpus

    if name:
        show_corpus(settings_of(name, overrides), samples)
    else:
        list_corpora()


@app.command
def train(
    recipe: str,
    *overrides: str,
    run: Path | None = None,
    resume: Flag = False,
    dry_run: Flag = False,
    plot_schedule: Flag = False,
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
        from clearhead.train.watching.plot import plot_schedule as plot

        plot(loaded, out)
    elif dry_run:
        from clearhead.train.watching.dry_run import dry_run as try_out

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
    from clearhead.train.watching.plot import plot_runs

    plot_runs(runs, out)


@app.command
def translate(
    run: RunFolder,
    *texts: str,
    beam: Beam = 4,
    length_penalty: float = 0.6,
    nbest: int = 1,
    prefix: str = "",
    sample: Flag = False,
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
    seed: int | None = None,
    weights: Held = "float32",
    device: Device = "auto",
    json: JsonLines = False,
) -> None:
    """Translate texts, or sum them up: with any run that was trained on pairs; without texts, the lines of stdin.

    Parameters
    ----------
    texts
        What to translate; a text that is too long for the model is translated sentence by sentence.
    length_penalty
        Above 0, a longer translation may be less likely; the paper has 0.6.
    nbest
        How many translations to give of each text, best first, with their scores; drawn ones may repeat.
    prefix
        How each translation has to begin.
    sample
        Draw the translations by chance instead.
    temperature
        With --sample: below 1 bolder towards the likely, above 1 wilder.
    top_k
        With --sample: only among the k likeliest tokens; 0: all.
    top_p
        With --sample: only among the likeliest tokens that together have this probability.
    seed
        With --sample: the same seed gives the same text.

    """
    from clearhead.decode.sampling import Choice
    from clearhead.decode.translate import Searching
    from clearhead.verbs.using import open_for, translate_texts

    choice = Choice(temperature, top_k, top_p)
    if not sample and (choice != Choice() or seed is not None):
        raise UserError("--temperature, --top-k, --top-p and --seed are for drawing by chance: add --sample")
    how = Searching(beam, length_penalty, nbest, choice if sample else None, seed, prefix)
    translate_texts(open_for(run, device, weights, "translation"), texts, how, json)


@app.command
def generate(
    run: RunFolder,
    *prompts: str,
    tokens: int = 200,
    temperature: Temperature = 0.8,
    top_k: int = 0,
    top_p: TopP = 0.95,
    min_p: float = 0.0,
    repetition_penalty: float = 1.0,
    seed: int | None = None,
    greedy: Greedy = False,
    weights: Held = "float32",
    device: Device = "auto",
    json: JsonLines = False,
) -> None:
    """Let a language model go on with a text, as it is written; without a prompt, with each line of stdin.

    Parameters
    ----------
    prompts
        How the text begins; "" for a text from nothing.
    tokens
        New tokens at most.
    top_k
        Only among the k likeliest tokens; 0: all.
    min_p
        Only among tokens at least this fraction as likely as the likeliest.
    repetition_penalty
        Above 1, what was said before becomes less likely.
    seed
        The same seed gives the same text.

    """
    from clearhead.decode.sampling import Choice
    from clearhead.verbs.using import generate_texts, open_for

    choice = Choice(temperature, top_k, top_p, min_p, repetition_penalty)
    if greedy and choice != Choice(0.8, top_p=0.95):
        raise UserError(NOTHING_DRAWN)
    how = None if greedy else choice
    generate_texts(open_for(run, device, weights, "language", "chat"), prompts, tokens, how, seed, json)


@app.command
def chat(
    run: RunFolder,
    *,
    system: str = "",
    tokens: int = 256,
    temperature: Temperature = 0.7,
    top_p: TopP = 0.9,
    seed: int | None = None,
    greedy: Greedy = False,
    weights: Held = "float32",
    device: Device = "auto",
) -> None:
    """Talk with a run that was trained on conversations; /help says what else you can type.

    Parameters
    ----------
    system
        A message of the system, before the conversation begins.
    tokens
        Tokens of an answer at most.
    seed
        The same seed gives the same answers.

    """
    from clearhead.decode.sampling import Choice
    from clearhead.verbs.chat import Conversation
    from clearhead.verbs.chat import chat as talk
    from clearhead.verbs.using import open_for

    choice = Choice(temperature, top_p=top_p)
    if greedy and choice != Choice(0.7, top_p=0.9):
        raise UserError(NOTHING_DRAWN)
    talk(Conversation(open_for(run, device, weights, "chat"), tokens, None if greedy else choice, seed, system))


@app.command
def classify(
    run: RunFolder, *texts: str, weights: Held = "float32", device: Device = "auto", json: Flag = False
) -> None:
    """The class of each text and its probability; without texts, of the lines of stdin.

    Parameters
    ----------
    texts
        What to read; a text that is too long is read in windows, and what they say is averaged.
    json
        Write one JSON object a line, with all probabilities.

    """
    from clearhead.verbs.using import classify_texts, open_for

    classify_texts(open_for(run, device, weights, "classification"), texts, json)


@app.command
def embed(
    run: RunFolder,
    *texts: str,
    similar: Flag = False,
    weights: Held = "float32",
    device: Device = "auto",
    json: JsonLines = False,
) -> None:
    """A vector for each text, or of each line of stdin: an .npy file on stdout, or JSON lines.

    Parameters
    ----------
    texts
        What to read; a text that is too long is read in windows, and their vectors are averaged.
    similar
        Compare the texts instead: how close each is to every other, from -1 to 1.

    """
    from clearhead.verbs.using import compare_texts, embed_texts, open_for

    (compare_texts if similar else embed_texts)(open_for(run, device, weights, "similarity"), texts, json)


@app.command
def evaluate(
    run: RunFolder,
    *overrides: str,
    split: str = "test",
    beam: Beam = 4,
    limit: int = 0,
    device: Device = "auto",
    weights: Held = "float32",
    json: JsonObject = False,
    report: Path | None = None,
) -> None:
    """Measure a run on a split of its corpus: by BLEU, perplexity, accuracy, correlation, as its task wants it.

    Parameters
    ----------
    overrides
        Other data than it was trained on: data.path=elsewhere data.test=test_2017
    split
        Which part of its corpus: test, valid, train, or another that the corpus has.
    limit
        Only so many examples, from the first on; 0: all.
    report
        A .html file for a page with the best and the worst examples; or a picture: .png, .svg, .pdf.

    """
    from clearhead.evaluate.evaluation import with_other_data
    from clearhead.evaluate.report import check_report, show, write_report
    from clearhead.evaluate.scores import evaluate as measure
    from clearhead.library import load
    from clearhead.verbs.using import device_for

    if report:
        check_report(report)
    opened = with_other_data(load(run, device_for(device, weights), weights).run, overrides)
    scores = measure(opened, split, limit, beam)
    show(scores, json)
    if report:
        write_report(scores, report)


@app.command
def walk(
    run: RunFolder,
    text: str,
    *,
    target: str | None = None,
    layer: int | None = None,
    step: Flag = False,
) -> None:
    """Follow a text through a run's model: every shape, attention as grids, what is likely next, the search.

    Parameters
    ----------
    text
        What the model reads; for a masked language model, with <mask> in place of a word.
    target
        A translation to follow, or how a text goes on; by default what the model itself writes.
    layer
        Show this block of each stack only, counted from 0.
    step
        Pause after each part.

    """
    from clearhead.glass.walk import walk as walk_through

    walk_through(run, text, target, layer, step)


@app.command
def explore(
    run: Path | None = None,
    other: str = "",
    *,
    html: Path | None = None,
    host: str = "127.0.0.1",
    port: int = 8642,
    browser: Annotated[bool, Parameter(name="--open", negative="--no-open")] = True,
) -> None:
    """Look inside a run's model in the browser: see every number, switch parts off, watch it learn; or write one file.

    Parameters
    ----------
    run
        The folder of a run; by default the newest in runs/.
    other
        A second run to compare with; with --html, the text to show.
    html
        Write one self-contained file instead: clearhead explore RUN --html out.html "the red car is fast"
    host
        Who may look: 127.0.0.1 is this machine only.
    port
        Where the page is; 0: any free port.
    browser
        Open the page in the browser.

    """
    from clearhead.glass.web.server import newest_run, serve

    chosen = run or newest_run(Path("runs"))
    if html:
        from clearhead.glass.web.share import write_page

        write_page(chosen, other, html)
    else:
        serve([chosen, Path(other)] if other else [chosen], host, port, browser)
