"""Evaluation: every token predicted once, every example counted, references as written, reports safe to open."""

from __future__ import annotations

import itertools
import json
import math
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from clearhead.config import DataConfig, TokenizerConfig, UserError
from clearhead.corpora.catalogue import CORPORA
from clearhead.data.batches import IGNORE, RandomKey, TokenColumn
from clearhead.data.plan import PlannedBatch
from clearhead.data.readers.documents import DocumentPart
from clearhead.data.store import RaggedArray
from clearhead.decode.chat import answer
from clearhead.decode.embed import classify, embed
from clearhead.decode.translate import Searching, translate
from clearhead.evaluate import measures
from clearhead.evaluate.dialogues import true_answers
from clearhead.evaluate.evaluation import with_other_data
from clearhead.evaluate.html_report import html_report
from clearhead.evaluate.likelihood import Windows, count_text, likelihood_of
from clearhead.evaluate.report import as_json_object, show, write_report
from clearhead.evaluate.results import Case, Cases, Results, Score
from clearhead.evaluate.scores import evaluate, find_partners
from clearhead.recipes import write_recipe
from clearhead.runs import Run, write_weights
from clearhead.tasks import TASKS
from clearhead.text.chat import render
from clearhead.text.dialogue import Dialogue, Message
from clearhead.text.tokenizer import Tokenizers, train_tokenizer
from saved_runs import save
from tiny_runs import SENTENCES, tiny_run, tokenizers


def run_on(folder: Path, run: Run, **data: Any) -> Run:
    """The same run on files of ours."""
    settings = DataConfig(task=run.recipe.data.task, path=str(folder), cache=str(folder / "cache"), **data)
    return replace(run, folder=folder, recipe=replace(run.recipe, data=settings))


def silent(run: Run) -> Run:
    """A model that knows nothing: all words are equally likely."""
    run.model.head.project.weight = torch.nn.Parameter(torch.zeros_like(run.model.head.project.weight))
    return run


# --- windows ----------------------------------------------------------------------------------------------------------


def side_of(documents: list[list[int]], width: int) -> TokenColumn:
    start = tokenizers().target.start
    rows = [[start, *ids] for ids in documents]
    offsets = np.cumsum([0, *map(len, rows)])
    return TokenColumn(RaggedArray(np.array([*itertools.chain(*rows), start]), offsets), tokenizers().target, width)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=5), st.integers(4, 12))
def test_every_token_is_predicted_once_with_half_a_window_before_it(lengths: list[int], width: int) -> None:
    number = iter(range(100, 1000))  # every token another one: it says which it is
    side = side_of([[next(number) for _ in range(length)] for length in lengths], width)
    windows = Windows(side, side.array.offsets)
    predicted: list[int] = []
    for bucket in windows.buckets(0):
        batch = windows.batch(PlannedBatch(bucket.members, bucket.widths), RandomKey(0, 0, 0))
        for ids, targets in zip(batch.inputs["ids"].tolist(), batch.targets.tolist(), strict=True):
            places = [place for place, target in enumerate(targets) if target != IGNORE]
            assert places[0] == 0 or places[0] >= width // 2
            assert places[0] > 0 or ids[0] == side.start  # only a document's first window predicts all of it
            predicted += [targets[place] for place in places]
    ends = [side.end] * len(lengths)
    assert sorted(predicted) == sorted([*ends, *range(100, 100 + sum(lengths))])


