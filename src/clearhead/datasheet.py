"""`clearhead data`: which corpora there are; what one of them holds, with samples and their tokens in colour."""

from __future__ import annotations

import itertools
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.padding import Padding
from rich.progress import Progress, SpinnerColumn, TextColumn
from rich.table import Table
from rich.text import Text as RichText

from clearhead.config import Recipe, UserError, build, override, suggest
from clearhead.recipes import load_recipe, recipe_names
from clearhead.text.chat import render, show
from clearhead.text.colour import show_tokens
from clearhead.text.corpora.catalogue import EMBEDDED
from clearhead.text.corpora.readers.files import format_of, unpacked_name, visible_files
from clearhead.text.corpora.readers.records import texts_of
from clearhead.text.corpora.readers.tables import csv_records, json_array, json_lines, tsv_records
from clearhead.text.corpora.sources import open_corpus, report_of
from clearhead.text.examples import Corpus, Dialogue, Example, Labelled, Pair, Similar
from clearhead.text.tokenizer import Tokenizer, load_tokenizer, train_tokenizer

RECORDS: dict[str, Callable[[Path], Iterator[tuple[int, Any]]]] = {  # the first rows of a table, by its ending
    ".tsv": tsv_records,
    ".csv": csv_records,
    ".json": json_array,
}
EXAMPLE = (
    "data.task=classification data.text=FIELD data.label=FIELD, or data.task=chat data.source=FIELD data.target=FIELD"
)
WORD = re.compile(r"\w+|[^\w\s]")
LOOK = 20_000  # examples of train that the tokenizer and the histogram are made from
BAR = 40  # characters of the longest bar


def list_corpora() -> None:
    """Print every corpus that comes with clearhead, and the recipes that name others."""
    console = Console(highlight=False)
    table = Table(title="embedded corpora: written here, drawn from a seed, no network needed", **PLAIN)
    for corpus in EMBEDDED.values():
        table.add_row(f"[bold cyan]{corpus.name}[/]", corpus.task, corpus.about)
    console.print(table)
    recipes = [load_recipe(name) for name in recipe_names()]
    if others := [recipe for recipe in recipes if recipe.data.path]:
        table = Table(title="\nrecipes for files of your own (data.path=...)", **PLAIN)
        for recipe in others:
            table.add_row(f"[bold cyan]{recipe.name}[/]", recipe.data.task, recipe.about)
        console.print(table)
    console.print("\nLook inside: [bold]clearhead data phrasebook[/], or a file or folder of your own.")


PLAIN: dict[str, Any] = {
    "box": None,
    "show_header": False,
    "title_justify": "left",
    "title_style": "bold",
    "pad_edge": False,
}


def settings_of(name: str, overrides: Sequence[str]) -> Recipe:
    """What a name on the command line means: an embedded corpus, a recipe, a Hugging Face data set, files."""
    if name in EMBEDDED:
        tree: dict[str, Any] = {"data": {"corpus": name, "task": EMBEDDED[name].task}}
    elif name.endswith(".toml") or name in recipe_names():
        return load_recipe(name, overrides)
    elif name.startswith("hf:"):
        tree = {"data": {"corpus": name}}
    elif Path(name).expanduser().exists():
        guessed = guess(Path(name).expanduser())
        if not guessed and not any(item.startswith("data.task=") for item in overrides):
            raise UserError(f"{name} holds {describe(Path(name).expanduser())}; say what to read: {EXAMPLE}")
        tree = {"data": {"path": name, **guessed}}
    else:
        known = [*EMBEDDED, *recipe_names()]
        raise UserError(f"{name!r} is no corpus, no recipe and no file; {suggest(name, known)}")
    return build(Recipe, override(Recipe, tree, overrides))


def guess(path: Path) -> dict[str, str]:
    """What files are probably for, by their endings; overrides can say otherwise."""
    files = [path] if path.is_file() else visible_files(path)
    formats = {format_of(file) for file in files}
    endings = Counter(Path(unpacked_name(file)).suffix[1:] for file in files if format_of(file) == ".txt")
    endings.pop("txt", None)
    if len(endings) >= 2:  # train.en and train.de: English first where it is there, else in alphabetical order
        source, target = sorted(endings, key=lambda ending: (ending != "en", ending))[:2]
        return {"task": "translation", "source": source, "target": target}
    return {"task": "language"} if formats == {".txt"} else {}


def describe(path: Path) -> str:
    """The first of some files, and the fields of its first row."""
    files = [path] if path.is_file() else visible_files(path)
    if not files:
        return "no files"
    first = files[0]
    _, row = next(RECORDS.get(format_of(first), json_lines)(first), (0, {}))
    fields = [f"{number} ({value[:20]!r})" for number, value in enumerate(row, 1)] if isinstance(row, list) else [*row]
    return f"a table, {first.name}, with the fields {', '.join(fields)}"


