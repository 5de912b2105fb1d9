"""A forward pass in the terminal, step by step: the sections of `clearhead walk`, and pictures of tensors in them."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from rich.console import Console, RenderableType
from rich.rule import Rule
from rich.text import Text
from torch import Tensor

from clearhead.config import ModelConfig
from clearhead.inspect.decoding import beam_tree
from clearhead.inspect.kinds import kind_at
from clearhead.inspect.lens import likeliest
from clearhead.inspect.names import parents
from clearhead.inspect.passes import TracedPass
from clearhead.inspect.paths import SUBLAYERS, Node, kind_of, last_block_output, sublayers_of
from clearhead.inspect.story import story
from clearhead.inspect.trace import Trace
from clearhead.runs import Run
from clearhead.terminal import drawing
from clearhead.terminal.colour import visible
from clearhead.terminal.drawing import LABEL, bar, indented, label, shape, spaced, sparkline

WIDEST = 100  # characters: longer lines are hard to read
NARROWEST = 40  # a terminal that is narrower wraps the lines
BEAM_WIDTH = 3
MOST_TOKENS = 60  # of a grid or a list; the rest is not drawn
DEEPEST = 14  # tokens of the search tree
STACKS = {"encoder": "source", "decoder": "target"}  # stack -> the side that it reads
Section = tuple[str, Iterable[RenderableType]]


def show(walk: Walk, console: Console, step: bool) -> None:
    """Print the sections; with `step`, and in an interactive terminal, pause after each."""
    for number, (title, parts) in enumerate(walk.sections(), 1):
        if number > 1 and step and sys.stdin.isatty():
            console.input(Text("Enter continues, Ctrl-C ends", style="dim"))
        console.print()
        console.print(Rule(Text(f"{number} · {title}", style="bold"), align="left", style="dim"))
        for part in parts:
            console.print(part)


def label_of(name: str) -> str:
    """What a line of shapes calls a tensor."""
    kind = kind_of(name)
    return "add & norm" if kind.endswith("_add_norm") else kind.replace("_", " ")


@dataclass
class Walk:
    """The sections of a trace."""

    trace: Trace
    width: int
    layer: int | None = None  # the only block to show of each stack; None: all
    printed: set[str] = field(default_factory=set)  # formulas and paragraphs so far

    @property
    def run(self) -> Run:
        """The run that was traced."""
        return self.trace.run

    @property
    def config(self) -> ModelConfig:
        """The settings of the model."""
        return self.run.recipe.model

    def sections(self) -> Iterator[Section]:
        """From the text to the model's output."""
        yield "the text becomes tokens", self.tokens()
        for stack in (name for name, side in STACKS.items() if side in self.trace.tokens):
            yield f"{stack}: tokens become vectors", self.steps(self.vectors(stack))
            for number in range(self.blocks_of(stack)):
                if self.layer in (None, number):
                    yield from self.block(stack, number)
            if f"{stack}.norm" in self.trace:
                yield f"{stack}: the final norm", self.final_norm(stack)
        yield "the answer", self.answer()
        if self.config.family != "encoder-only":
            yield "the search", self.search()

    def block(self, stack: str, number: int) -> Iterator[Section]:
        """The sublayers of a block, each with its add & norm."""
        for sublayer in sublayers_of(stack, self.config):
            path = f"{stack}.blocks.{number}.{sublayer}"
            inside = [name for name in self.trace if f"{name}.".startswith((f"{path}.", f"{path}_add_norm."))]
            yield f"{stack}, block {number}: {SUBLAYERS[sublayer]}", self.steps(inside)

    def blocks_of(self, stack: str) -> int:
        """The number of blocks of a stack."""
        return sum(name.startswith(f"{stack}.blocks.") and kind_of(name) == "feed_forward" for name in self.trace)

    def vectors(self, stack: str) -> list[str]:
        """What is computed before the first block; a sum of one term is left out."""
        norm = f"{stack}.norm"
        outside = [n for n in self.trace if n.startswith(f"{stack}.") and not n.startswith((f"{stack}.blocks.", norm))]
        return [n for n in outside if kind_of(n) != "sum" or len(parents(n, self.config)) > 1]

    def steps(self, names: Sequence[str]) -> Iterator[RenderableType]:
        """Tensors in the order of computing: shapes, formulas, paragraphs and pictures.

        Tensors that follow each other and are computed from the same tensors share a step, such as keys and values.
        """
        for _, group in groupby(names, lambda name: parents(name, self.config) or name):
            together = list(group)
            yield self.arrow(together)
            yield from self.describe(*together)
            for name in together:
                yield from picture_of(self.trace, name, self.width)

    def arrow(self, names: Sequence[str]) -> RenderableType:
        """The shapes that some tensors are computed from, and their own: x [1, 7, 128] → keys, values [1, 4, 7, 32]."""
        read = [f"{self.title(each, names[0])} {shape(self.trace[each])}" for each in parents(names[0], self.config)]
        read = read or self.ids_of(names[0])
        written: dict[str, list[str]] = {}  # shape -> kinds
        for name in names:
            written.setdefault(shape(self.trace[name]), []).append(label_of(name))
        after = ", ".join(f"{', '.join(kinds)} {size}" for size, kinds in written.items())
        return drawing.shapes(*([", ".join(read)] if read else []), after)

    def title(self, parent: str, name: str) -> str:
        """What the formula of a tensor calls one of its parents: x is the residual stream, or a norm of it."""
        if parent.startswith("encoder.") and not name.startswith("encoder."):
            return "source" if name.startswith("decoder.") else "x"
        kind = kind_at(Node(parent, self.config))
        return "x" if kind.in_stream or kind.name == "norm" else label_of(parent)

    def ids_of(self, name: str) -> list[str]:
        """The ids or positions that an embedding is looked up by."""
        if kind_of(name) not in ("embedding", "position", "segment"):
            return []
        count = len(self.trace.ids[STACKS[name.split(".")[0]]])
        return [f"positions [{count}]" if kind_of(name) == "position" else f"ids [1, {count}]"]

    def describe(self, *names: str) -> Iterator[RenderableType]:
        """The formulas and paragraphs of tensors, each of them only once in a walk."""
        stories = [story(self.trace, name) for name in names]
        formulas = [each.formula for each in stories if each.formula not in self.printed]
        if formulas:
            yield Text("  " + "   ".join(formulas), style="cyan")
        for each in stories:
            if each.paragraph not in self.printed:
                yield indented(Text(each.paragraph, style="italic"))
            self.printed |= {each.formula, each.paragraph}

    def tokens(self) -> Iterator[RenderableType]:
        """Positions, tokens and ids of each side."""
        size = sum(parameter.numel() for parameter in self.run.model.parameters())
        config = self.config
        yield Text(f"  {config.family}, {size:,} parameters, d_model {config.d_model}, {config.heads} heads")
        for side, tokens in self.trace.tokens.items():
            given = {"source": self.trace.text, "target": self.trace.target_text}[side] or self.trace.text
            yield Text.assemble(f"\n  {side}: ", (visible(given), "bold"))
            shown = zip(range(len(tokens)), tokens, self.trace.ids[side], strict=True)
            columns = [[str(place), spaced(token), str(number)] for place, token, number in shown]
            for some in drawing.wrapped(columns, self.width - 11):
                for name, cells in zip(("position", "token", "id"), zip(*some, strict=True), strict=True):
                    yield Text.assemble((f"  {name:<8}", "dim"), ("".join(cells), "bold" if name == "token" else ""))
            if len(tokens) > MOST_TOKENS:
                yield Text(f"  (the pictures below show the first {MOST_TOKENS} of {len(tokens)})", style="dim")

    def final_norm(self, stack: str) -> Iterator[RenderableType]:
        """The norm at the end of a pre-norm stack."""
        normalized = f"{stack}.norm.normalized"
        yield from self.steps([normalized, f"{stack}.norm"])
        columns = {"x": last_block_output(stack, self.config), "normalized": normalized, "norm": f"{stack}.norm"}
        yield spreads(self.trace, columns)

    def answer(self) -> Iterator[RenderableType]:
        """The five likeliest tokens at each position, the classes, or the vector of the text."""
        yield from self.steps([name for name in self.trace if name == "pooled" or name.startswith("head.")])
        if self.config.head == "embedding":
            vector = self.trace["pooled"][0]
            yield indented(sparkline(vector[: self.width - 4], vector.min().item(), vector.max().item()), above=1)
            return
        yield Text("")
        logits = self.trace.named("head.logits")
        if self.config.head == "classes":
            yield from bars(logits.value[0], logits.labels[1])
        else:
            yield from self.next_tokens(logits.value[0], logits.labels[2])

    def next_tokens(self, logits: Tensor, words: tuple[str, ...]) -> Iterator[RenderableType]:
        """The five likeliest tokens at each position; at the last one, or at masked ones, with bars."""
        side = "source" if self.config.family == "encoder-only" else "target"
        where = "at" if side == "source" else "after"
        tokens = self.trace.tokens[side]
        yield Text(f"  The five likeliest tokens {where} each position:\n", style="dim")
        for token, row in list(zip(tokens, logits, strict=True))[:MOST_TOKENS]:
            best = "".join(f" {chance:>4.0%} {label(word, 7, spaces=True)}" for word, chance in likeliest(row, words))
            yield Text.assemble("  ", (label(token, LABEL), "bold"), best)
        tokenizer = self.run.tokenizers.target
        ids = self.trace.ids[side]
        masked = [n for n, number in enumerate(ids) if tokenizer.has("mask") and number == tokenizer.mask]
        for place in masked if side == "source" else [len(ids) - 1]:
            yield Text(f"\n  {where} position {place}, {spaced(tokens[place])}:", style="dim")
            yield from bars(logits[place], words, spaces=True)

    def search(self) -> Iterator[RenderableType]:
        """A beam search step by step, the tree of its hypotheses, and the texts at the ends of the tree."""
        found = beam_tree(TracedPass(lambda: self.run, self.trace.inputs, self.trace.changes), self.run, BEAM_WIDTH)
        nodes = [node for node in found["nodes"] if node["depth"] <= DEEPEST]
        yield Text(
            f"  Beam search keeps the {BEAM_WIDTH} likeliest hypotheses. Numbers: log-probabilities.\n", style="dim"
        )
        for depth in range(1, max(node["depth"] for node in nodes) + 1):
            line = Text(f"  step {depth:>2} ", style="dim")
            level = sorted((node for node in nodes if node["depth"] == depth), key=lambda node: -node["total"])
            for node in level:
                before = nodes[node["parent"]]["word"] if node["parent"] >= 0 else ""
                line.append(f"  …{visible(before)}" if before else "  ", style="dim")
                line.append(spaced(node["word"]), "bold").append(f" {node['total']:z.2f}", style="cyan")
            yield self.cut(line)
        root = self.trace.tokens["target"][0 if "source" in self.trace.tokens else -1]
        yield indented(drawing.search_tree(spaced(root), nodes, DEEPEST), above=1)
        yield Text("")
        for rank, text in enumerate(found["texts"], 1):
            yield self.cut(Text.assemble((f"  {rank}. ", "dim"), (visible(text), "bold" if rank == 1 else "")))

    def cut(self, line: Text) -> Text:
        """A line that ends where the terminal does."""
        line.truncate(self.width - 1, overflow="ellipsis")
        return line


