"""Decoding with the same weights in Hugging Face transformers and CTranslate2.

Peers get the same ids, and decode as many tokens, so that their texts can be compared with ours.
"""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import torch

from clearhead.bench.contest import Case, Cases, Work
from clearhead.bench.decoding import Generation, TranslationJob
from clearhead.exchange.targets import export_run
from clearhead.runs import Run, open_run


def source_ids(run: Run, texts: list[str]) -> list[list[int]]:
    """What the encoder reads."""
    return [[*ids, run.tokenizers.source.end] for ids in run.tokenizers.source.encode_batch(texts)]


def decoded(run: Run, rows: list[list[int]]) -> tuple[str, ...]:
    """The texts of ids."""
    return tuple(run.tokenizers.target.decode(row) for row in rows)


def precision_on(device: str) -> torch.dtype:
    """The precision that peers compute in."""
    return torch.bfloat16 if device == "cuda" else torch.float32


# --- Hugging Face transformers ----------------------------------------------------------------------------------------


def transformers_generation(folder: Path, device: str, jobs: dict[str, Generation], cache: str = "dynamic") -> Cases:
    """GPT-2's greedy search, with a growing or a static cache, for which transformers compiles the decode step."""
    run = open_run(folder)
    peer = huggingface(folder).to(device, precision_on(device))
    start = run.tokenizers.target.start

    def case(job: Generation) -> Case:
        rows = [[start, *ids] for ids in run.tokenizers.target.encode_batch(job.texts(folder))]
        prompt = torch.tensor(rows, device=device)
        settings = {"do_sample": False, "max_new_tokens": job.new, "min_new_tokens": job.new}
        static = {"cache_implementation": cache} if cache == "static" else {}

        def generate() -> Work:
            ids = peer.generate(prompt, attention_mask=torch.ones_like(prompt), **settings, **static)
            return Work(job.rows * job.new, decoded(run, ids[:, prompt.size(1) :].tolist()))

        return generate

    return {name: partial(case, job) for name, job in jobs.items()}


def transformers_translation(folder: Path, device: str, jobs: dict[str, TranslationJob]) -> Cases:
    """Marian's beam search."""
    run = open_run(folder)
    peer = huggingface(folder).to(device, precision_on(device))

    def case(job: TranslationJob) -> Case:
        source = torch.tensor(source_ids(run, job.texts(folder)), device=device)
        settings = {"num_beams": job.beam, "do_sample": False, "length_penalty": 0.0}
        lengths = {"max_new_tokens": job.new, "min_new_tokens": job.new}

        def translate() -> Work:
            ids = peer.generate(source, attention_mask=torch.ones_like(source), **settings, **lengths)
            return Work(job.rows, decoded(run, ids[:, 1:].tolist()))

        return translate

    return {name: partial(case, job) for name, job in jobs.items()}


def huggingface(folder: Path) -> Any:
    """The run as a model of transformers."""
    import transformers

    translator = open_run(folder).recipe.model.family == "encoder-decoder"
    kind: Any = transformers.AutoModelForSeq2SeqLM if translator else transformers.AutoModelForCausalLM
    with tempfile.TemporaryDirectory() as temporary:
        exported = Path(temporary) / "exported"
        export_run(folder, exported, "huggingface")
        return kind.from_pretrained(exported).eval()


# --- CTranslate2 ------------------------------------------------------------------------------------------------------


class Words:
    """The part of a tokenizer that CTranslate2's converter needs: a word is its number."""

    def __init__(self, run: Run) -> None:
        self.count = run.recipe.model.vocab
        self.eos_token = str(run.tokenizers.target.end)
        self.unk_token = str(run.tokenizers.target.unknown)

    def get_vocab(self) -> dict[str, int]:
        """All words; the last is padding, which CTranslate2 leaves out."""
        return {"<pad>" if i == self.count - 1 else str(i): i for i in range(self.count)}


def ctranslate2_translation(folder: Path, device: str, jobs: dict[str, TranslationJob], threads: int) -> Cases:
    """CTranslate2's beam search, with weights in float32 or int8, on a GPU in bfloat16."""
    import ctranslate2
    from ctranslate2.converters.transformers import MarianMTLoader

    run = open_run(folder)
    converted = tempfile.TemporaryDirectory()  # kept as long as the cases are
    peer = huggingface(folder)
    peer.config.pad_token_id = run.recipe.model.vocab - 1  # the last row, which the converter leaves out
    with torch.no_grad():
        spec = MarianMTLoader()(peer, Words(run))
    spec.validate()
    spec.optimize()
    spec.save(converted.name)

    def case(job: TranslationJob) -> Case:
        kind = "bfloat16" if device == "cuda" else job.weights or "float32"
        settings: dict[str, Any] = {"device": device, "compute_type": kind, "intra_threads": threads}
        translator = ctranslate2.Translator(converted.name, **settings)
        sentences = [[str(i) for i in row] for row in source_ids(run, job.texts(folder))]
        search: dict[str, Any] = {"beam_size": job.beam, "length_penalty": 0.0, "max_batch_size": 0}
        lengths = {"min_decoding_length": job.new, "max_decoding_length": job.new}

        def translate() -> Work:
            results = translator.translate_batch(sentences, **search, **lengths)
            ids = [[int(word) for word in result.hypotheses[0]] for result in results]
            return Work(job.rows, decoded(run, ids))

        return translate

    return {name: partial(case, job) for name, job in jobs.items() if job.weights not in ("float16", "bfloat16")}
