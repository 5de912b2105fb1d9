"""`clearhead size` shows its arithmetic, as tables or as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import Verb


def test_size_shows_its_arithmetic(verb: Verb) -> None:
    lines, _, code = verb("size", "gpt2", "model.layers=24", "--batch", "8")
    shown = "\n".join(lines)
    assert code == 0
    assert "50,257 × 768" in shown
    assert "209,494,272" in shown  # 124,439,808 and twelve blocks more
    assert "training time" in shown


def test_size_of_a_recipe_takes_its_tokenizers_vocabulary(verb: Verb) -> None:
    lines, _, code = verb("size", "phrasebook", "tokenizer.vocab=5000")
    assert code == 0
    assert "5,000 × 128" in "\n".join(lines)


@pytest.mark.parametrize(("recipe", "predicted"), [("reviews", False), ("masked-stories", True)])
def test_a_classifier_predicts_no_tokens(verb: Verb, recipe: str, predicted: bool) -> None:
    shown = "\n".join(verb("size", recipe, "--gpu", "h100")[0])
    assert ("masked training predicts" in shown) == predicted
    assert ("class or vector" in shown) != predicted
    assert "causal" not in shown


def test_size_of_a_run_is_that_of_its_recipe(verb: Verb, runs: dict[str, Path]) -> None:
    run = runs["translation"]
    of_run, of_recipe = (
        {**json.loads(verb("size", name, "--json")[0][0]), "model": ""} for name in (run, run / "run.toml")
    )
    assert of_run == of_recipe


@pytest.mark.parametrize("recipe", ["multi30k-en-de-lora", "reviews-from-stories"])
def test_recipes_that_freeze_parameters_say_so(verb: Verb, recipe: str) -> None:
    lines, _, code = verb("size", recipe, "--gpu", "h100")
    assert ("are trained, the others are frozen" in "\n".join(lines), code) == (True, 0)


@pytest.mark.parametrize(("setting", "trained"), [("train.lora=8", 294_912), ("train.freeze=*.blocks.*", 39_385_344)])
def test_frozen_parameters_take_neither_gradients_nor_optimiser_state(verb: Verb, setting: str, trained: int) -> None:
    whole, part = (json.loads(verb("size", "gpt2", "--json", *each)[0][0]) for each in ((), (setting,)))
    assert (whole["trained parameters"], part["trained parameters"]) == (124_439_808, trained)
    memory = part["training memory"]
    assert (memory["gradients"], memory["AdamW's two averages"]) == (4 * trained, 8 * trained)
    shown, whole_shown = (" ".join(" ".join(verb("size", "gpt2", *each)[0]).split()) for each in ((setting,), ()))
    assert f"{trained:,} parameters ({trained / 124_439_808:.2%}) are trained, the others are frozen" in shown
    assert "frozen" not in whole_shown


def test_size_as_json_is_json(verb: Verb) -> None:
    [line], _, _ = verb("size", "tiny-decoder-only", "--json")
    read = json.loads(line)
    assert sum(read["parameters"].values()) == 116_480
    assert read["training seconds"] > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("gpt3",), "'gpt3' is neither a preset, a recipe nor a run; did you mean 'gpt2'?"),
        (("gpt2", "model.heads=7"), "model.d_model = 768 is not divisible by model.heads = 7"),
        (("gpt2", "--gpu", "h1000"), "--gpu 'h1000': unknown; did you mean 'h100'?"),
        (("gpt2", "--batch", "0"), "--batch 0: must be at least 1"),
    ],
)
def test_mistakes_get_a_sentence_and_no_traceback(verb: Verb, arguments: tuple[str, ...], message: str) -> None:
    lines, notes, code = verb("size", *arguments)
    assert (message in notes, code, lines) == (True, 1, [])


def test_a_recipe_is_estimated_with_its_own_tokens_and_on_this_machine(
    verb: Verb, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    [line], _, _ = verb("size", "stories", "--json", "train.steps=7", "data.batch_tokens=1000")
    read = json.loads(line)
    assert (read["training tokens"], read["device"]) == (7000, "cpu, float32")
    [line], _, _ = verb("size", "phrasebook", "--json", "train.steps=7", "train.step_tokens=1000", "--gpu", "a100")
    read = json.loads(line)
    assert (read["training tokens"], read["device"]) == (3500, "a100")  # half of the budget are source tokens
    shown = "\n".join(verb("size", "stories", "data.max_length=50", "data.batch_tokens=1000")[0])
    assert "batch 20 × length 50" in shown
    assert "on 1 × cpu, float32" in shown
    [line], _, _ = verb("size", "gpt2", "--json")
    read = json.loads(line)
    assert (read["training tokens"], read["device"]) == (1e9, "h100")


def test_many_gpus_are_estimated_with_their_memory_and_communication(verb: Verb) -> None:
    options = ("--gpus", "64", "--gpu", "h100", "--batch", "2", "--length", "4096")
    lines, _, code = verb("size", "modern-7b", *options)
    shown = " ".join(" ".join(lines).split())
    assert code == 0
    assert "452,608,256" in shown  # 7,241,732,096 × 4 / 64
    assert "divided among the GPUs by FSDP" in shown
    assert "of communication" in shown
    assert "fits into its 80 GB" in shown
    [line], _, _ = verb("size", "modern-7b", *options, "--json")
    read = json.loads(line)
    assert read["training seconds"] == pytest.approx(1e9 / read["tokens per second"])
    [line], _, _ = verb("size", "modern-7b", *options, "--json", "train.checkpoint_activations=true")
    again = json.loads(line)
    assert sum(again["training memory"].values()) < sum(read["training memory"].values())
    assert again["step seconds"] == pytest.approx(read["step seconds"] * 4 / 3, rel=0.02)


def test_a_model_that_does_not_fit_gets_a_remedy(verb: Verb) -> None:
    lines, _, _ = verb("size", "modern-7b", "--gpu", "h100")
    shown = " ".join(" ".join(lines).split())
    assert "does not fit into its 80 GB; smaller: --batch, more --gpus, train.checkpoint_activations=true" in shown


@pytest.mark.parametrize(("gpu", "doubled"), [("h100", "activations"), ("here", "decoder activations")])
def test_r_drop_trains_two_passes_and_decodes_one(verb: Verb, gpu: str, doubled: str) -> None:
    options = ("phrasebook", "model.dropout=0.1", "train.device=cpu", "--gpu", gpu, "--json")
    one, two = (json.loads(verb("size", *options, *each)[0][0]) for each in ((), ("train.r_drop=5",)))
    memory = two["training memory"]
    assert memory["weights"] == one["training memory"]["weights"]
    assert memory[doubled] == 2 * one["training memory"][doubled]
    assert two["decoding cache"] == one["decoding cache"]
    assert two["training tokens"] == one["training tokens"]
    if gpu == "h100":  # the peak of a CPU is measured each time
        assert two["training seconds"] == pytest.approx(2 * one["training seconds"])
    shown = " ".join(" ".join(verb("size", "multi30k-en-de", "--gpu", "h100")[0]).split())
    assert "With train.r_drop each batch is computed twice" in shown
