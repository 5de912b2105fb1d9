"""The cost of a generated token as the text grows: nearly constant, because of the key/value cache.

    python bench/cost_per_token.py [--tokens 512] [--rounds 3] [--threads 1]

Generates with a decoder of 100 million parameters and prints the median time of a decode step against the number of
tokens before it; beside it, the time of a full forward pass over the same tokens, which a step would take without the
cache. Attention looks at all earlier tokens, so the time of a step grows a little.
"""

from __future__ import annotations

import statistics
import time

import torch
from measure import options, seconds, setting

from clearhead.decode.search import stream
from clearhead.decode.steps import StopCriteria
from clearhead.model import DecoderOnly, build_model
from clearhead.presets import preset

WINDOW = 64  # steps over which the median is taken


def step_times(model: DecoderOnly, tokens: int) -> list[float]:
    """Seconds for each token of one generated text."""
    times = []
    began = time.perf_counter()
    with torch.inference_mode():
        prefill = model.start(torch.ones(1, 1, dtype=torch.long))
    for _ in stream(model, prefill, StopCriteria((), 0, tokens)):
        now = time.perf_counter()
        times.append(now - began)
        began = now
    return times


@torch.inference_mode()
def uncached_time(model: DecoderOnly, tokens: int) -> float:
    """Seconds for one token if the whole text is read again."""
    ids = torch.ones(1, tokens, dtype=torch.long)
    return seconds(lambda: model.head(model.hidden(ids)[:, -1]))


def main() -> None:
    arguments = options(__doc__, tokens=512, rounds=3, threads=1)
    model = build_model(preset("modern-100m")).eval()
    assert isinstance(model, DecoderOnly)
    texts = [step_times(model, arguments.tokens) for _ in range(arguments.rounds)]
    print(f"modern-100m, one row, {setting()}")
    print("  tokens before    ms a token    ms without cache")
    for begin in range(0, arguments.tokens, WINDOW):
        middle = begin + WINDOW // 2
        cached = statistics.median(taken for text in texts for taken in text[begin + 1 : begin + WINDOW])
        uncached = statistics.median(uncached_time(model, middle) for _ in range(arguments.rounds))
        print(f"  {middle:13} {1000 * cached:13.1f} {1000 * uncached:19.1f}")


if __name__ == "__main__":
    main()
