"""Training of tokenizers: the same everywhere, within its limits, and interrupted at once."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from clearhead.config import UserError
from clearhead.text import bpe, tokenizer_training
from patience import PATIENCE
from trained_tokenizers import OURS, TEXTS, each_kind, trained


@each_kind
def test_vocabulary_limit_holds(kind: str) -> None:
    tokenizer = trained(kind, vocab=300)
    assert tokenizer.vocab <= 300
    assert max(tokenizer.encode(" ".join(TEXTS))) < tokenizer.vocab
    ids = [tokenizer.piece(number) for number in range(tokenizer.vocab)]  # no holes
    assert len(ids) == tokenizer.vocab


def test_characters_are_all_kept_whatever_the_limit() -> None:
    assert trained("characters", ["abc"], vocab=1).vocab == 9 + 3


@pytest.mark.parametrize(
    ("kind", "vocab", "remedy"),
    [
        ("bpe", 264, "at least 265"),
        ("words", 9, "at least 10"),
        ("wordpiece", 30, r"use at least \d+, or kind = 'bpe'"),
    ],
)
def test_too_small_a_vocabulary_is_refused(kind: str, vocab: int, remedy: str) -> None:
    with pytest.raises(UserError, match=rf"tokenizer.vocab = {vocab} is too small.*{remedy}"):
        trained(kind, vocab=vocab)


def test_smallest_bpe_has_bytes_only() -> None:
    tokenizer = trained("bpe", vocab=265)
    assert tokenizer.vocab == 265
    assert len(tokenizer.encode("déjà")) == 6


@each_kind
@pytest.mark.parametrize("texts", [[], [""]])
def test_no_text_is_refused(kind: str, texts: list[str]) -> None:
    with pytest.raises(UserError, match=r"the corpus is empty; look at data\.path"):
        trained(kind, texts)


TRAIN_AND_PRINT = """
import sys
from clearhead.config import TokenizerConfig
from clearhead.text.tokenizer import train_tokenizer
print(train_tokenizer(TokenizerConfig(kind=sys.argv[1], vocab=400), iter(sys.argv[2:])).fingerprint)
"""


@each_kind
def test_training_is_the_same_in_every_process_and_for_every_order_of_texts(kind: str) -> None:
    commands = [[sys.executable, "-c", TRAIN_AND_PRINT, kind, *texts] for texts in (TEXTS, TEXTS[::-1])]
    runs = [subprocess.run(command, check=True, capture_output=True, text=True) for command in commands]
    assert [run.stdout.strip() for run in runs] == [OURS[kind].fingerprint] * 2
    assert [run.stderr for run in runs] == ["", ""]  # no progress bar where there is no terminal


@each_kind
def test_ctrl_c_ends_the_training(kind: str) -> None:
    read = []
    interrupted = threading.Event()

    def texts() -> Iterator[str]:
        signal.raise_signal(signal.SIGINT)  # in this thread: the main thread, which waits, is not woken
        interrupted.wait(PATIENCE)
        for number in range(1000):
            read.append(number)
            yield "a text"

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            trained(kind, texts())
    finally:
        signal.signal(signal.SIGINT, before)
        interrupted.set()
    for thread in threading.enumerate():
        if thread.name == "tokenizer":
            thread.join()
    assert read == [0]


LEARN_AND_INTERRUPT = """
import atexit, signal, sys, threading
from clearhead.cli import main
from clearhead.config import TokenizerConfig
from clearhead.text import tokenizer_training

def learn_for_ever(*_):
    signal.raise_signal(signal.SIGINT)  # in this thread: the main thread, which waits, is not woken
    threading.Event().wait()

signal.signal(signal.SIGINT, signal.default_int_handler)
tokenizer_training.train_bpe = learn_for_ever
"""
PROGRAM = """
atexit.register(print, "goodbye")
try:
    tokenizer_training.train_backend(TokenizerConfig(kind="bpe"), ["a text"], progress=False)
except KeyboardInterrupt:
    print("interrupted")
sys.exit(3)
"""
COMMAND = """
sys.argv = ["clearhead", "train", "phrasebook", "data.size=200", "tokenizer.vocab=400"]
main()
"""


@pytest.mark.parametrize(
    ("rest", "written", "code"),
    [(PROGRAM, "interrupted\ngoodbye\n", 3), (COMMAND, "", 130)],
    ids=["library", "command"],
)
def test_ctrl_c_does_not_wait_until_the_vocabulary_is_learned(
    rest: str, written: str, code: int, tmp_path: Path
) -> None:
    command = [sys.executable, "-c", LEARN_AND_INTERRUPT + rest]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, cwd=tmp_path)
    assert (ended.stdout, ended.returncode) == (written, code)
    assert "Traceback" not in ended.stderr
    assert not (tmp_path / "runs" / "phrasebook").exists()


def test_bpe_equals_the_didactic_one() -> None:
    once = TEXTS[:3]  # so few that merging stops because no pair is left, long before the limit
    tokenizer, slow = trained("bpe", once, vocab=2000), bpe.train(once, 2000, specials=9)
    assert tokenizer.vocab == 9 + len(slow.ids)
    for text in once:
        assert tokenizer.encode(text) == slow.encode(text)


def test_a_trainer_sees_no_endless_word() -> None:
    assert tokenizer_training.cut_long_words("a cat " * 9) == "a cat " * 9
    cut_text = tokenizer_training.cut_long_words("a " + "x" * 2500)
    assert [len(word) for word in cut_text.split()] == [1, 1000, 1000, 500]
