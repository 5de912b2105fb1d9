"""The translator that comes with clearhead, and how a command line tells a run from a text."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import clearhead
from clearhead import bundled
from clearhead.config import UserError
from clearhead.exchange.compact import quantised
from clearhead.exchange.targets import export_run
from clearhead.runs import INT8_SCALE, dequantised, open_run
from command_line import TRAINED, Verb

TRANSLATOR_RUN = bundled.find_run(bundled.TRANSLATOR)
PAGE = Path(__file__).parents[1] / "docs" / "everyday-sentences.md"
STATION = "Where is the nearest station?"


# --- the run ----------------------------------------------------------------------------------------------------------


def test_it_is_small_and_has_a_card() -> None:
    assert sum(path.stat().st_size for path in TRANSLATOR_RUN.iterdir()) <= 16_000_000
    card = (TRANSLATOR_RUN / "MODEL_CARD.md").read_text(encoding="utf8")
    for word in ("tatoeba.org", "CC BY 2.0 FR", "sacreBLEU", "## Licence", "## Limits", "make model"):
        assert word in card
    settings = (TRANSLATOR_RUN / "run.toml").read_text(encoding="utf8")
    assert 'path = "data/tatoeba-en-fr"' in settings
    assert f"{sum(p.numel() for p in open_run(bundled.TRANSLATOR).model.parameters()):,} parameters" in card


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "usage: python tools/bundled_data.py CORPUS FOLDER"),
        (("nothing", "build"), "data.path = 'nothing' does not exist in "),
    ],
    ids=["missing", "wrong"],
)
def test_its_training_data_need_a_corpus(arguments: tuple[str, ...], message: str, tmp_path: Path) -> None:
    script = Path(__file__).parents[1] / "tools" / "bundled_data.py"
    done = subprocess.run(
        [sys.executable, script, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr.startswith(message)) == (1, True)


def test_it_translates_right_after_installation(verb: Verb) -> None:
    model = clearhead.load()
    [translation], notes, code = verb("translate", STATION)
    assert (translation, notes, code) == (model.translate(STATION), "", 0)
    readme = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf8")
    assert f"# {translation} (in two seconds)" in readme
    assert verb("translate", bundled.TRANSLATOR, STATION)[0] == [translation]
    assert verb("translate", stdin=f"{STATION}\n")[0] == [translation]
    assert repr(model).startswith(f"Loaded({str(TRANSLATOR_RUN)!r}, translation, 14,515,072")


def test_the_other_verbs_look_inside_it(verb: Verb) -> None:
    lines, _, code = verb("walk", "Hello!", "--layer", 0)
    assert (code, "cross" in "\n".join(lines)) == (0, True)
    assert verb("tokenize", "Hello!")[0][-1].endswith("6 characters, 6 bytes")


ROW = re.compile(r"^\| ([^|]+?)( †)? \| ([^|]+?) \| (right|understandable|wrong)(?:: .+)? \|$", re.MULTILINE)


def test_every_everyday_sentence_is_judged_and_counted() -> None:
    text = PAGE.read_text(encoding="utf8")
    rows = ROW.findall(text)
    assert len({english for english, *_ in rows}) == len(rows) == 200
    counts = [sum(judged == verdict for *_, judged in rows) for verdict in ("right", "understandable", "wrong")]
    assert f"| all 200 | {' | '.join(map(str, counts))} |" in text
    card = (TRANSLATOR_RUN / "MODEL_CARD.md").read_text(encoding="utf8").replace("\n", " ")
    assert "{} translations are right, {} understandable and {} wrong".format(*counts) in card


@pytest.mark.slow
def test_the_judged_translations_are_those_of_the_translator() -> None:
    rows = ROW.findall(PAGE.read_text(encoding="utf8"))
    found = clearhead.load().translate([english for english, *_ in rows])
    same = sum(ours == french for ours, (_, _, french, _) in zip(found, rows, strict=True))
    assert same >= 195  # rounding differs a little between machines


# --- runs and texts ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "run", "texts"),
    [
        ((), bundled.TRANSLATOR, []),
        (("Hello!",), bundled.TRANSLATOR, ["Hello!"]),
        (("a text", "b text"), bundled.TRANSLATOR, ["a text", "b text"]),
        (("word",), bundled.TRANSLATOR, ["word"]),
        (("",), bundled.TRANSLATOR, [""]),
        (("...",), bundled.TRANSLATOR, ["..."]),
        (("either/or is a text", "b"), bundled.TRANSLATOR, ["either/or is a text", "b"]),
        ((str(TRAINED), "a text"), str(TRAINED), ["a text"]),
        ((str(TRAINED),), str(TRAINED), []),
        (("english-french", "a text"), "english-french", ["a text"]),
        (("runs/nothing", "a text"), "runs/nothing", ["a text"]),
        ((".", "a text"), ".", ["a text"]),
        (("known", "a text"), "known", ["a text"]),
    ],
)
def test_the_first_argument_is_a_run_or_a_text(arguments: tuple[str, ...], run: str, texts: list[str]) -> None:
    assert bundled.run_and_texts(arguments, {"known"}) == (run, texts)


def test_the_name_of_a_run_in_runs_is_not_taken_for_a_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "demo").mkdir(parents=True)
    (tmp_path / "runs" / "demo" / "run.toml").touch()
    with pytest.raises(UserError, match=r"'demo' is not a folder here, but runs/demo is a run: give runs/demo; .*demo"):
        bundled.run_and_texts(["demo", "a cat"])


def test_a_folder_comes_before_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert bundled.find_run("english-french") == TRANSLATOR_RUN
    monkeypatch.chdir(tmp_path)
    (tmp_path / "english-french").mkdir()
    assert bundled.find_run("english-french") == Path("english-french")
    assert bundled.find_run("elsewhere") == Path("elsewhere")


def test_what_is_written_like_a_path_stays_an_error(
    verb: Verb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    _, notes, code = verb("translate", "no/where", "a")
    assert (code, "there is no such folder; `clearhead train RECIPE` creates one, and english-french" in notes) == (
        1,
        True,
    )
    assert "2 texts: only one can be followed" in verb("walk", "one text", "two texts")[1]
    assert verb("explore", TRAINED, TRAINED, TRAINED)[1].startswith("clearhead: 3 runs: at most two")


# --- compact runs -----------------------------------------------------------------------------------------------------


def test_rows_are_rounded_to_a_127th_of_their_largest_value() -> None:
    weights = {"a.weight": torch.randn(5, 7), "a.bias": torch.randn(5), "zeros": torch.zeros(2, 3)}
    stored = quantised(weights)
    assert stored["a.weight"].dtype == stored["zeros"].dtype == torch.int8
    back = dequantised(stored)
    assert back.keys() == weights.keys()
    assert torch.equal(back["a.bias"], weights["a.bias"])
    assert torch.equal(back["zeros"], weights["zeros"])
    error = (back["a.weight"] - weights["a.weight"]).abs()
    assert (error <= 0.5001 * stored["a.weight" + INT8_SCALE][:, None]).all()


def test_a_compact_run_is_a_run(verb: Verb, tmp_path: Path) -> None:
    note = export_run(TRAINED, tmp_path / "small", "compact")
    assert "rounded to int8" in note[0]
    before, after = (open_run(folder) for folder in (TRAINED, tmp_path / "small"))
    for name, parameter in before.model.named_parameters():
        other = dict(after.model.named_parameters())[name]
        assert (parameter - other).abs().max() <= parameter.abs().max() / 127
    sizes = [(folder / "model.safetensors").stat().st_size for folder in (TRAINED, tmp_path / "small")]
    assert sizes[1] < 0.4 * sizes[0]
    assert after.recipe.data.cache == ""
    assert verb("translate", tmp_path / "small", "a cat")[2] == 0
    shown = [verb("runs", folder, "--json")[0][0] for folder in (TRAINED, tmp_path / "small")]
    assert len({re.search(r'"parameters": (\d+)', line)[1] for line in shown}) == 1
    with pytest.raises(UserError, match="is not empty: choose another folder"):
        export_run(TRAINED, tmp_path / "small", "compact")


def test_a_compact_run_that_is_written_again_keeps_its_card(tmp_path: Path) -> None:
    [note] = export_run(bundled.TRANSLATOR, tmp_path / "again", "compact")
    assert note.startswith("english-french was a compact run already")
    assert "tatoeba.org" in (tmp_path / "again" / "MODEL_CARD.md").read_text()


def test_the_names_of_runs_do_not_wait_for_torch() -> None:
    assert "torch" not in {name.split(".")[0] for name in vars(sys.modules["clearhead.bundled"])}
