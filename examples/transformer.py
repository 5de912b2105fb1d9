"""The Transformer of "Attention Is All You Need" in one file: read it from top to bottom, then run it.

    python examples/transformer.py                          # English to French, a few minutes on a laptop
    python examples/transformer.py --files my.en my.de      # your own sentences, one a line: line n translates line n

src/clearhead/model has the same classes with more options; a test keeps logits, gradients and losses equal.

Shapes: B sentences, S source tokens, T target tokens, D channels, H heads, K = D/H channels of a head, V vocabulary.
Masks are boolean and broadcast to (B, H, T, S): True where a query may attend to a key.
"""

import argparse
import math
import random
import re
from collections import Counter
from itertools import islice
from pathlib import Path
from statistics import fmean

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

# -------------------- 1. tokens --------------------
# A model computes with numbers, so a text becomes a list of token ids. Both languages share one vocabulary.

PAD, START, END, UNKNOWN = range(4)
WORD = re.compile(r" ?\w+|\W")  # the pieces of a text; joined again, they are the text
Ids = list[int]
Pair = tuple[Ids, Ids]  # a source and its target
Memory = tuple[Tensor, Tensor]  # the encoder's output (B, S, D), and the mask (B, 1, 1, S) that hides its padding


class Vocabulary:
    """The most common words have a token each; every other word is spelled, with a token for each character."""

    def __init__(self, text: str, words: int = 2000) -> None:
        common = [word for word, _ in Counter(WORD.findall(text)).most_common(words)]
        self.tokens = ["<pad>", "<start>", "<end>", "<unknown>", *sorted({*text, *common})]
        self.ids = {token: i for i, token in enumerate(self.tokens)}

    def encode(self, text: str) -> Ids:
        """Text to ids."""
        pieces = [piece for word in WORD.findall(text) for piece in ([word] if word in self.ids else word)]
        return [self.ids.get(piece, UNKNOWN) for piece in pieces]

    def decode(self, ids: Ids) -> str:
        """Ids to text."""
        return "".join(self.tokens[i] for i in ids if i not in (PAD, START, END))


# -------------------- 2. positions --------------------
# Attention does not know in which order the tokens stand. So each position gets a vector of its own, which is added to
# the token's embedding: sines and cosines whose wavelengths grow from 2π to 10,000 · 2π.


def sinusoids(length: int, size: int) -> Tensor:
    """The vectors of positions 0 to T-1: (T, D), sines in the even channels, cosines in the odd ones."""
    wavelengths = 10_000 ** (torch.arange(0, size, 2) / size)  # (D/2,)
    angles = torch.arange(length)[:, None] / wavelengths  # (T, 1) / (D/2,) -> (T, D/2)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)  # (T, D/2, 2) -> (T, D)


# -------------------- 3. attention --------------------
# Each token asks a question (its query). Each token that it may look at has a key, which says what it offers, and a
# value, which is what it gives. The better a key matches the query, the larger the weight of its value.


class Attention(nn.Module):
    """Multi-head attention: softmax(Q Kᵀ / √K) V in each head, then one matrix over the results of all heads."""

    def __init__(self, d_model: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(d_model, d_model)
        self.key = nn.Linear(d_model, d_model)
        self.value = nn.Linear(d_model, d_model)
        self.out = nn.Linear(d_model, d_model)

    def forward(self, x: Tensor, context: Tensor, mask: Tensor) -> Tensor:
        """Let the tokens of x ask, those of the context answer: (B, T, D), (B, S, D) -> (B, T, D)."""
        queries, keys, values = (  # each head has K channels of its own, which it computes from all channels of x
            projected.unflatten(-1, (self.heads, -1)).transpose(1, 2)  # (B, T, D) -> (B, T, H, K) -> (B, H, T, K)
            for projected in (self.query(x), self.key(context), self.value(context))
        )
        scores = queries @ keys.mT / math.sqrt(queries.size(-1))  # (B, H, T, K) x (B, H, K, S) -> (B, H, T, S)
        weights = scores.masked_fill(~mask, -math.inf).softmax(dim=-1)  # each row sums to 1
        self.weights = weights.detach()  # for the picture at the end
        outputs = weights @ values  # (B, H, T, S) x (B, H, S, K) -> (B, H, T, K)
        return self.out(outputs.transpose(1, 2).flatten(2))  # -> (B, T, H, K) -> (B, T, D)


# -------------------- 4. blocks and the model --------------------
# Attention moves information between tokens; the feed-forward layer then computes with what each token has gathered.
# Around both: the residual connection (what the layer computes is added to its input), then a norm.


class AddNorm(nn.Module):
    """norm(x + change): the paper's order, called post-norm. Most later models compute x + layer(norm(x)), pre-norm."""

    def __init__(self, d_model: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, change: Tensor) -> Tensor:
        """(B, T, D), (B, T, D) -> (B, T, D)."""
        return self.norm(x + self.dropout(change))


class Block(nn.Module):
    """Self-attention, cross-attention in the decoder only, feed-forward."""

    def __init__(self, d_model: int, d_ff: int, heads: int, dropout: float, cross: bool) -> None:
        super().__init__()
        self.attention = Attention(d_model, heads)
        self.attention_add_norm = AddNorm(d_model, dropout)
        if cross:
            self.cross_attention = Attention(d_model, heads)
            self.cross_attention_add_norm = AddNorm(d_model, dropout)
        self.feed_forward = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))
        self.feed_forward_add_norm = AddNorm(d_model, dropout)

    def forward(self, x: Tensor, mask: Tensor, memory: Memory | None = None) -> Tensor:
        """(B, T, D) -> (B, T, D). In the decoder, the memory is what the encoder has computed."""
        x = self.attention_add_norm(x, self.attention(x, x, mask))
        if memory is not None:
            x = self.cross_attention_add_norm(x, self.cross_attention(x, *memory))
        return self.feed_forward_add_norm(x, self.feed_forward(x))


