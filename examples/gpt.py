"""A GPT in one file: trained on a text from random weights, then fine-tuned to do what it is asked.

    python examples/gpt.py                    # short stories, a few minutes on a laptop
    python examples/gpt.py --text my.txt      # your own text, documents separated by empty lines

Read transformer.py first. This is its decoder with what has changed since the paper (pre-norm, learned positions, GELU,
AdamW) and with a cache of keys and values. A test keeps logits and gradients equal to those of src/clearhead/model.

Shapes: B rows, T tokens, S with those in the cache, D channels, H heads, K = D/H channels of a head, V vocabulary.
"""

import argparse
import math
import random
import re
from collections import Counter
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from statistics import fmean

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

END = "\0"  # stands before and after each document
WORD = re.compile(r" ?\w+|\W")  # the pieces of a text; joined again, they are the text
CONTEXT = 192  # tokens that the model can see
IGNORE = -100  # a target that is not learned: PyTorch's cross-entropy leaves it out
REQUEST = END + "Sentences: {}.\n"
Ids = list[int]
Batch = tuple[Tensor, Tensor]  # inputs and targets, (B, T) each


class Vocabulary:
    """The most common words have a token each; every other word is spelled, with a token for each character."""

    def __init__(self, text: str, words: int = 1500) -> None:
        common = [word for word, _ in Counter(WORD.findall(text)).most_common(words)]
        self.tokens = sorted({*text, *common})
        self.ids = {token: i for i, token in enumerate(self.tokens)}

    def encode(self, text: str) -> Ids:
        """Text to ids."""
        return [self.ids[piece] for word in WORD.findall(text) for piece in ([word] if word in self.ids else word)]


class Attention(nn.Module):
    """Causal self-attention. The keys and values of earlier tokens never change, so a cache can keep them."""

    def __init__(self, d_model: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, x: Tensor, cache: list[Tensor]) -> Tensor:
        """(B, T, D) -> (B, T, D). The cache is empty, or it holds the earlier keys and values."""
        queries, keys, values = (
            projected.unflatten(-1, (self.heads, -1)).transpose(1, 2)  # (B, T, D) -> (B, T, H, K) -> (B, H, T, K)
            for projected in (self.query(x), self.key(x), self.value(x))
        )
        if cache:
            keys, values = torch.cat([cache[0], keys], dim=2), torch.cat([cache[1], values], dim=2)  # (B, H, S, K)
        cache[:] = keys, values
        scores = queries @ keys.mT / math.sqrt(queries.size(-1))  # (B, H, T, K) x (B, H, K, S) -> (B, H, T, S)
        causal = torch.ones(scores.shape[-2:], dtype=torch.bool).tril(keys.size(2) - queries.size(2))  # (T, S)
        weights = scores.masked_fill(~causal, -math.inf).softmax(dim=-1)
        return self.out((weights @ values).transpose(1, 2).flatten(2))  # -> (B, H, T, K) -> (B, T, D)


class Block(nn.Module):
    """Attention, then feed-forward; pre-norm: x + layer(norm(x))."""

    def __init__(self, d_model: int, heads: int) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(d_model)
        self.attention = Attention(d_model, heads)
        self.feed_forward_norm = nn.LayerNorm(d_model)
        self.feed_forward = nn.Sequential(nn.Linear(d_model, 4 * d_model), nn.GELU(), nn.Linear(4 * d_model, d_model))

    def forward(self, x: Tensor, cache: list[Tensor]) -> Tensor:
        """(B, T, D) -> (B, T, D)."""
        x = x + self.attention(self.attention_norm(x), cache)
        return x + self.feed_forward(self.feed_forward_norm(x))


