"""What a corpus contains: sizes, vocabulary, lengths and samples, as tables for the terminal."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text as RichText

from clearhead.config import DataConfig, Recipe, require
from clearhead.corpora.generated import GeneratedCorpus
from clearhead.data.examples import Corpus, Document, Example, LabelledText, Pair, SentencePair, texts_of
from clearhead.data.sources import document_parts, open_corpus, report_of
from clearhead.tasks import TASKS
from clearhead.terminal.colour import show_dialogue, show_tokens
from clearhead.terminal.console import plain_console
from clearhead.terminal.progress import track
from clearhead.text.chat import render
from clearhead.text.dialogue import Dialogue
from clearhead.text.tokenizer import Tokenizer, load_tokenizer, train_tokenizer

WORD = re.compile(r"\w+|[^\w\s]")
INSPECTED = 3_000_000  # characters of a split from which words, tokenizer and histogram are computed
BARS = 12  # of the histogram
BAR = 40  # characters of its longest bar
LONGEST_SAMPLE = 1500  # characters; the rest is not shown


@dataclass
class SplitCount:
    """The counts of one split: of all examples, and of the words in the first ones."""

    examples: int = 0
    inspected: int = 0  # examples whose words are counted
    characters: int = 0  # in those
    words: Counter[str] = field(default_factory=Counter)
    first: list[Example] = field(default_factory=list)  # examples, or parts of documents
    complete: list[bool] = field(default_factory=list)  # for each of these: whether an example ends with it

    def add(self, example: Example, whole: bool = True) -> None:
        """Count one example, or one part of a document; `whole` is False for all but the last part."""
        self.examples += whole
        if self.characters > INSPECTED:
            return
        self.inspected += whole
        self.first.append(example)
        self.complete.append(whole)
        for text in texts_of(example):
            self.characters += len(text)
            self.words.update(WORD.findall(text))


def count_splits(corpus: Corpus) -> dict[str, SplitCount]:
    """Read every split once, with a progress bar; a built-in corpus knows its sizes and is read in part."""
    counts = {split: SplitCount() for split in dict.fromkeys(("train", *corpus.splits))}  # train must exist
    for split, count in counts.items():
        for example, whole in track(examples_of(corpus, split), f"reading {split}", unit="examples"):
            count.add(example, whole)
            if isinstance(corpus, GeneratedCorpus) and count.characters > INSPECTED:
                count.examples = corpus.count(split)
                break
    return counts


def examples_of(corpus: Corpus, split: str) -> Iterator[tuple[Example, bool]]:
    """Return the examples; documents in parts, since one may not fit into memory, with False for all but the last."""
    if TASKS[corpus.task].example == "document":
        return ((Document(part.text), part.last) for part in document_parts(corpus, split))
    return ((example, True) for example in corpus.read(split))


def show_corpus(recipe: Recipe, samples: int) -> None:
    """Print sizes, vocabulary coverage, a histogram of lengths, and samples."""
    require(samples >= 0, f"--samples {samples}: must not be negative")
    console = plain_console()
    corpus = open_corpus(recipe.data)
    counts = count_splits(corpus)
    train = counts["train"].first
    require(bool(train), f"{corpus.name} has no train examples; {'; '.join(report_of(corpus, 'train').lines())}")
    console.print(RichText.assemble((corpus.name, "bold"), f": {corpus.task}"))
    console.print(size_table(counts))
    for split, count in counts.items():
        if count.inspected < count.examples:
            console.print(f"{split}: words are counted in the first {count.inspected:,} examples", style="dim")
        for line in report_of(corpus, split).lines():
            console.print(f"{split}: {line}", style="yellow")
    tokenizer = tokenizer_for(recipe, train)
    console.print(histogram(lengths_of(counts["train"], tokenizer), recipe.data))
    about = f" of train, tokenized with a vocabulary of {tokenizer.vocab:,}"
    console.print(RichText.assemble(("\nsamples", "bold"), about))
    for example in train[:samples]:
        console.print(Padding(sample(example, tokenizer), (0, 0, 1, 2)))


def size_table(counts: dict[str, SplitCount]) -> Table:
    """Return the examples and words of each split, and which part of its words occurs in train."""
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
            f"{total / max(1, count.inspected):,.1f}",
            f"{len(count.words):,}",
            "" if split == "train" else f"{covered / max(1, total):.2%}",
        )
    return table


def tokenizer_for(recipe: Recipe, examples: list[Example]) -> Tokenizer:
    """Return the tokenizer that the recipe names, or one trained on these examples."""
    if recipe.tokenizer.path:
        special = TASKS[recipe.data.task].special_tokens
        tokenizer = load_tokenizer(Path(recipe.tokenizer.path))
        return tokenizer.extended(*special) if special else tokenizer
    return train_tokenizer(recipe.tokenizer, (text for example in examples for text in texts_of(example)))


def length_of(example: Example, tokenizer: Tokenizer) -> int:
    """Return the tokens of its longest sequence, special ones included: what `data.max_length` limits."""
    if isinstance(example, Dialogue):
        return len(render(example, tokenizer).ids) - 1
    longest = max(map(len, tokenizer.encode_batch(texts_of(example))))
    return longest + (2 if isinstance(example, LabelledText | SentencePair) else 1)  # [start] and [end], or one of them


def lengths_of(count: SplitCount, tokenizer: Tokenizer) -> list[int]:
    """Return the tokens of each example that was inspected, sorted; those of the parts of a document are added up."""
    lengths = []
    total = 0
    for example, complete in zip(count.first, count.complete, strict=True):
        total += length_of(example, tokenizer) - (total > 0)  # the end of a document is counted once
        if complete:
            lengths.append(total)
            total = 0
    return sorted([*lengths, total] if total else lengths)


def histogram(lengths: list[int], config: DataConfig) -> Group:
    """Return how long examples are, in tokens: a bar for each range of lengths, and how many are too long."""
    low = lengths[0]
    high = lengths[int(0.99 * (len(lengths) - 1))]  # the longest one in a hundred share the last bar
    width = max(1, -(-(high - low + 1) // BARS))
    bins = Counter(min((length - low) // width, BARS - 1) for length in lengths)
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(justify="right", style="dim")
    table.add_column(style="cyan")
    table.add_column(justify="right")
    for i in range(max(bins) + 1):
        begin = low + i * width
        end = begin + width - 1
        if i == max(bins):
            end = max(end, lengths[-1])
        label = f"{begin:,}" if begin == end else f"{begin:,} to {end:,}"
        table.add_row(label, "█" * round(BAR * bins[i] / max(bins.values())) or "▏", f"{bins[i] / len(lengths):.1%}")
    range_of_lengths = f" (median {lengths[len(lengths) // 2]:,}, longest {lengths[-1]:,})"
    title = RichText.assemble(("\ntokens of the longest sequence", "bold"), range_of_lengths)
    return Group(title, table, RichText(limit_note(lengths, config), style="dim"))


def limit_note(lengths: list[int], config: DataConfig) -> str:
    """Return what `data.max_length` means for these lengths."""
    task = TASKS[config.task]
    if task.example == "document" and "pack" in task.settings and config.pack:
        return f"running text: packed into blocks of data.max_length = {config.max_length}"
    over = sum(length > config.max_length for length in lengths) / len(lengths)
    handling = {"drop": "dropped", "truncate": "truncated", "error": "rejected with an error"}[config.too_long]
    return f"{over:.1%} are longer than data.max_length = {config.max_length} and will be {handling}"


def sample(example: Example, tokenizer: Tokenizer) -> Group | RichText:
    """Return one example with its tokens in colour."""
    if isinstance(example, Dialogue):
        return show_dialogue(render(example, tokenizer), tokenizer, bars=True)
    lines = Table(box=None, show_header=False, pad_edge=False)
    lines.add_column(style="dim", no_wrap=True)
    lines.add_column()
    for name, text in named_parts(example):
        lines.add_row(RichText(name), show_tokens(text[:LONGEST_SAMPLE], tokenizer))
    return Group(lines)


def named_parts(example: Example) -> Iterator[tuple[str, str]]:
    """Yield the texts of an example, each with a name."""
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
