"""What the verbs that use a run do: translate, generate, classify, embed. Texts come from and go to `pipes`."""

from __future__ import annotations

import io
import itertools
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import torch
from torch import Tensor

from clearhead.config import Weights, require
from clearhead.decode.embed import classify, embed
from clearhead.decode.generate import generate, generate_stream
from clearhead.decode.limits import model_for
from clearhead.decode.sampling import Choice
from clearhead.decode.translate import Searching, Written, translate
from clearhead.device import choose_device
from clearhead.library import load
from clearhead.runs import Run
from clearhead.terminal.pipes import note, texts_from, write, write_lines, write_objects


def open_for(folder: Path, device: str, weights: Weights, *tasks: str) -> Run:
    """A run that was trained for one of these tasks, on a device."""
    run = load(folder, device_for(device, weights), weights).run
    model_for(run, *tasks)
    return run


def device_for(device: str, weights: Weights) -> str:
    """The device that is meant: by `auto` the best there is, but with fewer bits the CPU, which alone knows them."""
    return str(choose_device("cpu" if device == "auto" and weights != "float32" else device, "--device"))


def translate_texts(run: Run, texts: Sequence[str], how: Searching, json: bool) -> None:
    """A translation for each text; of several, or with --json, with their scores."""
    for some in texts_from(texts):
        found = translate(run, some, how)
        unfinished = sum(not best.ended for best, *_ in found)
        if unfinished:
            note(f"{unfinished} of {len(some)} did not come to an end and were cut")
        if json:
            pairs = zip(some, found, strict=True)
            write_objects({"source": source, "translations": [asdict(each) for each in best]} for source, best in pairs)
        else:
            write_lines(line for best in found for line in shown(best, how.nbest))
        how = replace(how, seed=later(how.seed, len(some)))


def later(seed: int | None, count: int) -> int | None:
    """The seed of the text that comes so many after: each has its own."""
    return None if seed is None else seed + count


def shown(best: Sequence[Written], count: int) -> list[str]:
    """One translation as it is; several with their scores in front."""
    return [best[0].text] if count == 1 else [f"{each.score:.4f}\t{each.text}" for each in best]


def generate_texts(
    run: Run, prompts: Sequence[str], tokens: int, choice: Choice | None, seed: int | None, json: bool
) -> None:
    """How one prompt goes on, as it is written; or of several, or of the lines of stdin, a line for a line."""
    if len(prompts) == 1 and not json:
        [[prompt]] = texts_from(prompts)
        for piece in itertools.chain([prompt], generate_stream(run, prompt, tokens, choice, seed), ["\n"]):
            write(piece.encode())
        return
    for some in texts_from(prompts):
        found = generate(run, some, tokens, choice, seed)
        if json:
            write_objects({"prompt": prompt, "text": text} for prompt, text in zip(some, found, strict=True))
        else:
            write_lines(prompt + text for prompt, text in zip(some, found, strict=True))
        seed = later(seed, len(some))


def classify_texts(run: Run, texts: Sequence[str], json: bool) -> None:
    """The class of each text and how likely it is."""
    for some in texts_from(texts, empty=False):
        found = classify(run, some)
        if json:
            write_objects({"text": text, **asdict(each)} for text, each in zip(some, found, strict=True))
        else:
            write_lines(f"{each.label}\t{each.probabilities[each.label]:.4f}" for each in found)


def embed_texts(run: Run, texts: Sequence[str], json: bool) -> None:
    """A vector for each text: JSON lines, or without --json one .npy file of all."""
    if json:
        for some in texts_from(texts, empty=False):
            vectors = embed(run, some).tolist()
            write_objects({"text": text, "vector": vector} for text, vector in zip(some, vectors, strict=True))
        return
    require(not sys.stdout.isatty(), "an .npy file is nothing to read: send it to a file, `> vectors.npy`, or --json")
    vectors = [embed(run, some) for some in texts_from(texts, empty=False)]
    require(bool(vectors), "there is no text to embed; give some, or lines on stdin")
    write(npy(torch.cat(vectors)))


def npy(vectors: Tensor) -> bytes:
    """Vectors in numpy's file format."""
    import numpy as np

    file = io.BytesIO()
    np.save(file, vectors.numpy())
    return file.getvalue()


def compare_texts(run: Run, texts: Sequence[str], json: bool) -> None:
    """How similar texts are: of each text, the cosine with every other, the closest first."""
    every = [text for some in texts_from(texts, empty=False) for text in some]
    require(len(every) > 1, "--similar compares texts with each other: give two or more")
    vectors = embed(run, every)
    cosines = vectors @ vectors.T
    for row, text in enumerate(every):
        order = [other for other in cosines[row].argsort(descending=True).tolist() if other != row]
        if json:
            others = [{"text": every[other], "cosine": round(cosines[row, other].item(), 6)} for other in order]
            write_objects([{"text": text, "similar": others}])
        else:
            write_lines([text, *(f"  {cosines[row, other]:.4f}  {every[other]}" for other in order)])