# --- pictures of single tensors, drawn with characters: T tokens, D model, V choices ---


def picture_of(trace: Trace, name: str, width: int) -> Iterator[RenderableType]:
    """The picture of a tensor; most kinds have none."""
    kind = kind_at(Node(name, trace.run.recipe.model))
    if kind.name == "weights":
        yield from grids(trace, name, width)
    elif kind.name == "inner":
        yield from neurons(trace, name)
    elif kind.picture.view == "addnorm":
        yield spreads(trace, residual_columns(trace, name))
    elif kind.picture.view in ("embedding", "position"):
        if kind.axes[-1] == "channel":  # rotary positions are cosines and sines of angles, used inside attention
            yield from strips(trace, name, width)
        yield Text("")


def strips(trace: Trace, name: str, width: int) -> Iterator[RenderableType]:
    """The first channels of each token's vector as a sparkline, and the norm of the vector."""
    named = trace.named(name)
    tokens = named.labels[named.axes.index("token")][:MOST_TOKENS]
    rows = named.value.reshape(-1, named.value.size(-1))[:MOST_TOKENS]  # (T, D)
    channels = min(rows.size(1), width - LABEL - 18)
    low = rows[:, :channels].min().item()
    high = rows[:, :channels].max().item()
    yield Text(f"  channels 0–{channels - 1}, from {low:.2f} ▁ to {high:.2f} █; norm of the vector", style="dim")
    for token, row in zip(tokens, rows, strict=True):
        line = Text.assemble("  ", label(token, LABEL), " ")
        yield line + sparkline(row[:channels], low, high) + Text(f" {row.norm().item():6.2f}")


