"""What a run is for, through the library: one text or many, whole or as it is written, short or far too long."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from clearhead.config import UserError
from clearhead.decode.chat import answer, fitting_prompt
from clearhead.decode.generate import generate
from clearhead.decode.sampling import Choice
from clearhead.decode.translate import Searching, translate
from clearhead.library import Loaded
from clearhead.runs import Run
from clearhead.tasks import TASKS
from clearhead.text.chat import prompt as chat_prompt
from clearhead.text.dialogue import Dialogue, Message
from clearhead.text.tokenizer import Tokenizers, load_tokenizer
from tiny_runs import SENTENCES, tiny_run

WILD = Choice(temperature=1.5)
LONG_AND_SHORT = [
    "the red car is fast",
    "a",
    "the dog sees the red house and the cat and the car",
    "",
    "a cat runs",
    " \t",
]


@pytest.fixture(scope="module")
def translator() -> Run:
    torch.manual_seed(0)
    return replace(tiny_run(dtype=torch.float64), longest=20)


@pytest.fixture(scope="module")
def writer() -> Run:
    torch.manual_seed(1)
    return tiny_run("decoder-only", dtype=torch.float64, position="rotary")


@pytest.fixture(scope="module")
def talker() -> Run:
    torch.manual_seed(2)
    return tiny_run("decoder-only", dtype=torch.float64, position="learned", task="chat")


@pytest.fixture(scope="module")
def classifier() -> Run:
    torch.manual_seed(3)
    run = tiny_run("encoder-only", dtype=torch.float64, head="classes")
    return replace(run, recipe=replace(run.recipe, data=replace(run.recipe.data, max_length=12)))


# --- translate --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", [Searching(), Searching(beam=1), Searching(nbest=3)], ids=["beam", "greedy", "3 best"])
def test_many_texts_are_translated_as_each_alone_and_in_order(translator: Run, how: Searching) -> None:
    together = translate(translator, LONG_AND_SHORT, how)
    alone = [translate(translator, [text], how)[0] for text in LONG_AND_SHORT]
    for some, others in zip(together, alone, strict=True):
        assert [each.text for each in some] == [each.text for each in others]
        assert [each.score for each in some] == pytest.approx([each.score for each in others])
    assert [found[0].text for found in (together[3], together[5])] == ["", ""]
    assert len({found[0].text for found in together}) > 3  # they do differ


def test_the_best_come_first_and_all_are_different(translator: Run) -> None:
    best = Loaded(translator).nbest("the red car is fast", Searching(beam=3, nbest=5))
    scores = [each.score for each in best]
    assert len({each.text for each in best}) >= 4
    assert len(best) == 5
    assert scores == sorted(scores, reverse=True)
    assert best[0].text == Loaded(translator).translate("the red car is fast", beam=5)


def test_a_seed_draws_the_same_translations_again_and_each_text_has_its_own(translator: Run) -> None:
    def drawn(texts: list[str], seed: int | None) -> list[list[str]]:
        found = translate(translator, texts, Searching(choice=WILD, nbest=2, seed=seed))
        assert all(first.score >= second.score for first, second in found)
        return [[each.text for each in best] for best in found]

    twice = drawn(["a cat runs"] * 2, 5)
    assert twice == drawn(["a cat runs"] * 2, 5)
    assert twice == [*drawn(["a cat runs"], 5), *drawn(["a cat runs"], 6)]
    assert len({text for some in twice for text in some}) == 4
    assert drawn(["a cat runs"], None) != drawn(["a cat runs"], None)


def test_a_translation_begins_as_it_has_to(translator: Run) -> None:
    loaded = Loaded(translator)
    assert loaded.translate("a cat runs", prefix="la voiture").startswith("la voiture")
    assert loaded.translate("a cat runs", prefix="la voiture", beam=1) != loaded.translate("a cat runs", beam=1)
    both = loaded.translate("a cat runs. " * 12, prefix="voici", beam=1)
    assert both.startswith("voici")
    assert both.count("voici") == 1  # a text begins once, however many sentences it has


def test_a_text_that_is_too_long_is_translated_sentence_by_sentence(translator: Run) -> None:
    loaded = Loaded(translator)
    sentences = ["the dog sees the red house.", "a cat runs!", "the red car is fast."]
    assert sum(len(translator.tokenizers.source.encode(each)) for each in sentences) > 20
    whole = loaded.translate("  " + " ".join(sentences[:2]) + "\n\n" + sentences[2] + " ")
    first, second, third = loaded.translate(sentences)
    assert whole == f"{first} {second}\n\n{third}"


def test_single_sentences_are_all_that_some_runs_have_learned(translator: Run) -> None:
    alone = Loaded(replace(translator, one_sentence=True))
    one, two = alone.translate(["a cat.", "a dog."])
    assert alone.translate("a cat. a dog.") == f"{one} {two}"
    assert Loaded(translator).translate("a cat. a dog.") != f"{one} {two}"  # short enough to be read at once


def test_learned_positions_end_a_translation_in_time() -> None:
    run = replace(tiny_run(position="learned", max_length=24), longest=20)
    [[best]] = translate(run, ["the red car is fast"], Searching(beam=1))
    assert best.text
    [[best]] = translate(run, ["the dog sees " * 50], Searching(beam=1))
    assert best.text


def test_a_translation_that_does_not_end_says_so(translator: Run) -> None:
    run = replace(translator, model=tiny_run(dtype=torch.float64).model)
    end = run.tokenizers.target.end
    with torch.no_grad():
        run.model.head.project.weight[end] = 0  # type: ignore[union-attr, index, operator]
    assert not all(best.ended for (best,) in translate(run, list(SENTENCES), Searching(beam=1)))


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"beam": 0}, "beam = 0"), ({"nbest": 0}, "nbest = 0"), ({"length_penalty": -1.0}, "length_penalty = -1.0")],
)
def test_a_search_that_makes_no_sense_is_refused(settings: dict[str, int], message: str) -> None:
    with pytest.raises(UserError, match=message):
        Searching(**settings)  # type: ignore[arg-type]


# --- generate ---------------------------------------------------------------------------------------------------------

PROMPTS = ["the red", "", "a cat runs and the dog sees", "la voiture"]


def test_many_prompts_go_on_as_each_alone(writer: Run) -> None:
    loaded = Loaded(writer)
    assert loaded.generate(PROMPTS, tokens=12) == [loaded.generate(prompt, tokens=12) for prompt in PROMPTS]
    assert len(set(loaded.generate(PROMPTS, tokens=12))) > 2
    drawn = loaded.generate(PROMPTS, 12, WILD, seed=3)
    assert drawn == [loaded.generate(prompt, 12, WILD, seed=3 + number) for number, prompt in enumerate(PROMPTS)]


@pytest.mark.parametrize("choice", [None, WILD, Choice(repetition_penalty=1.3, top_k=5)], ids=["greedy", "wild", "few"])
def test_a_stream_joined_is_the_whole(writer: Run, choice: Choice | None) -> None:
    loaded = Loaded(writer)
    pieces = list(loaded.stream("the red", 40, choice, seed=7))
    assert "".join(pieces) == loaded.generate("the red", 40, choice, seed=7)
    assert len(pieces) > 3


def test_the_same_seed_writes_the_same_text_and_none_another(writer: Run) -> None:
    loaded = Loaded(writer)
    assert loaded.generate("a", 20, WILD, seed=1) == loaded.generate("a", 20, WILD, seed=1)
    assert loaded.generate("a", 20, WILD, seed=1) != loaded.generate("a", 20, WILD, seed=2)
    assert loaded.generate("a", 20, WILD) != loaded.generate("a", 20, WILD)


def test_a_prompt_that_does_not_fit_is_refused_and_not_cut(talker: Run) -> None:
    loaded = Loaded(talker)  # 64 positions
    for write in (loaded.generate, lambda *given: list(loaded.stream(*given))):
        with pytest.raises(UserError, match=r"more than model\.max_length = 64"):
            write("the red car " * 50, 10)  # type: ignore[operator]
    with pytest.raises(UserError, match="at least 1"):
        loaded.generate("the", tokens=0)
    assert generate(talker, [], tokens=5) == []


# --- chat -------------------------------------------------------------------------------------------------------------


def said(*contents: str) -> list[dict[str, str]]:
    return [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(contents)]


def test_an_answer_depends_on_all_that_was_said(talker: Run) -> None:
    loaded = Loaded(talker)
    alone = "".join(loaded.chat("the dog", tokens=8))
    later = loaded.chat(said("a cat", "runs", "the dog"), tokens=8)
    assert later.forgotten == 0
    assert "".join(later) != alone
    assert "".join(loaded.chat([{"role": "system", "content": "red"}, *said("the dog")], tokens=8)) != alone


def test_a_conversation_that_is_too_long_forgets_its_oldest_turns_and_says_so(talker: Run) -> None:
    old, new = ["the red car is fast"] * 8, ["a cat runs", "fast", "the dog"]
    system = {"role": "system", "content": "red"}
    answered = Loaded(talker).chat([system, *said(*old, *new)], tokens=20)
    kept = 11 - answered.forgotten
    assert 0 < answered.forgotten < 11
    assert answered.forgotten % 2 == 0  # a question goes with its answer
    assert "".join(answered) == "".join(Loaded(talker).chat([system, *said(*[*old, *new][-kept:])], tokens=20))
    dialogue = Dialogue(tuple(Message("user", "a") for _ in range(1)))
    assert fitting_prompt(talker, dialogue, 20) == (chat_prompt(dialogue, talker.tokenizers.target), 0)


def test_an_answer_ends_where_the_positions_end(talker: Run) -> None:
    assert "".join(Loaded(talker).chat("the red car is fast", tokens=1000))
    with pytest.raises(UserError, match="the last message alone has"):
        Loaded(talker).chat("the red car is fast " * 30)


@pytest.mark.parametrize(
    ("messages", "message"),
    [
        ([], "the conversation is empty"),
        ([{"role": "system", "content": "red"}], "not the assistant's turn"),
        (said("a", "b"), "not the assistant's turn"),
        ([{"role": "robot", "content": "a"}], "unknown role 'robot'"),
        ("  ", "is empty"),
    ],
)
def test_what_is_no_conversation_is_refused(talker: Run, messages: list[dict[str, str]], message: str) -> None:
    with pytest.raises(UserError, match=message):
        Loaded(talker).chat(messages)


# --- classify, embed --------------------------------------------------------------------------------------------------


def test_probabilities_sum_to_one_and_the_label_is_the_likeliest(classifier: Run) -> None:
    found = Loaded(classifier).classify([*SENTENCES, "the red car " * 30])
    for each in found:
        assert sum(each.probabilities.values()) == pytest.approx(1)
        assert each.probabilities[each.label] == max(each.probabilities.values())
    assert len({tuple(each.probabilities.values()) for each in found}) == len(found)
    alone = [Loaded(classifier).classify(text) for text in [*SENTENCES, "the red car " * 30]]
    for each, other in zip(found, alone, strict=True):
        assert each.probabilities == pytest.approx(other.probabilities, abs=1e-6)


def test_a_long_text_is_the_mean_of_its_windows(classifier: Run) -> None:
    run, tokenizer = classifier, classifier.tokenizers.target
    ids = tokenizer.encode("the dog sees the red house and runs")
    assert 10 < len(ids) < 20
    windows = [[tokenizer.start, *part, tokenizer.end] for part in (ids[:10], ids[10:])]
    outputs = torch.cat([run.model(torch.tensor([window])) for window in windows])
    weights = torch.tensor([[float(len(window))] for window in windows])
    expected = ((outputs * weights).sum(0) / weights.sum()).softmax(-1)
    found = Loaded(run).classify("the dog sees the red house and runs")
    assert list(found.probabilities.values()) == pytest.approx(expected.tolist(), abs=1e-6)


def test_vectors_have_length_one_whatever_the_text() -> None:
    loaded = Loaded(tiny_run("encoder-only", head="embedding"))
    vectors = loaded.embed([*SENTENCES, "\x00", "😀" * 1000])
    torch.testing.assert_close(vectors.norm(dim=1), torch.ones(6))
    torch.testing.assert_close(loaded.embed(SENTENCES[1]), vectors[1])
    assert vectors[0] @ vectors[1] < 0.999
    assert loaded.embed([]).shape == (0, 16)


def test_a_text_without_a_token_has_a_vector_too(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "red"]))
    bert = load_tokenizer(tmp_path)
    assert bert.encode("\x00") == []  # BERT leaves control characters out
    loaded = Loaded(replace(tiny_run("encoder-only", head="embedding"), tokenizers=Tokenizers(bert, bert)))
    torch.testing.assert_close(loaded.embed(["\x00", "red"]).norm(dim=1), torch.ones(2))


def test_an_empty_text_has_no_class(classifier: Run) -> None:
    with pytest.raises(UserError, match="text 2 is empty"):
        Loaded(classifier).classify(["a", " \n"])
    assert Loaded(classifier).classify([]) == []


# --- the right verb ---------------------------------------------------------------------------------------------------

USES: dict[str, Callable[[Loaded], object]] = {
    "translate": lambda loaded: loaded.translate("a"),
    "generate": lambda loaded: loaded.stream("a", tokens=5),
    "chat": lambda loaded: loaded.chat("a"),
    "classify": lambda loaded: loaded.classify("a"),
    "embed": lambda loaded: loaded.embed("a"),
}


@pytest.mark.parametrize("verb", USES)
def test_a_run_of_another_family_is_refused_with_the_right_verb(
    verb: str, translator: Run, writer: Run, talker: Run, classifier: Run
) -> None:
    for run in (
        translator,
        writer,
        talker,
        classifier,
        tiny_run("encoder-only"),
        tiny_run("encoder-only", head="embedding"),
    ):
        verbs = TASKS[run.recipe.data.task].verbs
        if verb in verbs:
            USES[verb](Loaded(run))
            continue
        with pytest.raises(UserError, match=f"use it with `clearhead {verbs[0]}`"):
            USES[verb](Loaded(run))


def test_an_answer_is_what_the_model_says_after_the_prompt(talker: Run) -> None:
    dialogue = Dialogue((Message("user", "the dog"),))
    prompt = chat_prompt(dialogue, talker.tokenizers.target)
    ids = list(prompt)
    for _ in range(6):
        ids.append(int(talker.model(torch.tensor([ids]))[0, -1].argmax()))  # type: ignore[operator]
        if ids[-1] == talker.tokenizers.target.end:
            break
    assert "".join(answer(talker, dialogue, tokens=6)) == talker.tokenizers.target.decode(ids[len(prompt) :])
