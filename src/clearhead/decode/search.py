"""Search: which tokens to write. It sees `start`, `step` and `select` and nothing else: no encoder, no tokenizer.

Shapes: B rows (sentences), W hypotheses of a sentence, T tokens written, V vocabulary.
Rows that have ended leave the batch as soon as enough of them have; what is returned keeps its order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from clearhead.config import require
from clearhead.decode.sampling import Chance, Choice
from clearhead.model import DecoderOnly, EncoderDecoder, State
from clearhead.model.block import widen
from clearhead.model.cache import FixedState

Writer = EncoderDecoder | DecoderOnly
Begun = tuple[Tensor, State]  # what `start` gave: the logits (B, V) of the first token to write, and the state
BLOCK = 64  # numbers of which the largest is looked for at once
Choose = Callable[[Tensor, Tensor, int], Tensor]  # logits (B, V), their rows (B,), tokens written -> ids (B,)


@dataclass(frozen=True)
class Ending:
    """When a row stops."""

    end: tuple[int, ...]  # ids that end a row
    pad: int  # what is written behind the end
    longest: Tensor | int  # new tokens at most, the end included: for each row (B,), or for all

    def __post_init__(self) -> None:
        shortest = int(torch.as_tensor(self.longest).min())
        require(shortest >= 1, f"longest = {shortest}: there must be room for at least 1 new token")

    def room(self, rows: int, device: torch.device) -> Tensor:
        """(B,): new tokens at most."""
        return torch.as_tensor(self.longest, device=device).expand(rows)

    def reached(self, ids: Tensor) -> Tensor:
        """True where an id ends its row."""
        return torch.isin(ids, torch.tensor(self.end, device=ids.device, dtype=ids.dtype))


@dataclass(frozen=True)
class Hypothesis:
    """A text that a model may write."""

    ids: list[int]  # without the end token
    score: float  # what it is ranked by: log_probability / length penalty
    log_probability: float  # the sum over its tokens, the end token included
    ended: bool  # whether it wrote the end token; else it was cut at `longest`


def greedy(model: Writer, begun: Begun, ending: Ending) -> list[Hypothesis]:
    """The likeliest token at each step, for each row."""
    return collect(write(model, begun, ending, likeliest), ending, len(begun[0]))


def sample(
    model: Writer,
    begun: Begun,
    ending: Ending,
    choice: Choice,
    seed: int | Sequence[int] | None = None,
    prompts: Sequence[Sequence[int]] = (),
) -> list[Hypothesis]:
    """A token drawn at each step, for each row; log-probabilities are the model's own, whatever the choice.

    The same seed gives the same text; with a seed for each row, each gives what it would give alone. None is another
    one each time. The repetition penalty counts what a row has written, and its prompt where prompts are given.
    """
    chance = Chance(choice, seed, begun[0].shape, prompts)
    return collect(write(model, begun, ending, chance), ending, len(begun[0]))


def stream(
    model: Writer,
    begun: Begun,
    ending: Ending,
    choice: Choice | None = None,
    seed: int | Sequence[int] | None = None,
    prompts: Sequence[Sequence[int]] = (),
) -> Iterator[Tensor]:
    """What `sample` writes, or `greedy` without a choice, as it is written: ids (B,), `pad` behind the end of a row."""
    choose = likeliest if choice is None else Chance(choice, seed, begun[0].shape, prompts)
    return (ids for ids, _ in write(model, begun, ending, choose))


def likeliest(logits: Tensor, _rows: Tensor, _step: int) -> Tensor:
    """The next ids of a greedy search."""
    return logits.argmax(-1)


@torch.inference_mode()
def write(model: Writer, begun: Begun, ending: Ending, choose: Choose) -> Iterator[tuple[Tensor, Tensor]]:
    """One token after the other, until every row has ended: ids (B,) and their log-probabilities (B,)."""
    logits, state = widen(begun[0]), begun[1]
    count, longest, step = len(logits), ending.room(len(logits), logits.device), 0
    rows = torch.arange(count, device=logits.device)  # row i of the state is rows[i] of the batch
    live = torch.ones_like(rows, dtype=torch.bool)
    while True:
        ids = choose(logits, rows, step).masked_fill(~live, ending.pad)
        scores = logits.log_softmax(-1).gather(-1, ids[:, None])[:, 0] * live
        yield (
            ids.new_full((count,), ending.pad).index_copy(0, rows, ids),
            scores.new_zeros(count).index_copy(0, rows, scores),
        )
        step += 1
        live = live & ~ending.reached(ids) & (step < longest[rows])
        if not live.any():
            return
        if worth_shrinking(live, state):
            kept = live.nonzero()[:, 0]
            state.select(kept)
            ids, rows, live = ids[kept], rows[kept], live[kept]
        logits = widen(model.step(ids[:, None], state))


def worth_shrinking(live: Tensor, state: State) -> bool:
    """Whether a quarter of the rows has ended: then the copying of the others pays. Fixed shapes stay fixed."""
    return not isinstance(state, FixedState) and 4 * int(live.sum()) <= 3 * len(live)


def collect(written: Iterator[tuple[Tensor, Tensor]], ending: Ending, rows: int) -> list[Hypothesis]:
    """The rows of what was written, each cut at its end."""
    steps = list(written)
    ids, scores = (torch.stack(columns, dim=1) for columns in zip(*steps, strict=True))  # (B, T) each
    ends, longest = ending.reached(ids).tolist(), ending.room(rows, ids.device).tolist()
    hypotheses = []
    for row, total in enumerate(scores.sum(1).tolist()):
        ended = True in ends[row][: longest[row]]
        length = ends[row].index(True) if ended else longest[row]
        hypotheses.append(Hypothesis(ids[row, :length].tolist(), total, total, ended))
    return hypotheses


@torch.inference_mode()
def beam(
    model: Writer, begun: Begun, ending: Ending, width: int = 4, length_penalty: float = 0.6, nbest: int = 1
) -> list[list[Hypothesis]]:
    """The paper's beam search: the `nbest` best hypotheses of each row, best first, by log-probability / penalty.

    At each step the `width` likeliest continuations of a sentence's hypotheses are looked at: those that end are
    complete, and the `width` likeliest that do not end go on. A sentence is done when `width` hypotheses are complete
    and each is likelier than all that could still go on: so a short text that is unlikely ends no search.

    It stops earlier where that changes nothing: log-probabilities only fall and the penalty only grows, so nothing
    that grows out of a hypothesis can score more than its log-probability now / the penalty of the longest text. When
    that is no more than the score of the last of the `nbest`, for the best hypothesis and so for all, they stay.
    """
    require(width >= 1, f"beam = {width}: must be at least 1")
    require(1 <= nbest <= width, f"nbest = {nbest}: must be at least 1 and at most the beam's width, {width}")
    require(length_penalty >= 0, f"length_penalty = {length_penalty}: must not be negative; 0 ranks by probability")
    logits, state = begun
    beams = Beams.begin(widen(logits), ending, width, length_penalty)
    state.select(beams.sentences.repeat_interleave(width), same_source=True)
    logits, found = logits.repeat_interleave(width, 0), dict[int, list[Hypothesis]]()
    while True:
        rows = beams.grow(widen(logits))  # (B, W): which row each hypothesis goes on from
        del logits  # so that the next ones can have their memory
        done = beams.done(nbest)
        shrink = bool(done.all()) or worth_shrinking(~done, state)
        if shrink:
            found |= beams.results(done, nbest)
            beams, rows = beams.of(~done), rows[~done]
        if not len(rows):
            return [found[row] for row in range(len(found))]
        state.select(rows.flatten(), same_source=not shrink)
        logits = model.step(beams.written[:, :, -1:].flatten(0, 1), state)


@dataclass
class Beams:
    """W hypotheses of each sentence that go on, and its W best that are complete; a log-probability of -inf is none."""

    ending: Ending
    power: float  # of the length penalty
    sentences: Tensor  # (B,) which ones these are
    longest: Tensor  # (B,) tokens that each may have
    totals: Tensor  # (B, W) log-probabilities of what goes on, the likeliest first
    written: Tensor  # (B, W, T) its ids
    scores: Tensor  # (B, W) of what is complete, the best first
    complete: Tensor  # (B, W, T) its ids, the end included
    lengths: Tensor  # (B, W) how many
    room: Tensor | None = None  # (B * W, V) for the log-probabilities of a step: new memory at each would cost time

    @classmethod
    def begin(cls, logits: Tensor, ending: Ending, width: int, power: float) -> Beams:
        """One empty hypothesis for each sentence: its continuations will fill the beam."""
        sentences = torch.arange(len(logits), device=logits.device)
        none = logits.new_full((len(logits), width), -math.inf)
        ids, totals = sentences.new_zeros(len(logits), width, 0), none.clone()
        totals[:, 0] = 0
        longest, lengths = ending.room(len(logits), logits.device), torch.zeros_like(none, dtype=torch.long)
        return cls(ending, power, sentences, longest, totals, ids, none, ids, lengths)

    def of(self, sentences: Tensor) -> Beams:
        """Those of some sentences."""
        other = ("ending", "power", "room")
        tensors = {f.name: getattr(self, f.name)[sentences] for f in fields(self) if f.name not in other}
        return replace(self, **tensors, room=None)

    def grow(self, logits: Tensor) -> Tensor:
        """Let all hypotheses go on: logits (B * W, V) -> (B, W), the row that each of the new ones goes on from."""
        width = self.totals.size(1)
        self.room = torch.empty_like(logits) if self.room is None else self.room
        log_probabilities = torch.log_softmax(logits, -1, out=self.room)
        values, tokens = largest(log_probabilities, min(width + len(self.ending.end), logits.size(-1)))
        totals = (self.totals.view(-1, 1) + values).view(len(self.totals), -1)  # (B * W, C) -> (B, W * C)
        tokens = tokens.view_as(totals)
        ends, last = self.ending.reached(tokens), self.longest == self.written.size(2) + 1
        best, chosen = totals.topk(width)
        self.finish(best.masked_fill(~(ends.gather(1, chosen) | last[:, None]), -math.inf), self.extend(tokens, chosen))
        self.totals, chosen = totals.masked_fill(ends | last[:, None], -math.inf).topk(width)
        self.written = self.extend(tokens, chosen)
        first = torch.arange(0, logits.size(0), width, device=logits.device)[:, None]
        return first + chosen // (tokens.size(1) // width)

    def extend(self, tokens: Tensor, chosen: Tensor) -> Tensor:
        """The ids of the chosen (B, W) of all continuations (B, W * C): (B, W, T + 1)."""
        parents = chosen // (tokens.size(1) // chosen.size(1))
        return torch.cat([take(self.written, parents), tokens.gather(1, chosen)[..., None]], dim=2)

    def finish(self, totals: Tensor, ids: Tensor) -> None:
        """Take these (B, W) among the complete, as far as they are good enough."""
        new = totals / penalty(ids.size(2), self.power)
        lengths = torch.cat([self.lengths, torch.full_like(self.lengths, ids.size(2))], 1)
        complete = torch.cat([F.pad(self.complete, (0, 1)), ids], 1)
        self.scores, best = torch.cat([self.scores, new], 1).topk(totals.size(1))
        self.lengths, self.complete = lengths.gather(1, best), take(complete, best)

    def done(self, nbest: int) -> Tensor:
        """(B,): whether nothing can change any more among the best; see `beam`."""
        reachable = self.totals[:, 0] / penalty(self.longest.to(self.totals), self.power)
        full = self.complete_totals().amin(1) >= self.totals[:, 0]  # an empty place has -inf, and waits
        done = (full & (self.scores[:, -1] > -math.inf)) | (reachable <= self.scores[:, nbest - 1])
        self.totals = self.totals.masked_fill(done[:, None], -math.inf)  # what goes on there leads nowhere
        return done

    def complete_totals(self) -> Tensor:
        """(B, W): the log-probabilities of what is complete."""
        return self.scores * penalty(self.lengths.to(self.scores), self.power)

    def results(self, sentences: Tensor, nbest: int) -> dict[int, list[Hypothesis]]:
        """The best of some sentences."""
        chosen = self.of(sentences)
        columns = (chosen.complete, chosen.lengths, chosen.scores, chosen.complete_totals())
        rows = zip(*(column[:, :nbest].tolist() for column in columns), strict=True)
        return {
            sentence: [self.hypothesis(*values) for values in zip(*row, strict=True) if values[2] > -math.inf]
            for sentence, row in zip(chosen.sentences.tolist(), rows, strict=True)
        }

    def hypothesis(self, ids: list[int], length: int, score: float, total: float) -> Hypothesis:
        """In plain numbers, without padding and without the end."""
        ended = ids[length - 1] in self.ending.end
        return Hypothesis(ids[: length - ended], score, total, ended)


def largest(x: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest numbers of each row (B, V), and where they are: topk, but faster on a CPU.

    They lie in the k blocks with the largest maxima, or in what is left over behind the last block.
    """
    if x.size(1) < BLOCK * k:
        values, places = x.topk(k)
        return values, places
    whole, numbers = x.size(1) // BLOCK * BLOCK, torch.arange(x.size(1), device=x.device)
    blocks = x[:, :whole].view(len(x), -1, BLOCK).amax(-1).topk(k).indices  # (B, k)
    inside = (blocks[..., None] * BLOCK + numbers[:BLOCK]).flatten(1)
    places = torch.cat([inside, numbers[whole:].expand(len(x), -1)], dim=1)
    values, chosen = x.gather(1, places).topk(k)
    return values, places.gather(1, chosen)


def take(ids: Tensor, chosen: Tensor) -> Tensor:
    """The chosen (B, W) of each sentence's sequences (B, N, T): (B, W, T)."""
    return ids.gather(1, chosen[..., None].expand(*chosen.shape, ids.size(2)))


def penalty(length: Tensor | int, power: float) -> Tensor | float:
    """The length penalty, ((5 + length) / 6)^power: a longer text may be less likely, for there is more of it."""
    return ((5 + length) / 6) ** power