def grids(trace: Trace, name: str, width: int) -> Iterator[RenderableType]:
    """The attention weights of each head as a grid."""
    yield Text("\n  Weights in percent: rows attend to columns; · where the mask forbids it.\n", style="dim")
    weights = trace.named(name)
    mask = trace[Node(name, trace.run.recipe.model).beside("mask")]
    rows, columns = (labels[:MOST_TOKENS] for labels in weights.labels[2:])
    beside = min(LABEL, max(len(visible(title).strip()) for title in (*weights.labels[1], *rows))) + 1
    sizes = (beside, drawing.cell_size(len(columns), width - beside))
    drawn = [
        drawing.grid(title, head[:MOST_TOKENS, :MOST_TOKENS], seen[:MOST_TOKENS, :MOST_TOKENS], rows, columns, sizes)
        for title, head, seen in zip(weights.labels[1], weights.value[0], mask[0], strict=True)
    ]
    yield from drawing.side_by_side(drawn, width)


def neurons(trace: Trace, name: str) -> Iterator[RenderableType]:
    """The share of neurons that are positive, and the most active neurons, for each token.

    By value, not by size: far below 0, an activation such as GELU has a floor, and a neuron there is off.
    """
    yield Text(f"\n  {'':{LABEL}} above 0{'':14}the most active neurons", style="dim")
    named = trace.named(name)
    for token, row in list(zip(named.labels[1], named.value[0], strict=True))[:MOST_TOKENS]:
        active = (row > 0).float().mean().item()
        best = row.topk(min(3, len(row))).indices.tolist()
        strongest = "".join(f"  {n:>4}: {row[n].item():5.2f}" for n in best)
        yield Text.assemble("  ", label(token, LABEL), f" {active:>7.0%} ", bar(active, 11), strongest)
    yield Text("")


