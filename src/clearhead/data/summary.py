"""What a corpus contains: sizes, vocabulary, lengths and samples, as tables for the terminal."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console, Group
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text as RichText

from clearhead.config import DataConfig, Recipe, require
from clearhead.corpora.generated import GeneratedCorpus
from clearhead.data.examples import Corpus, Document, Example, LabelledText, Pair, SentencePair, texts_of
from clearhead.data.sources import document_parts, open_corpus, report_of
from clearhead.tasks import TASKS
from clearhead.terminal.colour import show_tokens
from clearhead.terminal.progress import track
from clearhead.text.chat import render, show
from clearhead.text.dialogue import Dialogue
from clearhead.text.tokenizer import Tokenizer, load_tokenizer, train_tokenizer

WORD = re.compile(r"\w+|[^\w\s]")
LOOK = 3_000_000  # characters of a split that its words, the tokenizer and the histogram are made from
BARS = 12  # of the histogram
BAR = 40  # characters of its longest bar
LONGEST_SAMPLE = 1500  # characters


@dataclass
class SplitCount:
    """What was counted in one split: all examples, and the words of those that came first."""

    examples: int = 0
    looked_at: int = 0
    characters: int = 0
    words: Counter[str] = field(default_factory=Counter)
    first: list[Example] = field(default_factory=list)

    def add(self, example: Example, whole: bool = True) -> None:
        """Count one example, or one piece of a document that is too long to be looked at in one."""
        self.examples += whole
        if self.characters > LOOK:
            return
        self.looked_at += whole
        self.first.append(example)
        for text in texts_of(example):
            self.characters += len(text)
            self.words.update(WORD.findall(text))


def count_splits(corpus: Corpus) -> dict[str, SplitCount]:
    """Read every split once, with a progress bar; a built-in corpus knows its sizes and is read in part."""
    counts = {split: SplitCount() for split in corpus.splits}
    for split, count in counts.items():
        for example, whole in track(examples_of(corpus, split), f"reading {split}", unit="examples"):
            count.add(example, whole)
            if isinstance(corpus, GeneratedCorpus) and count.characters > LOOK:
                count.examples = corpus.count(split)
                break
    return counts


def examples_of(corpus: Corpus, split: str) -> Iterator[tuple[Example, bool]]:
    """Examples, and whether each is whole: documents come in pieces, since one may be larger than memory."""
    if TASKS[corpus.task].example == "document":
        return ((Document(piece.text), piece.last) for piece in document_parts(corpus, split))
    return ((example, True) for example in corpus.read(split))


def show_corpus(recipe: Recipe, samples: int) -> None:
    """Print sizes, vocabulary coverage, a histogram of lengths, and samples."""
    require(samples >= 0, f"--samples {samples}: must not be negative")
    console = Console(highlight=False)
    corpus = open_corpus(recipe.data)
    counts = count_splits(corpus)
    console.print(f"[bold]{escape(corpus.name)}[/]: {corpus.task}")
    console.print(size_table(counts))
    for split, count in counts.items():
        if count.looked_at < count.examples:
            console.print(f"[dim]{split}: words are those of the first {count.looked_at:,} examples[/]")
        for line in report_of(corpus, split).lines():
            console.print(f"[yellow]{split}: {escape(line)}[/]")
    train = counts["train"].first
    tokenizer = tokenizer_for(recipe, train)
    console.print(histogram(train, tokenizer, recipe.data))
    console.print(f"\n[bold]samples[/] of train, cut by a tokenizer of {tokenizer.vocab:,} tokens")
    for example in train[:samples]:
        console.print(Padding(sample(example, tokenizer), (0, 0, 1, 2)))


def size_table(counts: dict[str, SplitCount]) -> Table:
    """Examples and words of each split, and how many of its words train knows."""
    known = counts["train"].words
    table = Table(box=None, header_style="dim", pad_edge=False)
    table.add_column("split")
    for name in ("examples", "words each", "vocabulary", "known from train"):
        table.add_column(name, justify="right")
    for split, count in counts.items():
        total = count.words.total()
        covered = sum(n for word, n in count.words.items() if word in known)
        table.add_row(
            split,
            f"{count.examples:,}",
            f"{total / max(1, count.looked_at):,.1f}",
            f"{len(count.words):,}",
            "" if split == "train" else f"{covered / max(1, total):.2%}",
        )
    return table


def tokenizer_for(recipe: Recipe, examples: list[Example]) -> Tokenizer:
    """The tokenizer that the recipe names, or one trained on some of the examples."""
    if recipe.tokenizer.path:
        tokenizer = load_tokenizer(Path(recipe.tokenizer.path))
        return tokenizer.extended(*special) if (special := TASKS[recipe.data.task].special_tokens) else tokenizer
    return train_tokenizer(recipe.tokenizer, (text for example in examples for text in texts_of(example)))


def length_of(example: Example, tokenizer: Tokenizer) -> int:
    """Tokens of its longest sequence, with the special ones: what `data.max_length` is compared with."""
    if isinstance(example, Dialogue):
        return len(render(example, tokenizer).ids) - 1
    longest = max(map(len, tokenizer.encode_batch(texts_of(example))))
    return longest + (2 if isinstance(example, LabelledText | SentencePair) else 1)  # [start] and [end], or one of them


def histogram(examples: list[Example], tokenizer: Tokenizer, config: DataConfig) -> Group:
    """How long examples are, in tokens: a bar for each range of lengths, and what is too long."""
    lengths = sorted(length_of(example, tokenizer) for example in examples)
    low, high = lengths[0], lengths[int(0.99 * (len(lengths) - 1))]
    width = max(1, -(-(high - low + 1) // BARS))
    bins = Counter(min((length - low) // width, BARS - 1) for length in lengths)
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(justify="right", style="dim")
    table.add_column(style="cyan")
    table.add_column(justify="right")
    for i in range(max(bins) + 1):
        begin, end = low + i * width, low + (i + 1) * width - 1
        if i == max(bins):
            end = max(end, lengths[-1])
        label = f"{begin:,}" if begin == end else f"{begin:,} to {end:,}"
        table.add_row(label, "█" * round(BAR * bins[i] / max(bins.values())) or "▏", f"{bins[i] / len(lengths):.1%}")
    title = (
        f"\n[bold]tokens of the longest sequence[/] (median {lengths[len(lengths) // 2]:,}, longest {lengths[-1]:,})"
    )
    return Group(RichText.from_markup(title), table, RichText(limit_note(lengths, config), style="dim"))


def limit_note(lengths: list[int], config: DataConfig) -> str:
    """What `data.max_length` means for these lengths."""
    task = TASKS[config.task]
    if task.example == "document" and "pack" in task.settings and config.pack:
        return f"running text: packed into blocks of data.max_length = {config.max_length}"
    over = sum(length > config.max_length for length in lengths) / len(lengths)
    fate = {"drop": "dropped", "truncate": "truncated", "error": "an error"}[config.too_long]
    return f"{over:.1%} are longer than data.max_length = {config.max_length} and will be {fate}"


def sample(example: Example, tokenizer: Tokenizer) -> Group | RichText:
    """One example, its tokens in colour."""
    if isinstance(example, Dialogue):
        return show(render(example, tokenizer), tokenizer, bars=True)
    lines = Table(box=None, show_header=False, pad_edge=False)
    lines.add_column(style="dim", no_wrap=True)
    lines.add_column()
    for name, text in named_parts(example):
        lines.add_row(RichText(name), show_tokens(text[:LONGEST_SAMPLE], tokenizer))
    return Group(lines)


def named_parts(example: Example) -> Iterator[tuple[str, str]]:
    """The parts of an example and what to call them."""
    match example:
        case Pair(source, target):
            yield from (("source", source), ("target", target))
        case LabelledText(text, label):
            yield label, text
        case SentencePair(first, second, score, negative):
            yield from ((f"{score:.2f}", first), ("", second))
            if negative:
                yield "not", negative
        case Document(text):
            yield "", text
