"""`clearhead tokenize`: the tokens of a text, in colour, with their ids and their number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clearhead.bundled import find_run, run_and_texts
from clearhead.config import require
from clearhead.recipes import load_recipe, recipe_names
from clearhead.terminal.pipes import read_texts, write_objects
from clearhead.verbs.options import Flag, JsonLines

if TYPE_CHECKING:
    from clearhead.text.tokenizer import Tokenizer, Tokenizers


def tokenize(*texts: str, target: Flag = False, json: JsonLines = False) -> None:
    """Show the tokens of texts in colour, with ids and counts; without texts, of each line of stdin.

    Parameters
    ----------
    texts
        What to tokenize. If the first is a run, a tokenizer.json (ours or Hugging Face's), or a recipe, whose tokenizer
        is then trained, it tokenizes the others; by default the run english-french.
    target
        Where source and target have tokenizers of their own: use that of the target.

    """
    from rich.text import Text

    from clearhead.terminal.colour import show_tokens
    from clearhead.terminal.console import plain_console

    files = {text for text in texts[:1] if text.endswith((".json", ".toml"))}
    name, given = run_and_texts(texts, {*recipe_names(), *files})
    both = find_tokenizers(name)
    tokenizer = both.target if target else both.source
    console = plain_console(soft_wrap=True)
    for batch in read_texts(given):
        if json:
            write_objects(as_object(text, tokenizer) for text in batch)
            continue
        for text in batch:
            count = len(tokenizer.encode(text))
            counts = ((count, "token"), (len(text), "character"), (len(text.encode()), "byte"))
            about = ", ".join(f"{number:,} {unit}{'' if number == 1 else 's'}" for number, unit in counts)
            console.print(Text.assemble(show_tokens(text, tokenizer, ids=True), (f"\n{about}", "dim")))


def as_object(text: str, tokenizer: Tokenizer) -> dict[str, object]:
    """Return the tokens of a text, their ids and their number."""
    pieces = tokenizer.pieces(text)
    tokens = [piece for piece, _ in pieces]
    return {"text": text, "tokens": tokens, "ids": [number for _, number in pieces], "count": len(pieces)}


def find_tokenizers(name: str) -> Tokenizers:
    """Return the tokenizers of a run or a file; those of a recipe are trained first, as `clearhead train` does."""
    if name in recipe_names() or name.endswith(".toml"):
        from clearhead.train.prepare import prepare_tokenizers

        return prepare_tokenizers(load_recipe(name))
    from clearhead.text.tokenizer import load_tokenizers

    path = find_run(name)
    require(
        path.exists(),
        f"{name!r} is not a run, a tokenizer.json or a recipe; the recipes are {', '.join(recipe_names())}",
    )
    return load_tokenizers(path)