def residual_columns(trace: Trace, add_norm: str) -> dict[str, str]:
    """The tensors of a residual connection in the order of computing: title -> name."""
    config = trace.run.recipe.model
    if config.norm_order == "post":
        stream, sublayer = parents(f"{add_norm}.added", config)
        return {"x": stream, "sublayer": sublayer, "sum": f"{add_norm}.added", "norm": add_norm}
    stream, sublayer = parents(add_norm, config)
    return {"x": stream, "norm": f"{add_norm}.norm", "sublayer": sublayer, "sum": add_norm}


def spreads(trace: Trace, columns: dict[str, str]) -> RenderableType:
    """Mean and standard deviation of each token's vector in several tensors: title -> name."""
    table = drawing.plain_table("mean ± std", *columns)
    tokens = trace.named(next(iter(columns.values()))).labels[1]
    for place, token in enumerate(tokens[:MOST_TOKENS]):
        vectors = [trace[column][0, place] for column in columns.values()]
        cells = [f"{v.mean().item():z.2f} ± {v.std(correction=0).item():.2f}" for v in vectors]
        table.add_row(label(token, LABEL), *cells)
    return indented(table, above=1)


def bars(logits: Tensor, words: tuple[str, ...], spaces: bool = False) -> Iterator[RenderableType]:
    """The five likeliest choices (V), with bars; of tokens, `spaces` are visible."""
    for word, probability in likeliest(logits, words):
        yield Text.assemble("  ", label(word, 16, spaces), f" {probability:6.1%} ") + bar(probability, 40)