def test_likelihood_is_that_of_each_token_after_its_window() -> None:
    run, width = tiny_run("decoder-only"), 8
    ids = torch.randint(10, 200, (45,)).tolist()
    side = side_of([ids], width)
    windows = Windows(side, side.array.offsets)
    buckets = windows.buckets(0)
    found = likelihood_of(
        run, [windows.batch(PlannedBatch(bucket.members, bucket.widths), RandomKey(0, 0, 0)) for bucket in buckets]
    )
    text, expected = [side.start, *ids, side.end], 0.0
    for place in range(1, len(text)):
        begin = 0 if place <= width else (place - 1 - width // 2) // (width // 2) * (width // 2)
        assert begin == 0 or width // 2 <= place - 1 - begin < width
        logits = run.model(torch.tensor([text[begin:place]]))[0, -1]
        expected -= logits.log_softmax(-1)[text[place]].item()
    assert found.tokens == len(ids) + 1
    assert found.nats == pytest.approx(expected, rel=1e-5)


def test_words_are_counted_with_the_ends_of_lines() -> None:
    pieces = [
        DocumentPart("one two\nthree", False),
        DocumentPart(" four\n", True),
        DocumentPart("été", True),
        DocumentPart("later", True),
    ]
    assert count_text(pieces, 2) == (4 + 2 + 1 + 1, len("one two\nthree four\n") + 5)
    assert count_text(pieces, 0) == (4 + 2 + 1 + 1 + 1 + 1, len("one two\nthree four\n") + 5 + 5)


@pytest.mark.parametrize("pack", [True, False])
def test_a_model_that_knows_nothing_hesitates_among_all_tokens(tmp_path: Path, pack: bool) -> None:
    """Perplexity is the size of the vocabulary, and a text of any length is read to its end."""
    text = "\n".join(SENTENCES * 30) + "\n"
    for split in ("train", "test"):
        (tmp_path / f"{split}.txt").write_text(text)
    run = run_on(tmp_path, silent(tiny_run("decoder-only")), max_length=16, pack=pack)
    scores = evaluate(run)
    vocab, tokens = run.model.config.vocab, len(tokenizers().target.encode(text)) + 1
    assert scores["perplexity"] == pytest.approx(vocab, rel=1e-5)
    assert scores["word-perplexity"] == pytest.approx(vocab ** (tokens / (len(text.split()) + 120)), rel=1e-4)
    assert scores["bits-per-byte"] == pytest.approx(tokens * math.log2(vocab) / len(text), rel=1e-5)
    assert any("windows of 16 tokens, 8 of them new" in note for note in scores.notes)


def test_unknown_words_are_owned_up_to(tmp_path: Path) -> None:
    for split in ("train", "test"):
        (tmp_path / f"{split}.txt").write_text("a cat 猫 runs")
    words = train_tokenizer(TokenizerConfig(kind="words"), ["a cat runs"], progress=False)
    run = replace(tiny_run("decoder-only"), tokenizers=Tokenizers(words, words))
    assert "1 of 5 tokens are words that the tokenizer does not know" in evaluate(run_on(tmp_path, run)).notes


def test_documents_for_themselves_are_not_one_row(tmp_path: Path) -> None:
    for split in ("train", "test"):
        (tmp_path / f"{split}.txt").write_text("---".join(SENTENCES))
    run = tiny_run("decoder-only")
    alone, joined = (
        evaluate(run_on(tmp_path, run, separator="---", max_length=64, pack=pack)) for pack in (False, True)
    )
    assert alone.examples == joined.examples == len(SENTENCES)
    expected = 0.0
    for sentence in SENTENCES:
        target = tokenizers().target
        ids = torch.tensor([target.start, *target.encode(sentence), target.end])
        expected -= run.model(ids[None, :-1])[0].log_softmax(-1).gather(1, ids[1:, None]).sum().item()
    count = sum(len(tokenizers().target.encode(sentence)) + 1 for sentence in SENTENCES)
    assert math.log(alone["perplexity"]) == pytest.approx(expected / count, rel=1e-5)
    assert alone["perplexity"] != pytest.approx(joined["perplexity"], rel=1e-5)
    assert evaluate(run_on(tmp_path, run, separator="---", pack=False), limit=2).examples == 2


def test_hidden_words_are_the_same_every_time(tmp_path: Path) -> None:
    for split in ("train", "test"):
        (tmp_path / f"{split}.txt").write_text("\n".join(SENTENCES * 20))
    run = run_on(tmp_path, silent(tiny_run("encoder-only")), max_length=32)
    scores = evaluate(run)
    assert scores == evaluate(run)
    assert scores["perplexity"] == pytest.approx(run.model.config.vocab, rel=1e-5)
    assert evaluate(run, limit=2).examples == 2 < scores.examples


# --- what a model writes ----------------------------------------------------------------------------------------------


def write_pairs(folder: Path, count: int = 9) -> None:
    for split in ("train", "test"):
        for side in ("en", "fr"):
            lines = [f"{SENTENCES[i % 4]}{' again' * i}" for i in range(count)]
            (folder / f"{split}.{side}").write_text("\n".join(lines) + "\n")


def test_pairs_are_measured_against_the_corpus_own_text(tmp_path: Path) -> None:
    write_pairs(tmp_path)
    run = run_on(tmp_path, tiny_run("encoder-decoder"), source="en", target="fr")
    scores = evaluate(run, beam=1)
    sources = (tmp_path / "test.en").read_text().splitlines()
    outputs = [best.text for [best] in translate(run, sources, Searching(beam=1))]
    assert scores["bleu"] == measures.bleu(outputs, sources).value
    assert scores["chrf"] == measures.chrf(outputs, sources).value > 0
    assert [case.texts for case in scores.cases.each] == [
        {"source": text, "reference": text, "output": output} for text, output in zip(sources, outputs, strict=True)
    ]
    assert evaluate(run, limit=4, beam=1).examples == 4
    assert "only the first 4 examples of the split" in evaluate(run, limit=4, beam=1).notes


def test_a_run_can_be_measured_on_other_data(tmp_path: Path) -> None:
    write_pairs(tmp_path)
    for side in ("en", "fr"):
        (tmp_path / f"later.{side}").write_text("a cat runs\n")
    run = run_on(tmp_path, tiny_run("encoder-decoder"), source="en", target="fr")
    assert evaluate(with_other_data(run, ["data.test=later"]), beam=1).examples == 1
    assert with_other_data(run, []) == run
    with pytest.raises(UserError, match=r"'model\.layers=3': only the data of a trained run can be changed"):
        with_other_data(run, ["model.layers=3"])


def test_a_missing_split_names_those_there_are(tmp_path: Path) -> None:
    write_pairs(tmp_path)
    run = run_on(tmp_path, tiny_run("encoder-decoder"), source="en", target="fr")
    with pytest.raises(UserError, match=r"split 'valid': .* has no split of this name; it has train, test"):
        evaluate(run, "valid")
    with pytest.raises(UserError, match="beam = 0: must be at least 1"):
        evaluate(run, beam=0)


DIALOGUES = [
    Dialogue((Message("user", "the red car"), Message("assistant", "is fast"))),
    Dialogue((*(Message(role, text) for role, text in zip(("user", "assistant") * 2, SENTENCES, strict=True)),)),
]


def test_answers_are_likely_as_far_as_the_assistant_speaks() -> None:
    run = tiny_run("decoder-only", task="chat")
    found = likelihood_of(run, true_answers(run, DIALOGUES))
    nats, tokens = 0.0, 0
    for dialogue in DIALOGUES:
        rendered = render(dialogue, run.tokenizers.target)
        logs = run.model(torch.tensor([rendered.ids[:-1]]))[0].log_softmax(-1)
        learned = [place for place, learn in enumerate(rendered.learn) if learn]
        nats -= sum(logs[place - 1, rendered.ids[place]].item() for place in learned)
        tokens += len(learned)
    assert found.tokens == tokens
    assert found.nats == pytest.approx(nats, rel=1e-5)


def test_every_answer_of_a_conversation_is_asked_for(tmp_path: Path) -> None:
    messages = [[{"role": m.role, "content": m.content} for m in each.messages] for each in DIALOGUES]
    for split in ("train", "test"):
        (tmp_path / f"{split}.jsonl").write_text("\n".join(json.dumps({"said": each}) for each in messages))
    run = run_on(tmp_path, tiny_run("decoder-only", task="chat"), text="said")
    scores = evaluate(run)
    assert [case.texts["reference"] for case in scores.cases.each] == ["is fast", SENTENCES[1], SENTENCES[3]]
    prompts = [Dialogue(DIALOGUES[0].messages[:1]), *(Dialogue(DIALOGUES[1].messages[:n]) for n in (1, 3))]
    alone = ["".join(answer(run, prompt).text) for prompt in prompts]
    assert [case.texts["output"] for case in scores.cases.each] == alone


# --- what a model says of sentences -----------------------------------------------------------------------------------


def test_classes_of_long_and_short_texts(tmp_path: Path) -> None:
    rows = [("a cat runs", "good"), ("the red car is fast " * 20, "bad"), ("a cat", "so so"), ("the dog", "bad")]
    for split in ("train", "test"):
        lines = ["text\tlabel", *("\t".join(row) for row in rows)]
        (tmp_path / f"{split}.tsv").write_text("\n".join(lines) + "\n")
    run = run_on(
        tmp_path, tiny_run("encoder-only", head="classes", pool="mean"), text="text", label="label", max_length=32
    )
    scores = evaluate(run)
    assert "1 texts of more than 30 tokens: the mean over windows of them" in scores.notes
    alone = [classify(run, [text])[0].label for text, _ in rows]
    assert [case.texts["output"] for case in scores.cases.each] == alone
    right = sum(guess == label for guess, (_, label) in zip(alone, rows, strict=True))
    assert scores["accuracy"] == pytest.approx(100 * right / 4)
    assert np.sum(scores.confusion) == 4
    with pytest.raises(UserError, match=r"label 'good' of test is not a label that the run was trained on \(x, y\)"):
        evaluate(replace(run, labels=("x", "y")))


def test_similarities_count_negatives_as_pairs_of_nothing(tmp_path: Path) -> None:
    lines = ["a,b,score", "a cat runs,a cat,5", "the red car,a cat runs,0", "the dog,the red house,2"]
    for split in ("train", "test"):
        (tmp_path / f"{split}.csv").write_text("\n".join(lines) + "\n")
    run = run_on(
        tmp_path, tiny_run("encoder-only", head="embedding"), text="a", other="b", label="score", best_score=5.0
    )
    scores = evaluate(run)
    cosines = [float(case.texts["cosine"]) for case in scores.cases.each]
    vectors = torch.stack([embed(run, line.split(",")[:2]) for line in lines[1:]])
    expected = torch.cosine_similarity(vectors[:, 0], vectors[:, 1])
    assert cosines == pytest.approx(expected.tolist(), abs=0.006)
    assert scores["pearson"] == pytest.approx(100 * measures.pearson(expected.tolist(), [1, 0, 0.4]), abs=1e-3)
    assert [score.key for score in scores.scores] == ["correlation", "pearson"]  # graded: no right one to find
    paraphrases = replace(run.recipe.data, path="", corpus="paraphrases", size=100, text="", other="", label="")
    found = evaluate(replace(run, recipe=replace(run.recipe, data=paraphrases)))
    assert "10 negatives count as pairs with score 0" in found.notes
    assert 0 <= found["retrieval"] <= 100
    assert len(found.cases.each) == 20


def test_a_partner_is_found_if_no_other_is_nearer() -> None:
    first, second, third = torch.eye(3)
    vectors = torch.stack([torch.stack(pair) for pair in ((first, first), (second, third), (first, second))])
    assert find_partners(vectors, torch.tensor([True, True, False])) == [True, False]
    twice, right = torch.cat([vectors, vectors]), torch.tensor([True] + [False] * 5)
    assert find_partners(twice, right) == [True]  # a copy of the partner takes nothing away


# --- reports ----------------------------------------------------------------------------------------------------------


HOSTILE = "<script>alert('x')</script> & \"quotes\" $x$ [red]"
SIGNATURE = "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0|and:longer|than:a|terminal:is"


def some_results(**changes: Any) -> Results:
    texts = {"source": HOSTILE, "reference": f"the {HOSTILE}", "output": f"a {HOSTILE}"}
    cases = Cases("ROUGE-L", [Case(i / 20, texts) for i in range(20)])
    scores = [Score("bleu", "BLEU", 12.3456, SIGNATURE), Score("odd", "odd", math.nan)]
    found = Results(HOSTILE, "translation", HOSTILE, "test", 20, scores, cases, [HOSTILE])
    return replace(found, **changes)


def test_a_page_is_whole_and_what_it_quotes_is_text() -> None:
    classes = some_results(labels=(HOSTILE, "b"), confusion=((3, 1), (0, 2)))
    for text in (html_report(some_results()), html_report(classes)):
        assert "<script" not in text
        assert not re.search(r"(src|href|url\(|@import|https?:)", text.split("<body>")[0])
        assert text.count("<div") == text.count("</div>")
        assert "12.35" in text
        assert SIGNATURE in text
        assert "Worst examples" in text
    assert "<ins>the</ins>" in html_report(some_results())
    assert "<del>a</del>" in html_report(some_results())
    assert "Confusion matrix" in html_report(classes)


@pytest.mark.parametrize("labels", [(), ("a$b$", HOSTILE)])
def test_a_picture_can_be_drawn_of_anything(tmp_path: Path, labels: tuple[str, ...]) -> None:
    pytest.importorskip("matplotlib")
    scores = some_results(labels=labels, confusion=((3, 1), (0, 2)) if labels else ())
    write_report(scores, tmp_path / "report.png")
    assert (tmp_path / "report.png").read_bytes().startswith(b"\x89PNG")


def test_numbers_in_json_have_no_noise_and_what_is_none_is_null() -> None:
    perfect = Score("perfect", "perfect", 100.00000000000004)
    scores = some_results(labels=("a", "b"), confusion=((3, 1), (0, 2)))
    text = json.dumps(as_json_object(replace(scores, scores=[*scores.scores, perfect])), allow_nan=False)
    read = json.loads(text)
    assert read["scores"] == {"bleu": 12.3456, "odd": None, "perfect": 100.0}
    assert read["f1"] == {"a": 85.714286, "b": 80.0}


def test_a_signature_is_never_broken(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    show(some_results(), as_json=False)
    _, bleu, odd, note = capsys.readouterr().out.splitlines()
    assert bleu == f"BLEU  12.35  {SIGNATURE}"
    assert odd.rstrip() == "odd     nan"
    assert note == HOSTILE


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "clearhead", *arguments], capture_output=True, text=True, timeout=120)


