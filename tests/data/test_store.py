"""The cache of tokenized text: made once, whole or not at all, made anew when anything it depends on has changed."""

from __future__ import annotations

import multiprocessing
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clearhead.config import DataConfig, TokenizerConfig, UserError
from clearhead.data import encode
from clearhead.data.encode import open_store_of
from clearhead.data.examples import Example
from clearhead.data.store import DamagedError, Store, open_store
from clearhead.text.tokenizer import Tokenizer, Tokenizers, train_tokenizer
from ordinary_user import as_ordinary_user, folder_for_all

WORDS = ["the", "cat", "sat", "on", "a", "mat", "and", "saw", "two", "red", "birds", "in", "an", "old", "tree"]
LINES = [" ".join(WORDS[start : start + size]) for start in range(10) for size in range(1, 6)]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer(TokenizerConfig(vocab=320), LINES + ["a\n\n\n\nb    c\t\t \n"] * 99, progress=False)


@pytest.fixture
def config(tmp_path: Path) -> DataConfig:
    (tmp_path / "train.tsv").write_text("".join(f"{line}\t{line[::-1]}\n" for line in LINES))
    return DataConfig(path=str(tmp_path), source="1", target="2", cache=str(tmp_path / "cache"))


def open_one(config: DataConfig, tokenizer: Tokenizer) -> Store:
    return open_store_of(config, Tokenizers(tokenizer, tokenizer), "train")


def stores(config: DataConfig) -> list[Path]:
    return sorted(path for path in Path(config.cache).iterdir() if not path.name.startswith("."))


def test_a_store_holds_what_the_tokenizer_says(config: DataConfig, tokenizer: Tokenizer) -> None:
    columns = open_one(config, tokenizer).ragged
    for number, line in enumerate(LINES):
        source, target = (
            column.values[column.offsets[number] : column.offsets[number + 1]].tolist() for column in columns.values()
        )
        assert source == [*tokenizer.encode(line), tokenizer.end]
        assert target == [tokenizer.start, *tokenizer.encode(line[::-1])]
    assert columns["target"].values[-1] == tokenizer.start  # stands for the last [end]
    assert columns["source"].values.dtype == np.uint16
    assert isinstance(columns["source"].values.base, np.memmap)


