"""The command line: which verbs there are, and what happens to errors. `clearhead X` is implemented in `verbs/X.py`."""

from __future__ import annotations

import atexit
import errno
import gc
import keyword
import os
import re
import sys
import threading
from typing import TYPE_CHECKING, Literal, NoReturn

from cyclopts import App, CycloptsError, UnknownCommandError, UnknownOptionError, UnusedCliTokensError

from clearhead import __version__
from clearhead.config import UserError, did_you_mean
from clearhead.habits import written_here
from clearhead.terminal.streams import harmless, open_streams

if TYPE_CHECKING:
    from rich.console import Group

# The help line of each verb: the first line of its docstring, here as well so that `clearhead --help` imports no verb.
VERBS = {
    "demo": "Train an English-French translator from scratch in minutes and show what it does; later without training.",
    "size": "Show parameters, FLOPs, memory and training time of a model, with the arithmetic behind each number.",
    "data": "List the corpora, or show one: sizes, vocabulary, lengths, and samples with their tokens in colour.",
    "train": "Train a recipe into a run folder; Ctrl-C saves, --resume continues as if it had never stopped.",
    "runs": "List the runs of a folder: task, parameters, size, score, steps, date, and the verb to use each with.",
    "plot": "Plot the loss of runs in the terminal, or loss, learning rate and gradient norm as a picture.",
    "translate": "Translate or summarise texts with a run trained on pairs; without texts, each line of stdin.",
    "generate": "Continue a prompt with a language model, as it is generated; without a prompt, each line of stdin.",
    "chat": "Chat with a run that was trained on conversations; type /help for what else you can do.",
    "classify": "Print the class of each text and its probability; without texts, of each line of stdin.",
    "embed": "Compute a vector for each text, or each line of stdin: an .npy file on stdout, or JSON lines.",
    "fill": "Fill each <mask> in a text with a masked language model; without texts, in each line of stdin.",
    "tokenize": "Show the tokens of texts in colour, with ids and counts; without texts, of each line of stdin.",
    "evaluate": "Score a run on a split of its corpus: BLEU, perplexity, accuracy, correlation, depending on the task.",
    "bench": "Measure training, decoding and start-up on this machine, in turns with other implementations.",
    "walk": "Follow a text through a run's model: every shape, attention as grids, likely next tokens, the search.",
    "explore": "Look inside a run's model in the browser: see every number, switch parts off, watch it learn.",
    "learn": "Learn by rebuilding: exercises with checks that name the mistake, your pieces in a real model, a quiz.",
    "serve": "Serve runs over HTTP, with continuous batching: a page, one endpoint per verb, and OpenAI's API.",
    "import": "Convert a Hugging Face model into a run: a folder, or a name on the hub; only safetensors are read.",
    "export": "Write a run for transformers, onnxruntime, torch or llama.cpp, or as a smaller run.",
}

SETTING_VERBS = (["train"], ["size"], ["data"])  # they take settings of a recipe
SECTIONS = ("model.", "tokenizer.", "data.", "train.")
OUT_OF_MEMORY = "can't allocate memory|not enough memory|out of memory|can't start new thread"  # torch, Python


def format_error(error: CycloptsError) -> Group:
    """Return what is wrong with a command line, and how to pass what may have been meant: a text, a setting, a row."""
    from cyclopts import CycloptsPanel
    from rich.console import Group

    verb = sys.argv[1:2]
    if isinstance(error, UnknownCommandError):
        word = (error.unused_tokens or verb)[0]
        near = did_you_mean(word, VERBS).capitalize()
        return Group(CycloptsPanel(f"Unknown command {word!r}. {near}".strip()), f"Commands: {', '.join(VERBS)}")
    given = (error.token.keyword or error.token.value or "") if isinstance(error, UnknownOptionError) else ""
    written = written_here(given)
    if written and (verb in SETTING_VERBS or not written.startswith(SECTIONS)):
        return Group(CycloptsPanel(f"Unknown option: {given}. Write {written}"))
    text = " " in given or (given.startswith("-") and not given.startswith("--"))
    setting = given.startswith("--") and ("." in given or verb in SETTING_VERBS)
    hint = ['A text that begins with a dash goes after --: translate RUN -- "-5 degrees"'] if text else []
    hint += [f"Settings are written without dashes: {setting_of(given)}"] if setting else []
    row = isinstance(error, UnusedCliTokensError) and verb == ["bench"]
    hint += ["Rows are chosen with --only: clearhead bench --only start"] if row else []
    return Group(CycloptsPanel(error), *hint)