def test_from_the_command_line(tmp_path: Path) -> None:
    write_pairs(tmp_path)
    run = run_on(tmp_path, tiny_run("encoder-decoder"), source="en", target="fr")
    write_recipe(run.recipe, tmp_path / "run.toml")
    run.tokenizers.save(tmp_path)
    write_weights(dict(run.model.named_parameters()), tmp_path / "model.safetensors")
    result = command("evaluate", str(tmp_path), "--beam", "1", "--json", "--report", str(tmp_path / "report.html"))
    assert result.returncode == 0, result.stderr
    expected = evaluate(run, beam=1)
    assert json.loads(result.stdout)["scores"]["chrf"] == pytest.approx(expected["chrf"])
    assert "chrF" in (tmp_path / "report.html").read_text()
    result = command("evaluate", str(tmp_path), "--report", str(tmp_path / "report.doc"))
    assert result.returncode == 1
    assert "the name must end with one of .html, .png, .svg, .pdf" in result.stderr
    assert "Traceback" not in result.stderr


def test_what_fewer_bits_cost(tmp_path: Path) -> None:
    for split in ("train", "test"):
        (tmp_path / f"{split}.txt").write_text("\n".join(SENTENCES))
    run = run_on(tmp_path, tiny_run("decoder-only", position="rotary"))
    save(run, tmp_path)
    measured = {}
    for weights in ("float32", "int8"):
        result = command("evaluate", str(tmp_path), "--weights", weights, "--device", "cpu", "--json")
        assert result.returncode == 0, result.stderr
        measured[weights] = json.loads(result.stdout)["scores"]["perplexity"]
    assert measured["float32"] == pytest.approx(evaluate(run)["perplexity"], rel=1e-5)
    assert measured["int8"] == pytest.approx(measured["float32"], rel=0.1)
    assert measured["int8"] != pytest.approx(measured["float32"], rel=1e-5)


@pytest.mark.parametrize("name", [name for name, task in TASKS.items() if task.measures])
def test_the_measures_of_a_task_are_reported_and_the_first_comes_first(name: str, tmp_path: Path) -> None:
    task = TASKS[name]
    corpus = next(each.name for each in CORPORA.values() if TASKS[each.task].example == task.example)
    run = tiny_run(task.family, task=name, head=task.head)  # type: ignore[arg-type]
    data = DataConfig(task=name, corpus=corpus, size=50, cache=str(tmp_path), pack=False)
    labels = ("negative", "positive", "neither") if run.labels else ()
    results = evaluate(replace(run, recipe=replace(run.recipe, data=data), labels=labels), limit=2, beam=1, quiet=True)
    keys = [score.key for score in results.scores]
    assert keys[0] == task.measures[0]
    assert {*task.measures} <= {*keys}
