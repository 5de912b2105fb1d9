"""`clearhead import`: a model of another library becomes a run."""

from __future__ import annotations

from clearhead.terminal.pipes import note
from clearhead.verbs.options import NewRunFolder


def import_(source: str, run: NewRunFolder) -> None:
    """Convert a Hugging Face model into a run: a folder, or a name on the hub; only safetensors are read.

    Parameters
    ----------
    source
        A folder with config.json, tokenizer and weights, or the name of a model on the hub.
    run
        The folder of the new run, which must be empty or missing.

    """
    from clearhead.exchange.huggingface import import_model
    from clearhead.recipes import load_recipe
    from clearhead.train.watching.card import next_command

    for line in import_model(source, run):
        note(line)
    note(f"the run is in {run}; next: {next_command(load_recipe(str(run / 'run.toml')), run)}")
