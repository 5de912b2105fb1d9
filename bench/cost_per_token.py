"""What a token costs when many are written already: flat, because keys and values are kept.

    python bench/cost_per_token.py [--tokens 512] [--rounds 3]

Writes with a decoder of 100 million parameters, step by step, and prints the median time of a step against the tokens
before it; beside it, what reading all of them again would cost. Attention itself looks at all earlier tokens, so a
little growth is due; without the cache a token would cost more with each one, and a text would cost the square.
"""

from __future__ import annotations

import argparse
import statistics
import time

import torch

from clearhead.decode.search import Ending, stream
from clearhead.model import DecoderOnly, build_model
from clearhead.presets import preset

WINDOW = 64  # tokens of which the median is taken


def step_times(model: DecoderOnly, tokens: int) -> list[float]:
    """Seconds for each token of one text."""
    times, began = [], time.perf_counter()
    with torch.inference_mode():
        begun = model.start(torch.ones(1, 1, dtype=torch.long))
    for _ in stream(model, begun, Ending((), 0, tokens)):
        now = time.perf_counter()
        times.append(now - began)
        began = now
    return times


@torch.inference_mode()
def time_again(model: DecoderOnly, tokens: int) -> float:
    """Seconds for one token if all before it are read again."""
    ids, began = torch.ones(1, tokens, dtype=torch.long), time.perf_counter()
    model.head(model.hidden(ids)[:, -1])
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    model = build_model(preset("modern-100m")).eval()
    assert isinstance(model, DecoderOnly)
    texts = [step_times(model, arguments.tokens) for _ in range(arguments.rounds)]
    print(f"modern-100m, one row, {torch.get_num_threads()} threads, torch {torch.__version__}")
    print("  tokens before    ms a token    ms without cache")
    for begin in range(0, arguments.tokens, WINDOW):
        cached = statistics.median(seconds for text in texts for seconds in text[begin + 1 : begin + WINDOW])
        again = statistics.median(time_again(model, begin + WINDOW // 2) for _ in range(arguments.rounds))
        print(f"  {begin + WINDOW // 2:13} {1000 * cached:13.1f} {1000 * again:19.1f}")


if __name__ == "__main__":
    main()
