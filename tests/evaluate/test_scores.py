"""The scorer of each task: every example counts, references are the text of the corpus."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from clearhead.config import DataConfig, UserError
from clearhead.corpora.catalogue import CORPORA
from clearhead.decode.chat import answer
from clearhead.decode.embed import classify, embed
from clearhead.decode.translate import SearchSettings, translate
from clearhead.evaluate import measures
from clearhead.evaluate.dialogues import true_answers
from clearhead.evaluate.evaluation import with_other_data
from clearhead.evaluate.likelihood import likelihood_of
from clearhead.evaluate.scores import evaluate, find_partners
from clearhead.tasks import TASKS
from clearhead.text.chat import render
from clearhead.text.dialogue import Dialogue, Message
from evaluated_runs import run_on, write_pairs
from tiny_runs import SENTENCES, tiny_run


def test_pairs_are_measured_against_the_corpus_own_text(tmp_path: Path) -> None:
    write_pairs(tmp_path)
    run = run_on(tmp_path, tiny_run("encoder-decoder"), source="en", target="fr")
    scores = evaluate(run, beam=1)
    sources = (tmp_path / "test.en").read_text().splitlines()
    outputs = [best.text for [best] in translate(run, sources, SearchSettings(beam=1))]
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


@pytest.mark.parametrize("trained_on", [{"valid": "val"}, {"hold_out": 0.5}, {"train": "raw/train"}], ids=str)
def test_other_data_needs_the_split_that_is_measured_and_no_other(
    tmp_path: Path, trained_on: dict[str, str | float]
) -> None:
    for folder in ("data/raw", "other"):
        (tmp_path / folder).mkdir(parents=True)
    for side in ("en", "fr"):
        (tmp_path / "other" / f"later.{side}").write_text("a cat runs\n")
        for name in ("raw/train", "train", "val"):
            (tmp_path / "data" / f"{name}.{side}").write_text("a cat runs\na dog runs\n")
    run = run_on(tmp_path / "data", tiny_run("encoder-decoder"), source="en", target="fr", **trained_on)
    elsewhere = [f"data.path={tmp_path / 'other'}", "data.test=later"]
    assert evaluate(with_other_data(run, elsewhere), beam=1).examples == 1
    with pytest.raises(UserError, match=r"data\.test = 'latter': no file latter\.en in .*; did you mean 'later'"):
        evaluate(with_other_data(run, [elsewhere[0], "data.test=latter"]))


def test_a_missing_split_names_those_there_are(tmp_path: Path) -> None:
    write_pairs(tmp_path)
    run = run_on(tmp_path, tiny_run("encoder-decoder"), source="en", target="fr")
    with pytest.raises(UserError, match=r"split 'valid': .* has no split of this name; it has train, test: choose"):
        evaluate(run, "valid")
    with pytest.raises(UserError, match="beam = 0: must be at least 1"):
        evaluate(run, beam=0)


def test_a_split_that_is_held_out_is_one_there_is(tmp_path: Path) -> None:
    for side in ("en", "fr"):
        (tmp_path / f"train.{side}").write_text("a cat runs\na dog runs\n")
    run = run_on(tmp_path, tiny_run("encoder-decoder"), source="en", target="fr", hold_out=0.5)
    with pytest.raises(UserError, match=r"split 'test': .* has no split of this name; it has train, valid: choose"):
        evaluate(run)


def test_a_folder_with_none_of_the_splits_names_its_files(tmp_path: Path) -> None:
    for side in ("en", "fr"):
        (tmp_path / f"exam.{side}").write_text("a cat runs\n")
    run = run_on(tmp_path, tiny_run("encoder-decoder"), source="en", target="fr")
    with pytest.raises(UserError, match=r"data\.test = 'test': no file test\.en in .*; it has exam"):
        evaluate(run)


DIALOGUES = [
    Dialogue((Message("user", "the red car"), Message("assistant", "is fast"))),
    Dialogue((*(Message(role, text) for role, text in zip(("user", "assistant") * 2, SENTENCES, strict=True)),)),
]


def test_the_likelihood_of_answers_counts_the_assistants_tokens_only() -> None:
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


def test_similarities_count_negatives_as_pairs_with_score_0(tmp_path: Path) -> None:
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
    twice = torch.cat([vectors, vectors])
    right = torch.tensor([True] + [False] * 5)
    assert find_partners(twice, right) == [True]  # a copy of the partner takes nothing away


@pytest.mark.parametrize("name", [name for name, task in TASKS.items() if task.measures])
def test_the_measures_of_a_task_are_reported_and_the_first_comes_first(name: str, tmp_path: Path) -> None:
    task = TASKS[name]
    corpus = next(each.name for each in CORPORA.values() if TASKS[each.task].example == task.example)
    run = tiny_run(task.family, task=name, head=task.head)
    data = DataConfig(task=name, corpus=corpus, size=50, cache=str(tmp_path), pack=False)
    labels = ("negative", "positive", "neither") if run.labels else ()
    results = evaluate(replace(run, recipe=replace(run.recipe, data=data), labels=labels), limit=2, beam=1, quiet=True)
    keys = [score.key for score in results.scores]
    assert keys[0] == task.measures[0]
    assert {*task.measures} <= {*keys}