class Transformer(nn.Module):
    """The encoder reads the source; the decoder writes the target and attends to what the encoder has computed."""

    def __init__(self, vocab: int, d_model: int, d_ff: int, heads: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocab, d_model)  # one table for source, target and logits
        self.dropout = nn.Dropout(dropout)
        self.encoder = nn.ModuleList(Block(d_model, d_ff, heads, dropout, cross=False) for _ in range(layers))
        self.decoder = nn.ModuleList(Block(d_model, d_ff, heads, dropout, cross=True) for _ in range(layers))
        for matrix in (p for p in self.parameters() if p.dim() == 2):
            nn.init.xavier_uniform_(matrix)
        nn.init.normal_(self.embedding.weight, std=d_model**-0.5)

    def embed(self, ids: Tensor) -> Tensor:
        """(B, T) -> (B, T, D). Scaled by √D, embeddings are as large as the positions that are added to them."""
        size = self.embedding.embedding_dim
        return self.dropout(self.embedding(ids) * math.sqrt(size) + sinusoids(ids.size(1), size))

    def encode(self, source: Tensor) -> Memory:
        """(B, S) -> (B, S, D), (B, 1, 1, S)."""
        mask = (source != PAD)[:, None, None, :]
        x = self.embed(source)
        for block in self.encoder:
            x = block(x, mask)
        return x, mask

    def decode(self, target: Tensor, memory: Memory) -> Tensor:
        """The logits of the token that follows each target token: (B, T) -> (B, T, V)."""
        causal = torch.ones(target.size(1), target.size(1), dtype=torch.bool).tril()  # no token sees a later one
        x = self.embed(target)
        for block in self.decoder:
            x = block(x, causal, memory)
        return x @ self.embedding.weight.T  # (B, T, D) x (D, V)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """(B, S), (B, T) -> (B, T, V). The target begins with <start>."""
        return self.decode(target, self.encode(source))


# -------------------- 5. training --------------------
# The decoder reads the right answer and predicts, at every position at once, the token that follows (teacher forcing).
# The causal mask is what makes this fair: no position sees the token that it has to predict.


def batches(pairs: list[Pair], tokens: int) -> list[list[Pair]]:
    """Shuffled batches of about `tokens` tokens; pairs of similar length share one, so that there is little padding."""
    found: list[list[Pair]] = [[]]
    for pair in sorted(pairs, key=lambda pair: len(pair[0]) + len(pair[1]) + random.random()):
        if (len(found[-1]) + 1) * (len(pair[0]) + len(pair[1])) > tokens:
            found.append([])
        found[-1].append(pair)
    random.shuffle(found)
    return found


def tensors(pairs: list[Pair]) -> tuple[Tensor, Tensor]:
    """Sources (B, S) and targets (B, T), which begin with <start> and end with <end>; padded on the right."""
    sources = [torch.tensor([*source, END]) for source, _ in pairs]
    targets = [torch.tensor([START, *target, END]) for _, target in pairs]
    return pad_sequence(sources, batch_first=True), pad_sequence(targets, batch_first=True)  # with PAD, which is 0


def train(model: Transformer, pairs: list[Pair], steps: int, tokens: int = 1024, warmup: int = 500) -> list[float]:
    """Train as the paper does: Adam, the Noam schedule, label smoothing. Returns the loss of each step."""
    optimiser = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
    losses: list[float] = []
    queue: list[list[Pair]] = []
    model.train()
    for step in range(1, steps + 1):
        queue = queue or batches(pairs, tokens)  # a new epoch when all pairs have been seen
        source, target = tensors(queue.pop())
        logits = model(source, target[:, :-1])  # reads all tokens but the last ...
        answer = target[:, 1:]  # ... and predicts all but the first
        # label smoothing: a tenth of the probability is spread over all tokens, so that the model is never too sure
        loss = F.cross_entropy(logits.flatten(0, 1), answer.flatten(), ignore_index=PAD, label_smoothing=0.1)
        # Noam schedule: the learning rate rises in a straight line during the warm-up, then falls as 1/√step
        optimiser.param_groups[0]["lr"] = model.embedding.embedding_dim**-0.5 * min(step**-0.5, step * warmup**-1.5)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
        if step % 20 == 0 or step == steps:
            print(f"\rstep {step:,} of {steps:,}   loss {fmean(losses[-100:]):.3f} ", end="", flush=True)
    print()
    return losses


