"""`evaluate`: measure a run on every example of a split. One scorer for each task, registered in `SCORERS`.

    translation      BLEU, lower-cased BLEU, chrF, exact match and ROUGE-L of the outputs
    chat             exact match and ROUGE-L of each answer; perplexity of the true answers
    language         perplexity per token and per word, bits per byte
    masked           accuracy and perplexity of the masked tokens
    classification   accuracy, macro-F1, confusion matrix
    similarity       correlation of cosine similarity with the true scores; retrieval accuracy

References are the text of the corpus itself, never text that was encoded and decoded by a tokenizer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import torch
from torch import Tensor

from clearhead.config import require
from clearhead.data.batches import Batch, TokenColumn
from clearhead.data.encode import open_store_of
from clearhead.data.loader import Batches, open_batches
from clearhead.data.sources import document_parts, open_corpus
from clearhead.decode.defaults import BEAM
from clearhead.decode.embed import classify, embed
from clearhead.decode.translate import SearchSettings, translate
from clearhead.evaluate import measures
from clearhead.evaluate.dialogues import answers, true_answers
from clearhead.evaluate.evaluation import Evaluation, require_split, with_split_alone
from clearhead.evaluate.likelihood import Extremes, Likelihood, Windows, count_text, likelihood_of
from clearhead.evaluate.results import Case, Cases, Results, Score
from clearhead.runs import Run
from clearhead.tasks import TASKS
from clearhead.text.dialogue import Dialogue

GREEDY = "decoding: greedy search"
EXTREMES = 5  # best and worst cases that are kept for tasks that do not keep all cases
COMPARED_AT_ONCE = 1024  # sentences that are compared with all others in one matrix product


def evaluate(run: Run, split: str = "test", limit: int = 0, beam: int = BEAM, quiet: bool = False) -> Results:
    """Measure a run on a split of its corpus, or on its first `limit` examples; a beam of 1 is greedy search."""
    require(limit >= 0, f"limit = {limit}: must not be negative; 0 uses all examples")
    require(beam >= 1, f"beam = {beam}: must be at least 1, which is greedy search")
    require_split(run, split)
    run = with_split_alone(run, split)
    scorer = TASKS[run.recipe.data.task].scorer
    require(scorer != "", f"data.task = {run.recipe.data.task!r} has no scorer in TASKS: its runs cannot be evaluated")
    return SCORERS[scorer](Evaluation(run, split, limit, beam, quiet))


# --- generated text ---------------------------------------------------------------------------------------------------


def score_pairs(evaluation: Evaluation) -> Results:
    """Score translations and summaries against their single reference."""
    pairs = evaluation.examples()
    sources = [pair.source for pair in pairs]
    references = [pair.target for pair in pairs]
    found = translate(evaluation.run, sources, SearchSettings(evaluation.beam), evaluation.progress("translating"))
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
        *text_scores(outputs, references, cases),
    ]
    limit = (evaluation.run.longest or evaluation.run.recipe.data.max_length) - 1
    notes = [
        f"decoding: beam of {evaluation.beam}, length penalty {SearchSettings().length_penalty}"
        if evaluation.beam > 1
        else GREEDY,
        *evaluation.note_long_texts(sources, limit, "translated sentence by sentence"),
    ]
    return evaluation.results(len(pairs), scores, Cases("ROUGE-L", cases), notes)


def score_dialogues(evaluation: Evaluation) -> Results:
    """Score every answer of a conversation, each generated after the true messages before it."""
    dialogues: list[Dialogue] = evaluation.examples()
    asked = [
        (Dialogue(each.messages[:turn]), message.content)
        for each in dialogues
        for turn, message in enumerate(each.messages)
        if message.role == "assistant"
    ]
    outputs, shortened = answers(evaluation.run, [prompt for prompt, _ in asked], evaluation.progress("answering"))
    references = [reference for _, reference in asked]
    cases = [
        Case(
            measures.rouge_l(output, reference),
            {"prompt": prompt.messages[-1].content, "reference": reference, "output": output},
        )
        for (prompt, reference), output in zip(asked, outputs, strict=True)
    ]
    found = likelihood_of(evaluation.run, true_answers(evaluation.run, dialogues))
    scores = [*text_scores(outputs, references, cases), token_perplexity(found, "of the true answers")]
    notes = [GREEDY, f"{len(asked):,} answers, each after the true conversation so far"]
    if shortened:
        notes.append(f"{shortened:,} conversations without their oldest messages, which were too long")
    return evaluation.results(len(dialogues), scores, Cases("ROUGE-L", cases), notes)


def text_scores(outputs: list[str], references: list[str], cases: list[Case]) -> list[Score]:
    """The scores of all generated texts: exact match and ROUGE-L."""
    rouge = sum(case.score for case in cases) / len(cases)
    exact = measures.exact_match(outputs, references)
    return [
        Score("exact", "exact match", 100 * exact, "percent of outputs that equal the reference, ignoring white space"),
        Score("rouge-l", "ROUGE-L", 100 * rouge, "mean F1 of the longest common subsequence of lower-cased words"),
    ]


# --- likelihood of a text ---------------------------------------------------------------------------------------------


def score_documents(evaluation: Evaluation) -> Results:
    """Score running text, every token predicted once; documents concatenated as in training, or each on its own."""
    run = evaluation.run
    config = run.recipe.data
    tokenizer = run.tokenizers.target
    width = config.max_length
    column = TokenColumn(open_store_of(config, run.tokenizers, evaluation.split).ragged["text"], tokenizer, width)
    offsets = column.array.offsets[: evaluation.limit + 1 if evaluation.limit else None]
    alone = config.document_mask or not config.pack
    windows = Windows(column, offsets if alone else offsets[[0, -1]])
    batches = Batches(windows, max(config.batch_tokens, width), 0, 0, 1, shuffle=False)
    extremes = Extremes(EXTREMES)
    found = likelihood_of(run, evaluation.read_batches(batches), extremes.observe)
    words, size = count_text(document_parts(open_corpus(config), evaluation.split), evaluation.limit)
    scores = [
        token_perplexity(found, "of the text"),
        Score(
            "word-perplexity",
            "perplexity per word",
            measures.perplexity(found.nats, words),
            f"the same -log p by {words:,} words: those between white space, and the end of each line",
        ),
        Score("bits-per-byte", "bits per byte", measures.bits_per_byte(found.nats, size), f"over {size:,} bytes"),
    ]
    cases = [Case(each.score, {"text": tokenizer.decode(each.targets)}) for each in extremes.kept]
    notes = [
        f"windows of {width} tokens, {width - width // 2} of them new: each token is predicted once, after at least "
        f"{width // 2} others where possible",
        "each document on its own" if alone else "documents one after the other, as in training",
    ]
    if tokenizer.has("unknown") and (unknown := int((column.array.values[: offsets[-1]] == tokenizer.unknown).sum())):
        notes.append(f"{unknown:,} of {found.tokens:,} tokens are words that the tokenizer does not know")
    return evaluation.results(len(offsets) - 1, scores, Cases("mean log-probability", cases), notes)


def score_masked_tokens(evaluation: Evaluation) -> Results:
    """Score masked tokens, chosen as in training; the choice is the same in every evaluation."""
    run = evaluation.run
    config = replace(run.recipe.data, too_long="truncate")
    batches = open_batches(config, run.tokenizers, evaluation.split)
    extremes = Extremes(EXTREMES)
    found = likelihood_of(run, first_rows(evaluation.read_batches(batches), evaluation.limit), extremes.observe)
    require(
        found.tokens > 0,
        f"none of the {extremes.rows:,} examples has a masked token, data.mask_rate = {config.mask_rate}; evaluate "
        "more examples, or another split with --split",
    )
    tokenizer = run.tokenizers.target
    cases = [
        Case(
            each.score,
            {
                "text": tokenizer.decode(each.ids, keep_special=True),
                "masked": " · ".join(map(tokenizer.piece, each.targets)),
                "predictions": " · ".join(map(tokenizer.piece, each.predictions)),
            },
        )
        for each in extremes.kept
    ]
    right = Score("accuracy", "accuracy of masked tokens", 100 * found.right / found.tokens, "percent")
    notes = [f"{found.tokens:,} masked tokens, data.mask_rate = {config.mask_rate}", *batches.report.lines()]
    scores = [right, token_perplexity(found, "of the masked tokens")]
    return evaluation.results(extremes.rows, scores, Cases("mean log-probability", cases), notes)


def first_rows(batches: Iterable[Batch], limit: int) -> Iterator[Batch]:
    """Yield batches until `limit` rows are reached; 0: all of them."""
    left = limit or math.inf
    for batch in batches:
        rows = int(min(left, len(batch.targets)))
        yield Batch({name: t[:rows] for name, t in batch.inputs.items()}, batch.targets[:rows])
        left -= rows
        if not left:
            return


def token_perplexity(found: Likelihood, of: str) -> Score:
    """The perplexity per token; `of` says which tokens."""
    about = f"e to the mean of -log p over {found.tokens:,} tokens {of}"
    return Score("perplexity", "perplexity per token", measures.perplexity(found.nats, found.tokens), about)


# --- labels and sentence vectors --------------------------------------------------------------------------------------


def score_classes(evaluation: Evaluation) -> Results:
    """Score predicted labels against the true ones."""
    run = evaluation.run
    examples = evaluation.examples()
    for example in examples:
        require(
            example.label in run.labels,
            f"label {example.label!r} of {evaluation.split} is not a label that the run was trained on "
            f"({', '.join(run.labels)}); correct the label, or train on examples of it",
        )
    references = [run.labels.index(example.label) for example in examples]
    texts = [example.text for example in examples]
    found = classify(run, texts, evaluation.progress("reading"))
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
    by_probability = Cases("probability of the true label", cases)
    results = evaluation.results(len(texts), scores, by_probability, note_windows(evaluation, texts))
    return replace(results, labels=run.labels, confusion=tuple(map(tuple, table.tolist())))


def score_similarities(evaluation: Evaluation) -> Results:
    """Score cosines of sentence vectors against the true scores; a negative counts as a pair with score 0."""
    examples = evaluation.examples()
    texts = [(each.first, each.second) for each in examples]
    negatives = [(each.first, each.negative) for each in examples if each.negative]
    truth = [each.score for each in examples] + [0.0] * len(negatives)
    pairs = texts + negatives
    flat = [text for pair in pairs for text in pair]
    vectors = embed(evaluation.run, flat, evaluation.progress("reading")).view(len(pairs), 2, -1)  # (N, 2, D)
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
    notes = [f"{len(negatives):,} negatives count as pairs with score 0"] if negatives else []
    constant = "all pairs have the same score, so no correlation is defined; data.label names the column of scores"
    notes += [constant] if len(set(truth)) == 1 else []
    return evaluation.results(
        len(examples), scores, Cases("-|cosine - truth|", cases), notes + note_windows(evaluation, flat)
    )


def find_partners(vectors: Tensor, right: Tensor) -> list[bool]:
    """For each pair of `vectors` (N, 2, D) marked in `right` (N,): whether no other second sentence is nearer."""
    found: list[bool] = []
    for some in torch.split(vectors[right], COMPARED_AT_ONCE):
        others = some[:, 0] @ vectors[:, 1].T
        own = (some[:, 0] * some[:, 1]).sum(-1)
        found += (others.amax(-1) <= own + 1e-6).tolist()  # a copy of the partner is equally near, up to rounding
    return found


def note_windows(evaluation: Evaluation, texts: list[str]) -> list[str]:
    """A note on how an encoder read texts that are longer than its window."""
    return evaluation.note_long_texts(texts, evaluation.run.recipe.data.max_length - 2, "the mean over windows of them")


SCORERS: dict[str, Callable[[Evaluation], Results]] = {  # by `Task.scorer`
    "translations": score_pairs,
    "answers": score_dialogues,
    "documents": score_documents,
    "masked tokens": score_masked_tokens,
    "labels": score_classes,
    "similarities": score_similarities,
}