class GPT(nn.Module):
    """Predicts each next token from all tokens before it."""

    def __init__(self, vocab: int, d_model: int, heads: int, layers: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocab, d_model)  # also the matrix of the logits
        self.position = nn.Embedding(CONTEXT, d_model)
        self.blocks = nn.ModuleList(Block(d_model, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(d_model)
        for matrix in (p for p in self.parameters() if p.dim() == 2):
            nn.init.normal_(matrix, std=0.02)  # small, so that at first all tokens are equally likely: a loss of ln V

    def forward(self, ids: Tensor, caches: list[list[Tensor]] | None = None) -> Tensor:
        """(B, T) -> the logits (B, T, V) of what follows each token. The ids come after those in the caches."""
        caches = caches or [[] for _ in self.blocks]
        past = caches[0][0].size(2) if caches[0] else 0
        x = self.embedding(ids) + self.position.weight[past : past + ids.size(1)]  # (B, T) -> (B, T, D)
        for block, cache in zip(self.blocks, caches, strict=True):
            x = block(x, cache)
        return self.norm(x) @ self.embedding.weight.T  # (B, T, D) x (D, V)


def pieces_of(ids: Ids, rows: int) -> Batch:
    """Pre-training: pieces from anywhere in the text. The target of each token is the token after it."""
    starts = [random.randrange(max(1, len(ids) - CONTEXT)) for _ in range(rows)]
    pieces = torch.tensor([ids[start : start + CONTEXT + 1] for start in starts])
    return pieces[:, :-1], pieces[:, 1:]


def answers_of(examples: list[tuple[Ids, Ids]], rows: int) -> Batch:
    """Supervised fine-tuning (SFT): the request is read, but only the tokens of the answer are targets."""
    chosen = random.choices(examples, k=rows)
    inputs = [torch.tensor((request + answer)[:-1][:CONTEXT]) for request, answer in chosen]
    targets = [torch.tensor(([IGNORE] * (len(request) - 1) + answer)[:CONTEXT]) for request, answer in chosen]
    return pad_sequence(inputs, batch_first=True), pad_sequence(targets, batch_first=True, padding_value=IGNORE)


def train(model: GPT, next_batch: Callable[[], Batch], steps: int, rate: float) -> None:
    """AdamW; the learning rate rises for 20 steps, then falls in a straight line."""
    optimiser = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.95), weight_decay=0.1)
    losses: list[float] = []
    for step in range(1, steps + 1):
        inputs, targets = next_batch()
        loss = F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.param_groups[0]["lr"] = rate * min(step / 20, 1 - (step - 1) / steps)
        optimiser.step()
        losses.append(loss.item())
        print(f"\rstep {step:,} of {steps:,}   loss {fmean(losses[-50:]):.3f} ", end="\n" * (step == steps), flush=True)


@torch.no_grad()
def generate(model: GPT, vocabulary: Vocabulary, prompt: str, temperature: float = 0.7) -> str:
    """Continue the prompt up to the end of the document; a temperature below 1 prefers likely tokens."""
    caches: list[list[Tensor]] = [[] for _ in model.blocks]
    new, text = torch.tensor([vocabulary.encode(prompt)]), ""  # prefill: the whole prompt at once
    for _ in range(CONTEXT - new.size(1)):
        probabilities = (model(new, caches)[0, -1] / temperature).softmax(dim=-1)  # (V,)
        new = probabilities.multinomial(1)[None]  # decode: one token at a time
        if vocabulary.tokens[int(new)] == END:
            break
        text += vocabulary.tokens[int(new)]
    return text


def sentences(text: str) -> list[str]:
    """The sentences of a text, by their punctuation."""
    return re.findall(r"[^.!?]+[.!?]+[\"”’']*\s*", text)


def answer_requests(model: GPT, vocabulary: Vocabulary) -> None:
    """Show the answers to four requests, and count how many of 40 have as many sentences as were asked for."""
    answers = [(n, generate(model, vocabulary, REQUEST.format(n))) for n in [1, 2, 3, 4] * 10]
    for number, answer in answers[:4]:
        print(f"\n{REQUEST.format(number).strip(END)}{answer}")
    right = sum(len(sentences(answer)) == number for number, answer in answers)
    print(f"\n{right} of {len(answers)} answers have as many sentences as were asked for")


def main() -> None:
    """Train on documents, fine-tune on requests, and show what the model does with requests before and after."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=Path, help="a text file, documents separated by empty lines")
    parser.add_argument("--steps", type=int, default=600)
    options = parser.parse_args()
    random.seed(0)
    torch.manual_seed(0)
    if options.text:
        text = options.text.read_text(encoding="utf-8").replace("\n\n", END)
    else:
        from clearhead.corpora.stories import CORPUS

        text = END.join(story.text for story in islice(CORPUS.read("train"), 10_000))
    vocabulary = Vocabulary(text + REQUEST + "1234")
    ids = vocabulary.encode(text)
    model = GPT(len(vocabulary.tokens), d_model=128, heads=4, layers=3)
    train(model, lambda: pieces_of(ids, 10), options.steps, rate=4e-3)
    answer_requests(model, vocabulary)
    examples: list[tuple[Ids, Ids]] = []
    for document in filter(sentences, text.split(END)):
        found = sentences(document)[: random.randint(1, 4)]
        request, answer = REQUEST.format(len(found)), "".join(found).strip() + END
        examples.append((vocabulary.encode(request), vocabulary.encode(answer)))
    train(model, lambda: answers_of(examples, 32), options.steps // 2, rate=1e-3)
    answer_requests(model, vocabulary)


if __name__ == "__main__":
    main()