# -------------------- 6. decoding --------------------
# After training there is no right answer to read: the decoder reads what it has written itself.


@torch.no_grad()
def greedy(model: Transformer, source: Ids, limit: int = 50) -> Ids:
    """Always the most likely next token."""
    memory = model.eval().encode(torch.tensor([[*source, END]]))
    ids = [START]
    while ids[-1] != END and len(ids) <= limit:
        ids.append(int(model.decode(torch.tensor([ids]), memory)[0, -1].argmax()))
    return ids[1:]


@torch.no_grad()
def beam_search(model: Transformer, source: Ids, width: int = 4, alpha: float = 0.6, limit: int = 50) -> Ids:
    """Continue the `width` most likely texts at once; the best by log-probability / length penalty wins."""
    memory = model.eval().encode(torch.tensor([[*source, END]]))
    texts: list[tuple[float, Ids]] = [(0.0, [START])]  # log-probability, ids
    complete: list[tuple[float, Ids]] = []  # score, ids
    for length in range(1, limit + 1):
        logits = model.decode(torch.tensor([ids for _, ids in texts]), memory)[:, -1]
        best, tokens = logits.log_softmax(-1).topk(min(width + 1, logits.size(-1)))  # (texts, width + 1)
        longer = [
            (total + more, [*ids, token])
            for (total, ids), values, choices in zip(texts, best.tolist(), tokens.tolist(), strict=True)
            for more, token in zip(values, choices, strict=True)
        ]
        longer.sort(reverse=True)
        penalty = ((5 + length) / 6) ** alpha  # without it, short texts would win: each token costs probability
        complete += [(total / penalty, ids[1:]) for total, ids in longer[:width] if ids[-1] == END or length == limit]
        texts = [(total, ids) for total, ids in longer if ids[-1] != END][:width]
        if len(complete) >= width:
            break
    return max(complete)[1]


def print_attention(model: Transformer, vocabulary: Vocabulary, source: Ids, target: Ids) -> None:
    """Which source tokens the decoder attended to when it wrote each target token: percent, the mean over all heads."""
    model(*tensors([(source, target)]))
    weights = model.decoder[-1].cross_attention.weights[0].mean(0)  # (H, T, S) -> (T, S)
    print(" " * 12 + "".join(f"{vocabulary.tokens[i].strip():>9}" for i in [*source, END]))
    for token, row in zip([*target, END], weights.tolist(), strict=False):
        print(f"{vocabulary.tokens[token].strip():<12}" + "".join(f"{100 * weight:>9.0f}" for weight in row))


def main() -> None:
    """Train, then translate sentences that were not trained on."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", nargs=2, type=Path, metavar=("SOURCE", "TARGET"), help="one sentence a line")
    parser.add_argument("--steps", type=int, default=2000)
    options = parser.parse_args()
    random.seed(0)
    torch.manual_seed(0)
    if options.files:
        texts = list(zip(*(file.read_text(encoding="utf-8").splitlines() for file in options.files), strict=True))
    else:
        from clearhead.corpora.phrasebook import CORPUS

        texts = [(pair.source, pair.target) for pair in islice(CORPUS.read("train"), 40_000)]
    vocabulary = Vocabulary("\n".join(text for pair in texts for text in pair))
    pairs = [(vocabulary.encode(source), vocabulary.encode(target)) for source, target in texts]
    model = Transformer(len(vocabulary.tokens), d_model=128, d_ff=512, heads=4, layers=2, dropout=0.0)  # the paper: 0.1
    print(f"{len(pairs):,} pairs, a vocabulary of {len(vocabulary.tokens):,} tokens")
    held_out = min(100, len(pairs) // 10)
    unseen, pairs = pairs[:held_out], pairs[held_out:]
    train(model, pairs, options.steps)
    right = sum(greedy(model, source) == [*target, END] for source, target in unseen)
    print(f"{right} of {len(unseen)} sentences that it has not seen are translated exactly as in the data\n")
    for source, _ in unseen[:8]:
        print(f"{vocabulary.decode(source)}\n    {vocabulary.decode(beam_search(model, source))}\n")
    source = unseen[0][0] if options.files else vocabulary.encode("the red car is fast")
    print_attention(model, vocabulary, source, greedy(model, source)[:-1])


if __name__ == "__main__":
    main()
