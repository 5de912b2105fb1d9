"""Translate with onnxruntime and tokenizers alone; neither torch nor clearhead is needed.

clearhead export runs/demo exported/demo --to onnx
python examples/translate_onnx.py exported/demo "the red car is fast" "a cat runs"

Without texts, each line of stdin is one. The result is that of `clearhead translate --beam 1`, which also splits a
text into sentences; here each text should be one sentence.

Shapes: L layers, B sentences, S source tokens, P tokens so far, G key/value heads, K head size, V vocabulary.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import onnxruntime
from tokenizers import Tokenizer


class Translator:
    """An exported translator: two programs, two tokenizers and a few settings."""

    def __init__(self, folder: Path) -> None:
        self.encoder = onnxruntime.InferenceSession(folder / "encoder.onnx", providers=["CPUExecutionProvider"])
        self.decoder = onnxruntime.InferenceSession(folder / "decoder.onnx", providers=["CPUExecutionProvider"])
        self.source = Tokenizer.from_file(str(folder / "tokenizer.source.json"))
        self.target = Tokenizer.from_file(str(folder / "tokenizer.target.json"))
        self.source.encode_special_tokens = True  # "<end>" in a text is text
        self.settings = json.loads((folder / "settings.json").read_text(encoding="utf8"))

    def translate(self, texts: list[str]) -> list[str]:
        """Return the translation of each sentence."""
        if not texts:
            return []
        encoded = self.source.encode_batch([text.strip() for text in texts], add_special_tokens=False)
        rows = [[*each.ids, self.settings["source_end"]] for each in encoded]
        lengths = np.array([len(row) for row in rows])
        real = np.arange(lengths.max()) < lengths[:, None]  # (B, S)
        source = np.full(real.shape, self.settings["source_pad"])
        source[real] = np.concatenate(rows)
        limits = np.minimum(lengths + self.settings["extra_tokens"], self.settings["max_tokens"])
        return self.target.decode_batch(self.greedy(source, real, limits))

    def greedy(self, source: np.ndarray, real: np.ndarray, limits: np.ndarray) -> list[list[int]]:
        """Write the most likely token at each step, in each row, up to the end token or the row's limit."""
        source_keys, source_values = self.encoder.run(None, {"source": source, "source_real": real})  # (L, B, G, S, K)
        memory = {"source_real": real, "source_keys": source_keys, "source_values": source_values}
        memory["padding"] = np.zeros(len(source), dtype=np.int64)  # every row begins with the start token
        ids = np.full((len(source), 1), self.settings["start"])
        keys = values = source_keys[:, :, :, :0]  # (L, B, G, P, K): nothing yet
        written: list[list[int]] = [[] for _ in source]
        active = limits > 0
        while active.any():
            logits, keys, values = self.decoder.run(None, {"ids": ids, "keys": keys, "values": values, **memory})
            ids = logits.argmax(-1)[:, None]  # (B, V) -> (B, 1)
            active &= ids[:, 0] != self.settings["end"]
            for row in active.nonzero()[0]:
                written[row].append(int(ids[row, 0]))
            active &= np.array([len(row) for row in written]) < limits
        return written


def main() -> None:
    """Translate the texts of the command line, or the lines of stdin."""
    if not sys.argv[1:]:
        sys.exit("usage: python translate_onnx.py FOLDER [TEXT ...]")
    folder, *texts = sys.argv[1:]
    for translation in Translator(Path(folder)).translate(texts or sys.stdin.read().splitlines()):
        print(translation)


if __name__ == "__main__":
    main()