def setting_of(option: str) -> str:
    """Return the settings with the name of an option; an example if there are none."""
    from clearhead.recipes import settings_named

    return settings_named(option.lstrip("-").partition("=")[0].replace("-", "_")) or "train.steps=500"


app = App(
    name="clearhead",
    help="A Transformer with nothing hidden: build, train, use and look inside all three families.",
    version=__version__,
    suppress_keyboard_interrupt=False,  # it would exit by itself, without exit_interrupted
    help_format="plaintext",  # parsing Markdown would take a third of the start-up time
    error_formatter=format_error,
)
for verb, line in VERBS.items():
    name = f"{verb}_" if keyword.iskeyword(verb) else verb  # of the file and of the function in it
    app.command(f"clearhead.verbs.{name}:{name}", name=verb, help=line)  # imported when it is called


@app.command
def completion(shell: Literal["bash", "zsh", "fish"]) -> None:
    """Print a script with which a shell completes verbs and options after the tab key.

    Parameters
    ----------
    shell
        The shell that reads the script.

    """
    sys.stdout.write(app.generate_completion(shell=shell))


def main() -> None:
    """Run a verb; print an error that the user can fix as one sentence, not as a traceback.

    Exit codes: 0 success, 1 an error that the user can fix, 2 an invalid command line, 130 interrupted by Ctrl-C.
    """
    open_streams()
    atexit.register(gc.freeze)  # collecting all objects of torch when Python exits would take 0.4 s
    words = sys.argv[1:]
    if words[:1] in (["help"], ["version"]):
        words = [*words[1:], f"--{words[0]}"]
    try:
        require_working_folder()
        app(words, result_action="return_value")
        sys.stdout.flush()
    except UserError as error:
        sys.exit(harmless(f"clearhead: {error}", sys.stderr))
    except OSError as error:
        sys.exit(harmless(f"clearhead: {refusal_of_system(error)}", sys.stderr))
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError) and not re.search(OUT_OF_MEMORY, str(error)):
            raise
        remedy = "shorter texts, a narrower beam, smaller batches (data.batch_tokens), a smaller model"
        sys.exit(f"clearhead: there is not enough memory for this; what needs less: {remedy}")
    except KeyboardInterrupt:
        exit_interrupted()


def require_working_folder() -> None:
    """Refuse to work in a folder that was deleted: torch ends the process there."""
    try:
        os.getcwd()
    except FileNotFoundError as error:
        raise UserError("the current folder has been deleted; change to one that exists: cd FOLDER") from error


def refusal_of_system(error: OSError) -> str:
    """Return what the system has refused, and the remedy if there is a usual one."""
    from clearhead.files import problem_of

    place = f"{error.filename}: " if error.filename else ""
    remedy = "; change its permissions, or choose another path" if isinstance(error, PermissionError) else ""
    if error.errno == errno.EMFILE:
        remedy = "; allow more in this shell: ulimit -n 1024"
    return f"{place}{problem_of(error)}{remedy}"


def exit_interrupted() -> NoReturn:
    """Exit with 130; at once if a thread still trains a tokenizer in Rust code, which Python's own exit can crash."""
    if any(thread.name == "tokenizer" for thread in threading.enumerate()):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(130)
    sys.exit(130)
