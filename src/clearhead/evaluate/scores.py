"""The scores of a run: what each task is measured by, on every example of a split.

    translation      BLEU, lower-cased BLEU, chrF, exact match, ROUGE-L of what it writes
    chat             exact match and ROUGE-L of each answer, and how likely the true answers are
    language         perplexity of a token and of a word, bits of a byte
    masked           how many hidden tokens it finds, and how likely they are
    classification   accuracy, F1, which class is taken for which
    similarity       correlation of cosines with the true scores; is the right sentence the nearest of all?

References are the corpus's own text, never text that went through a tokenizer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace

import torch
from torch import Tensor

from clearhead.config import require
from clearhead.data.batches import Batch, Side
from clearhead.data.encode import open_store_of
from clearhead.data.examples import Dialogue
from clearhead.data.loader import Batches, open_batches
from clearhead.data.sources import open_corpus, pieces_of
from clearhead.decode.embed import classify, embed
from clearhead.decode.translate import Searching, translate
from clearhead.evaluate import measures
from clearhead.evaluate.dialogues import answers, true_answers
from clearhead.evaluate.exam import Case, Cases, Exam, Score, Scores
from clearhead.evaluate.likelihood import Extremes, Likelihood, Windows, count_text, likelihood_of
from clearhead.runs import Run

GREEDY = "decoding: greedy search"
SHOWN = 5  # of the best and of the worst cases, where not all are remembered
AT_ONCE = 1024  # sentences that are compared with all others


def evaluate(run: Run, split: str = "test", limit: int = 0, beam: int = 4, quiet: bool = False) -> Scores:
    """Measure a run on (the first examples of) a split of its corpus; a beam of 1 is greedy search."""
    require(limit >= 0, f"limit = {limit}: must not be negative; 0 takes all examples")
    require(beam >= 1, f"beam = {beam}: must be at least 1, which is greedy search")
    splits = open_corpus(run.recipe.data).splits
    require(
        split in splits,
        f"split {split!r}: {open_corpus(run.recipe.data).name} has none of this name; it has {', '.join(splits)}",
    )
    score = {
        "translation": score_pairs,
        "chat": score_dialogues,
        "language": score_documents,
        "masked": score_guesses,
        "classification": score_classes,
        "similarity": score_similarities,
    }[run.recipe.data.task]
    return score(Exam(run, split, limit, beam, quiet))


# --- what a model writes ----------------------------------------------------------------------------------------------


def score_pairs(exam: Exam) -> Scores:
    """Translations and summaries, against the one reference there is."""
    pairs = exam.examples()
    sources, references = [pair.source for pair in pairs], [pair.target for pair in pairs]
    found = translate(exam.run, sources, Searching(exam.beam), exam.watch("translating", len(sources)))
    outputs = [best.text for best, *_ in found]
    bleu, lower, chrf = (
        measure(outputs, references) for measure in (measures.bleu, measures.lower_cased_bleu, measures.chrf)
    )
    cases = [
        Case(measures.rouge_l(output, reference), {"source": source, "reference": reference, "output": output})
        for source, reference, output in zip(sources, references, outputs, strict=True)
    ]
    scores = [
        Score("bleu", "BLEU", bleu.value, bleu.signature),
        Score("bleu-lower", "BLEU, lower-cased, tokenized by 13a", lower.value, lower.signature),
        Score("chrf", "chrF", chrf.value, chrf.signature),
        *written_scores(outputs, references, cases),
    ]
    limit = (exam.run.longest or exam.run.recipe.data.max_length) - 1
    notes = [
        f"decoding: beam of {exam.beam}, length penalty {Searching().length_penalty}" if exam.beam > 1 else GREEDY,
        *exam.long_note(sources, limit, "translated sentence by sentence"),
    ]
    return exam.scores(len(pairs), scores, Cases("ROUGE-L", cases), notes)


def score_dialogues(exam: Exam) -> Scores:
    """Every answer of a conversation, after what was really said before it."""
    dialogues: list[Dialogue] = exam.examples()
    begun = [
        (Dialogue(each.messages[:turn]), message.content)
        for each in dialogues
        for turn, message in enumerate(each.messages)
        if message.role == "assistant"
    ]
    outputs, shortened = answers(exam.run, [prompt for prompt, _ in begun], exam.watch("answering", len(begun)))
    references = [reference for _, reference in begun]
    cases = [
        Case(
            measures.rouge_l(output, reference),
            {"prompt": prompt.messages[-1].content, "reference": reference, "output": output},
        )
        for (prompt, reference), output in zip(begun, outputs, strict=True)
    ]
    found = likelihood_of(exam.run, true_answers(exam.run, dialogues))
    scores = [*written_scores(outputs, references, cases), token_perplexity(found, "of the true answers")]
    notes = [GREEDY, f"{len(begun):,} answers, each after the true conversation so far"]
    if shortened:
        notes.append(f"{shortened:,} conversations without their oldest messages, which were too long")
    return exam.scores(len(dialogues), scores, Cases("ROUGE-L", cases), notes)


def written_scores(outputs: list[str], references: list[str], cases: list[Case]) -> list[Score]:
    """What all written texts are measured by."""
    rouge = sum(case.score for case in cases) / len(cases)
    exact = measures.exact_match(outputs, references)
    return [
        Score("exact", "exact match", 100 * exact, "percent of outputs that equal the reference but for white space"),
        Score("rouge-l", "ROUGE-L", 100 * rouge, "mean F1 of the longest common subsequence of lower-cased words"),
    ]


# --- how likely a model holds a text ----------------------------------------------------------------------------------


def score_documents(exam: Exam) -> Scores:
    """Running text, every token predicted once; all documents in one row as in training, or each for itself."""
    run, config = exam.run, exam.run.recipe.data
    tokenizer, width = run.tokenizers.target, config.max_length
    side = Side(open_store_of(config, run.tokenizers, exam.split).ragged["text"], tokenizer, width)
    offsets = side.column.offsets[: exam.limit + 1 if exam.limit else None]
    alone = config.document_mask or not config.pack
    windows = Windows(side, offsets if alone else offsets[[0, -1]])
    batches = Batches(windows, max(config.batch_tokens, width), 0, 0, 1, shuffle=False)
    extremes = Extremes(SHOWN)
    found = likelihood_of(run, exam.watch_batches(batches), extremes.look)
    words, size = count_text(pieces_of(open_corpus(config), exam.split), exam.limit)
    scores = [
        token_perplexity(found, "of the text"),
        Score(
            "word-perplexity",
            "perplexity of a word",
            measures.perplexity(found.nats, words),
            f"the same -log p by {words:,} words: those between white space, and the end of each line",
        ),
        Score("bits-per-byte", "bits per byte", measures.bits_per_byte(found.nats, size), f"over {size:,} bytes"),
    ]
    cases = [Case(each.score, {"text": tokenizer.decode(each.wanted)}) for each in extremes.kept]
    notes = [
        f"windows of {width} tokens, {width - width // 2} of them new: each token is predicted once, after at least "
        f"{width // 2} others where there are so many",
        "each document for itself" if alone else "documents one after the other, as in training",
    ]
    if tokenizer.has("unknown") and (unknown := int((side.column.values[: offsets[-1]] == tokenizer.unknown).sum())):
        notes.append(f"{unknown:,} of {found.tokens:,} tokens stand for words that the tokenizer does not know")
    return exam.scores(len(offsets) - 1, scores, Cases("mean log-probability", cases), notes)


def score_guesses(exam: Exam) -> Scores:
    """Hidden tokens, chosen as in training, the same ones every time."""
    run, config = exam.run, replace(exam.run.recipe.data, too_long="truncate")
    batches = open_batches(config, run.tokenizers, exam.split)
    extremes = Extremes(SHOWN)
    found = likelihood_of(run, first_rows(exam.watch_batches(batches), exam.limit), extremes.look)
    tokenizer = run.tokenizers.target
    cases = [
        Case(
            each.score,
            {
                "text": tokenizer.decode(each.ids, keep_special=True),
                "hidden": " · ".join(map(tokenizer.piece, each.wanted)),
                "guesses": " · ".join(map(tokenizer.piece, each.said)),
            },
        )
        for each in extremes.kept
    ]
    right = Score("accuracy", "hidden tokens found", 100 * found.right / found.tokens, "percent")
    notes = [f"{found.tokens:,} hidden tokens, data.mask_rate = {config.mask_rate}", *batches.report.lines()]
    scores = [right, token_perplexity(found, "of the hidden tokens")]
    return exam.scores(extremes.rows, scores, Cases("mean log-probability", cases), notes)


def first_rows(batches: Iterable[Batch], limit: int) -> Iterator[Batch]:
    """Batches up to so many rows; 0: all of them."""
    left = limit or math.inf
    for batch in batches:
        rows = int(min(left, len(batch.targets)))
        yield Batch({name: t[:rows] for name, t in batch.inputs.items()}, batch.targets[:rows])
        left -= rows
        if not left:
            return


def token_perplexity(found: Likelihood, of: str) -> Score:
    """The perplexity of a token, whichever tokens they were."""
    about = f"e to the mean of -log p over {found.tokens:,} tokens {of}"
    return Score("perplexity", "perplexity of a token", measures.perplexity(found.nats, found.tokens), about)


# --- what a model says of sentences -----------------------------------------------------------------------------------


def score_classes(exam: Exam) -> Scores:
    """Labels, against the true ones."""
    run, examples = exam.run, exam.examples()
    for example in examples:
        require(
            example.label in run.labels,
            f"label {example.label!r} of {exam.split} is none of those that the run has learned, "
            f"{', '.join(run.labels)}; mend the label, or train on some of its examples",
        )
    references = [run.labels.index(example.label) for example in examples]
    texts = [example.text for example in examples]
    found = classify(run, texts, exam.watch("reading", len(texts)))
    outputs = [run.labels.index(each.label) for each in found]
    table = measures.confusion(outputs, references, len(run.labels))
    cases = [
        Case(
            each.probabilities[example.label], {"text": example.text, "reference": example.label, "output": each.label}
        )
        for example, each in zip(examples, found, strict=True)
    ]
    scores = [
        Score("accuracy", "accuracy", 100 * measures.accuracy(outputs, references), "percent"),
        Score("macro-f1", "macro-F1", 100 * measures.macro_f1(table), "mean of the classes' F1, percent"),
    ]
    whole = exam.scores(len(texts), scores, Cases("probability of the true label", cases), window_note(exam, texts))
    return replace(whole, labels=run.labels, confusion=tuple(map(tuple, table.tolist())))


def score_similarities(exam: Exam) -> Scores:
    """Cosines of sentence vectors, against the true scores; a negative is a pair of score 0."""
    examples = exam.examples()
    texts = [(each.first, each.second) for each in examples]
    negatives = [(each.first, each.negative) for each in examples if each.negative]
    truth = [each.score for each in examples] + [0.0] * len(negatives)
    pairs = texts + negatives
    flat = [text for pair in pairs for text in pair]
    vectors = embed(exam.run, flat, exam.watch("reading", len(flat))).view(len(pairs), 2, -1)  # (N, 2, D)
    cosines = (vectors[:, 0] * vectors[:, 1]).sum(-1).tolist()
    scores = [
        Score("correlation", "Spearman", 100 * measures.spearman(cosines, truth), "rank correlation, times 100"),
        Score("pearson", "Pearson", 100 * measures.pearson(cosines, truth), "correlation, times 100"),
    ]
    if set(truth) <= {0.0, 1.0} and 1.0 in truth:
        found = find_partners(vectors, torch.tensor(truth) == 1)
        about = f"percent of sentences whose partner is the nearest of {len(pairs):,}"
        scores.append(Score("retrieval", "retrieval", 100 * sum(found) / len(found), about))
    cases = [
        Case(
            -abs(cosine - score), {"first": first, "second": second, "truth": f"{score:.2f}", "cosine": f"{cosine:.2f}"}
        )
        for (first, second), cosine, score in zip(pairs, cosines, truth, strict=True)
    ]
    notes = [f"{len(negatives):,} negatives count as pairs of score 0"] if negatives else []
    return exam.scores(len(examples), scores, Cases("-|cosine - truth|", cases), notes + window_note(exam, flat))


def find_partners(vectors: Tensor, right: Tensor) -> list[bool]:
    """For each right one (N,) of pairs (N, 2, D), whether no second sentence of any pair is nearer to its first."""
    found: list[bool] = []
    for some in torch.split(vectors[right], AT_ONCE):
        others = some[:, 0] @ vectors[:, 1].T
        own = (some[:, 0] * some[:, 1]).sum(-1)
        found += (others.amax(-1) <= own + 1e-6).tolist()  # a copy of the partner is as near, but for rounding
    return found


def window_note(exam: Exam, texts: list[str]) -> list[str]:
    """How an encoder read what is too long for it."""
    return exam.long_note(texts, exam.run.recipe.data.max_length - 2, "the mean over windows of them")
