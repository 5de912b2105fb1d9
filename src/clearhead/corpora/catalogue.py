"""All built-in corpora by name."""

from __future__ import annotations

import dataclasses

from clearhead.config import UserError, suggest
from clearhead.corpora import headlines, instructions, paraphrases, phrasebook, reviews, stories
from clearhead.corpora.generated import GeneratedCorpus

CORPORA: dict[str, GeneratedCorpus] = {
    module.CORPUS.name: module.CORPUS for module in (phrasebook, stories, reviews, headlines, instructions, paraphrases)
}


def built_in_corpus(name: str, size: int = 100_000, seed: int = 0) -> GeneratedCorpus:
    """The corpus of this name, with `size` training examples drawn from `seed`."""
    if name not in CORPORA:
        raise UserError(f"data.corpus = {name!r}: there is no built-in corpus of this name; {suggest(name, CORPORA)}")
    if size < 1:
        raise UserError(f"data.size = {size}: a built-in corpus needs at least 1 training example")
    return dataclasses.replace(CORPORA[name], size=size, seed=seed)