@dataclass
class SplitCount:
    """What was counted in one split."""

    examples: int = 0
    words: Counter[str] = field(default_factory=Counter)
    first: list[Example] = field(default_factory=list)

    def add(self, example: Example) -> None:
        """Count one example."""
        self.examples += 1
        for text in texts_of(example):
            self.words.update(WORD.findall(text))
        if len(self.first) < LOOK:
            self.first.append(example)


def count_splits(corpus: Corpus) -> dict[str, SplitCount]:
    """Read every split once, with a progress bar on a terminal."""
    counts = {split: SplitCount() for split in corpus.splits}
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TextColumn("{task.completed:,} examples"))
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as progress:
        for split, count in counts.items():
            bar = progress.add_task(f"reading {split}", total=None)
            for example in corpus.read(split):
                count.add(example)
                progress.advance(bar)
    return counts


def show_corpus(recipe: Recipe, samples: int) -> None:
    """Print sizes, vocabulary coverage, a histogram of lengths, and samples."""
    console = Console(highlight=False)
    corpus = open_corpus(recipe.data)
    counts = count_splits(corpus)
    console.print(f"[bold]{corpus.name}[/]: {corpus.task}")
    console.print(size_table(counts))
    for split in corpus.splits:
        for line in report_of(corpus, split).lines():
            console.print(f"[yellow]{split}: {line}[/]")
    train = counts["train"].first
    tokenizer = tokenizer_for(recipe, train)
    console.print(histogram(train, tokenizer))
    console.print(f"\n[bold]samples[/] of train, cut by a tokenizer of {tokenizer.vocab:,} tokens")
    for example in train[:samples]:
        console.print(Padding(sample(example, tokenizer), (0, 0, 1, 2)))


def size_table(counts: dict[str, SplitCount]) -> Table:
    """Examples and words of each split, and how many of its words train knows."""
    known = counts["train"].words
    table = Table(box=None, header_style="dim", pad_edge=False)
    table.add_column("split")
    for name in ("examples", "words", "words each", "different", "known from train"):
        table.add_column(name, justify="right")
    for split, count in counts.items():
        total = count.words.total()
        covered = sum(n for word, n in count.words.items() if word in known)
        table.add_row(
            split,
            f"{count.examples:,}",
            f"{total:,}",
            f"{total / max(1, count.examples):.1f}",
            f"{len(count.words):,}",
            "" if split == "train" else f"{covered / max(1, total):.2%}",
        )
    return table


def tokenizer_for(recipe: Recipe, examples: list[Example]) -> Tokenizer:
    """The tokenizer that the recipe names, or one trained on some of the examples."""
    if recipe.tokenizer.path:
        return load_tokenizer(Path(recipe.tokenizer.path))
    return train_tokenizer(recipe.tokenizer, (text for example in examples for text in texts_of(example)))


def histogram(examples: list[Example], tokenizer: Tokenizer) -> Group:
    """How long examples are, in tokens: a bar for each range of lengths."""
    texts = [texts_of(example) for example in examples]
    lengths = sorted(sum(map(len, tokenizer.encode_batch(list(parts)))) for parts in texts)
    low, high = lengths[0], lengths[int(0.99 * (len(lengths) - 1))]
    width = max(1, -(-(high - low + 1) // 12))
    bins = Counter(min((length - low) // width, 11) for length in lengths)
    tallest = max(bins.values())
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(justify="right", style="dim")
    table.add_column(style="cyan")
    table.add_column(justify="right")
    for i in range(max(bins) + 1):
        begin, end = low + i * width, low + (i + 1) * width - 1
        if i == max(bins):
            end = max(end, lengths[-1])
        label = f"{begin:,}" if begin == end else f"{begin:,} to {end:,}"
        table.add_row(label, "█" * round(BAR * bins[i] / tallest) or "▏", f"{bins[i] / len(lengths):.1%}")
    title = f"\n[bold]tokens of an example[/] (median {lengths[len(lengths) // 2]:,}, longest {lengths[-1]:,})"
    return Group(RichText.from_markup(title), table)


def sample(example: Example, tokenizer: Tokenizer) -> Group | RichText:
    """One example, its tokens in colour."""
    if isinstance(example, Dialogue):
        return show(render(example, tokenizer), tokenizer)
    lines = Table(box=None, show_header=False, pad_edge=False)
    lines.add_column(style="dim", no_wrap=True)
    lines.add_column()
    for name, text in named_parts(example):
        lines.add_row(name, show_tokens(text[:1500], tokenizer))
    return Group(lines)


def named_parts(example: Example) -> Iterator[tuple[str, str]]:
    """The parts of an example and what to call them."""
    match example:
        case Pair():
            yield from (("source", example.source), ("target", example.target))
        case Labelled():
            yield from ((example.label, example.text),)
        case Similar():
            yield from ((f"{example.score:.2f}", example.first), ("", example.second))
            if example.negative:
                yield "not", example.negative
        case _:
            yield from zip(itertools.repeat(""), texts_of(example), strict=False)
