"""Which corpus the settings mean: a built-in one, your own files, or a Hugging Face data set."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

from clearhead import corpora
from clearhead.config import DataConfig, UserError, require
from clearhead.data.examples import Corpus, Document
from clearhead.data.readers.documents import DocumentPart, split_document
from clearhead.data.readers.files import digest_of, visible_files
from clearhead.data.readers.folder import FolderCorpus
from clearhead.data.readers.hub import HubCorpus
from clearhead.data.report import Report
from clearhead.tasks import TASKS


def open_corpus(config: DataConfig) -> Corpus:
    """Open the corpus that `data.corpus` or `data.path` names."""
    if config.path:
        return FolderCorpus(config)
    if config.corpus.startswith("hf:"):
        return HubCorpus(config)
    require(
        config.corpus != "",
        "no corpus: set data.corpus to a built-in one (`clearhead data` lists them) or data.path to your own files",
    )
    from clearhead.corpora.catalogue import built_in_corpus

    corpus = built_in_corpus(config.corpus, config.size, config.seed)
    require(
        TASKS[corpus.task].example == TASKS[config.task].example,
        f"data.corpus = {config.corpus!r} is made for data.task = {corpus.task!r}, not {config.task!r}; "
        f"change one of the two",
    )
    require(
        not config.hold_out,
        f"data.hold_out = {config.hold_out}: data.corpus = {config.corpus!r} has a split 'valid' of its own, so "
        f"nothing is held out of train; set data.hold_out = 0",
    )
    return corpus


def fingerprint_of(corpus: Corpus, config: DataConfig, split: str) -> str:
    """A hash of the content of a split: of the bytes of its files, or of the code that generates a built-in corpus."""
    if split not in corpus.splits:
        raise UserError(f"{corpus.name} has no split {split!r}; it has {', '.join(corpus.splits)}")
    if isinstance(corpus, FolderCorpus | HubCorpus):
        return corpus.fingerprint(split)
    code = [path for path in visible_files(Path(corpora.__file__).parent) if path.suffix != ".pyc"]
    return f"{digest_of(code)} {corpus.name} {config.size} {config.seed}"


def document_parts(corpus: Corpus, split: str) -> Iterator[DocumentPart]:
    """The documents of a split, in parts of moderate length."""
    if isinstance(corpus, FolderCorpus):
        yield from corpus.document_parts(split)
        return
    for example in corpus.read(split):
        assert isinstance(example, Document)
        yield from split_document(example.text)


def where_is(corpus: Corpus, split: str, number: int) -> str:
    """The location of an example, given its number in the split, counted from 0."""
    if isinstance(corpus, FolderCorpus | HubCorpus) and TASKS[corpus.task].example != "document":
        location, _ = next(itertools.islice(corpus.read_located(split), number, None))
        return str(location)
    return f"{corpus.name} {split}: example {number + 1:,}"


def report_of(corpus: Corpus, split: str) -> Report:
    """What was left out when the split was last read."""
    return corpus.reports.get(split, Report()) if isinstance(corpus, FolderCorpus | HubCorpus) else Report()