def test_chunks_change_nothing(config: DataConfig, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = open_one(config, tokenizer)
    monkeypatch.setattr("clearhead.text.cutting.CHUNK_CHARACTERS", 50)
    again = open_one(DataConfig(**{**vars(config), "cache": config.cache + "2"}), tokenizer)
    for name, column in whole.ragged.items():
        assert np.array_equal(column.values, again.ragged[name].values)
        assert np.array_equal(column.offsets, again.ragged[name].offsets)


def test_it_is_made_once(config: DataConfig, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    open_one(config, tokenizer)
    monkeypatch.setattr(encode, "write", None)  # to be called would be an error
    assert len(open_one(config, tokenizer).ragged["source"].lengths) == len(LINES)
    assert len(stores(config)) == 1


def test_whatever_it_depends_on_makes_a_new_one(config: DataConfig, tokenizer: Tokenizer, tmp_path: Path) -> None:
    open_one(config, tokenizer)
    open_one(DataConfig(**{**vars(config), "source": "2", "target": "1"}), tokenizer)
    open_one(config, train_tokenizer(TokenizerConfig(vocab=280), LINES, progress=False))
    (tmp_path / "train.tsv").write_text((tmp_path / "train.tsv").read_text().replace("cat", "dog"))
    store = open_one(config, tokenizer)
    assert "dog" in tokenizer.decode(store.ragged["source"].values[:40].tolist())
    assert len(stores(config)) == 4
    open_one(DataConfig(**{**vars(config), "max_length": 99, "batch_tokens": 9999}), tokenizer)
    assert len(stores(config)) == 4  # these two decide nothing about the ids


HARMS = ["cut", "grown", "flipped", "gone", "manifest", "facts", "no manifest", "not json", "empty"]


@pytest.mark.parametrize("harm", HARMS)
def test_a_damaged_store_is_made_anew_and_reported(config: DataConfig, tokenizer: Tokenizer, harm: str) -> None:
    expected = open_one(config, tokenizer).ragged["source"].values.tolist()
    (folder,) = stores(config)
    values = folder / "source.values"
    manifest = folder / "manifest.json"
    if harm in ("cut", "grown"):
        os.truncate(values, values.stat().st_size + (-2 if harm == "cut" else 2))
    elif harm == "flipped":
        with values.open("r+b") as file:
            file.write(b"\1")
    elif harm in ("gone", "no manifest"):
        (values if harm == "gone" else manifest).unlink()
    else:
        texts = {"manifest": manifest.read_text().replace('"bytes": ', '"bytes": 1'), "not json": "{", "empty": ""}
        texts["facts"] = manifest.read_text().replace('"labels": []', '"labels": ["invented"]')
        manifest.write_text(texts[harm])
    with pytest.raises(DamagedError):
        open_store(folder)
    store = open_one(config, tokenizer)
    assert store.ragged["source"].values.tolist() == expected
    assert store.report.lines() == [f"1 damaged cache rebuilt (first: {folder})"]
    assert open_one(config, tokenizer).report.lines() == []


def test_what_was_left_out_is_remembered(config: DataConfig, tokenizer: Tokenizer, tmp_path: Path) -> None:
    with (tmp_path / "train.tsv").open("a") as file:
        file.write("alone\t \n")
    first, second = open_one(config, tokenizer), open_one(config, tokenizer)
    expected = [f"1 empty examples dropped (first: {tmp_path / 'train.tsv'}:{len(LINES) + 1})"]
    assert first.report.lines() == second.report.lines() == expected


def test_nothing_left_is_an_error(config: DataConfig, tokenizer: Tokenizer, tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text("alone\t \n")
    with pytest.raises(UserError, match="has no train examples; 1 empty examples dropped"):
        open_one(config, tokenizer)
    assert stores(config) == []


def build(config: DataConfig, tokenizer: Tokenizer, ready: Any, results: Any) -> None:
    ready.wait()
    store = open_one(config, tokenizer)
    results.put((os.getpid(), int(store.ragged["source"].values.astype(np.int64).sum())))


def test_processes_that_start_at_once_share_one_store(config: DataConfig, tokenizer: Tokenizer) -> None:
    context = multiprocessing.get_context("spawn")
    ready = context.Barrier(3)
    results = context.Queue()
    processes = [context.Process(target=build, args=(config, tokenizer, ready, results)) for _ in range(3)]
    for process in processes:
        process.start()
    sums = {results.get(timeout=120)[1] for _ in processes}
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    assert sums == {int(open_one(config, tokenizer).ragged["source"].values.astype(np.int64).sum())}
    assert len(stores(config)) == 1
    assert list(Path(config.cache).glob(".*")) == []  # no parts, no locks


def test_an_error_while_reading_is_not_blamed_on_the_cache(
    config: DataConfig, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dead_line(*_: object) -> Iterator[Example]:
        raise ConnectionError("the line is dead")

    monkeypatch.setattr("clearhead.data.readers.folder.FolderCorpus.read", dead_line)
    with pytest.raises(ConnectionError, match="the line is dead"):
        open_one(config, tokenizer)
    assert list(Path(config.cache).iterdir()) == []


def fill_the_disk(config: DataConfig, tokenizer: Tokenizer, results: Any) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))  # as if the disk had room for 500 more bytes of each file
    try:
        open_one(config, tokenizer)
        results.put("no error")
    except UserError as error:
        results.put(str(error))


def test_a_full_disk_leaves_nothing_behind(config: DataConfig, tokenizer: Tokenizer) -> None:
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    process = context.Process(target=fill_the_disk, args=(config, tokenizer, results))
    process.start()
    message = results.get(timeout=120)
    process.join(60)
    assert message == (
        f"cannot write tokenized data to {config.cache}: the disk is full; "
        "set data.cache to a folder that can be written and has space"
    )
    assert [path for path in Path(config.cache).rglob("*") if path.stat().st_size] == []
    assert stores(config) == []
    open_one(config, tokenizer)


def test_a_folder_that_cannot_be_written(config: DataConfig, tokenizer: Tokenizer, tmp_path: Path) -> None:
    below_a_file = DataConfig(**{**vars(config), "cache": str(tmp_path / "train.tsv" / "cache")})
    with pytest.raises(UserError, match=r"Not a directory; set data\.cache to a folder that can be written"):
        open_one(below_a_file, tokenizer)


def test_a_folder_that_may_only_be_read(tokenizer: Tokenizer) -> None:
    with folder_for_all() as folder:
        (folder / "train.tsv").write_text("a\tb\n")
        folder.chmod(0o555)
        config = DataConfig(path=str(folder), source="1", target="2", cache=str(folder / "cache"))
        expected = f"to {folder / 'cache'}: Permission denied; set data.cache to a folder that can be written"
        with as_ordinary_user(), pytest.raises(UserError, match=expected):
            open_one(config, tokenizer)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="asks Linux how much memory a process had")
def test_memory_stays_small(tokenizer: Tokenizer, tmp_path: Path) -> None:
    """A file of many chunks is tokenized in little more memory than one of them takes."""
    with (tmp_path / "train.txt").open("w") as file:
        for _ in range(900):
            file.write(" ".join(LINES) * 20 + "\n")
    tokenizer.save(tmp_path / "tokenizer.json")
    code = f"""
import re
from pathlib import Path
from clearhead.config import DataConfig
from clearhead.data.encode import open_store_of
from clearhead.text.tokenizer import load_tokenizers
most = lambda: int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
config = DataConfig(task="language", path="{tmp_path}", train="train.txt", cache="{tmp_path}/cache")
both = load_tokenizers(Path("{tmp_path}/tokenizer.json"))
before = most()
store = open_store_of(config, both, "train")
print(before, most(), len(store.ragged["text"].values))
"""
    command = [sys.executable, "-c", code]
    environment = {**os.environ, "RAYON_NUM_THREADS": "2"}  # each thread of the tokenizer has its own memory
    out = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
    before, after, tokens = map(int, out.split())
    assert tokens > 2_000_000
    assert after - before < 110_000, out
