"""`clearhead walk`: a text on its way through a run's model, step by step, in the terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console, RenderableType
from rich.rule import Rule
from rich.text import Text
from torch import Tensor

from clearhead.config import require
from clearhead.glass.graph import last_block_of, last_of, parents, stream_before, sublayer_input
from clearhead.glass.lens import likeliest
from clearhead.glass.passes import Pass
from clearhead.glass.story import story
from clearhead.glass.trace import Trace, trace
from clearhead.glass.writing import beam_tree
from clearhead.runs import Run, open_run
from clearhead.terminal.colour import visible
from clearhead.terminal.drawing import (
    LABEL,
    bar,
    cell_size,
    grid,
    indented,
    label,
    plain_table,
    search_tree,
    shape,
    shapes,
    side_by_side,
    strip,
    wrapped,
)

WIDEST = 100  # characters: longer lines are hard to read
MOST_TOKENS = 60  # of a grid or a list; the rest is not drawn
BEAM = 3  # hypotheses of the search tree
DEEPEST = 14  # tokens of the search tree
Scene = tuple[str, Iterable[RenderableType]]


def walk(folder: Path, text: str, target: str | None = None, layer: int | None = None, step: bool = False) -> None:
    """Show the whole path of a text through a run's model; `layer` shows one block of each stack, `step` pauses."""
    console = Console(highlight=False)
    console = Console(highlight=False, width=min(console.width, WIDEST))
    require(bool(text.strip()), 'there is nothing to walk through; give a text: clearhead walk RUN "the cat sleeps"')
    run = open_run(folder)
    layers = max(run.recipe.model.layers, run.recipe.model.encoder_layers)
    require(layer is None or 0 <= layer < layers, f"--layer {layer}: this model has layers 0 to {layers - 1}")
    show(Walk(trace(run, text, target), console.width, layer), console, step)


def show(walk: Walk, console: Console, step: bool) -> None:
    """Print the scenes, with a pause after each if wanted and if somebody is there to end it."""
    for number, (title, parts) in enumerate(walk.scenes(), 1):
        if number > 1 and step and sys.stdin.isatty():
            console.input("[dim]Enter goes on, Ctrl-C ends[/]")
        console.print()
        console.print(Rule(f"[bold]{number} · {title}[/]", align="left", style="dim"))
        for part in parts:
            console.print(part)


@dataclass
class Walk:
    """The scenes of a trace."""

    trace: Trace
    width: int
    layer: int | None = None  # the only block to show of each stack; None: all
    told: set[str] = field(default_factory=set)  # paragraphs that need no repetition

    @property
    def run(self) -> Run:
        """The run whose model is walked through."""
        return self.trace.run

    def scenes(self) -> Iterator[Scene]:
        """From the text to what the model makes of it."""
        yield "the text becomes tokens", self.tokens()
        stacks = {"encoder": "source", "decoder": "target"}
        for stack in (name for name, side in stacks.items() if side in self.trace.tokens):
            yield f"{stack}: tokens become vectors", self.vectors(stack)
            for number in range(self.blocks_of(stack)):
                if self.layer in (None, number):
                    yield from self.block(f"{stack}.blocks.{number}", f"{stack}, block {number}")
            if f"{stack}.norm" in self.trace:
                yield f"{stack}: the last norm", self.last_norm(stack)
        yield "the answer", self.answer()
        if self.run.recipe.model.family != "encoder-only":
            yield "the search", self.search()

    def block(self, block: str, title: str) -> Iterator[Scene]:
        """The sublayers of a block."""
        yield f"{title}: attention", self.attention(f"{block}.attention")
        if f"{block}.cross_attention" in self.trace:
            yield f"{title}: looking at the source", self.attention(f"{block}.cross_attention")
        yield f"{title}: feed-forward", self.feed_forward(f"{block}.feed_forward")

    def blocks_of(self, stack: str) -> int:
        """How many blocks a stack has."""
        return sum(name.startswith(f"{stack}.blocks.") and name.endswith(".feed_forward") for name in self.trace)

    def tell(self, *names: str) -> Iterator[RenderableType]:
        """The formulas and paragraphs of tensors, each of them only once in a walk."""
        stories = [story(self.trace, name) for name in names]
        formulas = [told.formula for told in stories if told.formula not in self.told]
        if formulas:
            yield Text("  " + "   ".join(formulas), style="cyan")
        for told in stories:
            if told.paragraph not in self.told:
                yield indented(Text(told.paragraph, style="italic"))
            self.told |= {told.formula, told.paragraph}

    def tokens(self) -> Iterator[RenderableType]:
        """Places, tokens and ids of each side."""
        config = self.run.recipe.model
        size = sum(parameter.numel() for parameter in self.run.model.parameters())
        yield Text(f"  {config.family}, {size:,} parameters, d_model {config.d_model}, {config.heads} heads")
        for side, tokens in self.trace.tokens.items():
            given = {"source": self.trace.text, "target": self.trace.target_text}[side] or self.trace.text
            yield Text.assemble(f"\n  {side}: ", (visible(given), "bold"))
            shown = zip(range(len(tokens)), tokens, self.trace.ids[side], strict=True)
            columns = [[str(place), self.spaced(token), str(number)] for place, token, number in shown]
            for some in wrapped(columns, self.width - 8):
                for name, cells in zip(("place", "token", "id"), zip(*some, strict=True), strict=True):
                    yield Text.assemble((f"  {name:<5}", "dim"), ("".join(cells), "bold" if name == "token" else ""))
            if len(tokens) > MOST_TOKENS:
                yield Text(f"  (the pictures below show the first {MOST_TOKENS} of {len(tokens)})", style="dim")

    def spaced(self, token: str) -> str:
        """A token with the space before it made visible."""
        return visible(token).replace(" ", "␣")

    def vectors(self, stack: str) -> Iterator[RenderableType]:
        """Embedding, position and their sum, with the first channels of each token as steps."""
        ids = self.trace.ids["source" if stack == "encoder" else "target"]
        for kind in ("embedding", "position", "segment", "sum", "embedding_norm"):
            name = f"{stack}.{kind}"
            if name not in self.trace or (kind == "sum" and len(parents(name, self.run.recipe.model)) == 1):
                continue
            value = self.trace[name]
            before = (
                f"ids [1, {len(ids)}]" if kind == "embedding" else f"places [{len(ids)}]" if kind == "position" else ""
            )
            yield shapes(*([before] if before else []), f"{kind} {shape(value)}")
            yield from self.tell(name)
            if value.dim() < 4:  # rotary positions are cosines and sines of angles, used inside attention
                yield from self.strips(stack, value)
            yield Text("")

    def strips(self, stack: str, value: Tensor) -> Iterator[RenderableType]:
        """The first channels of each token, and the length of its vector."""
        tokens = self.trace.tokens["source" if stack == "encoder" else "target"][:MOST_TOKENS]
        rows = value.reshape(-1, value.size(-1))[:MOST_TOKENS]
        channels = min(rows.size(1), self.width - LABEL - 18)
        low, high = rows[:, :channels].min().item(), rows[:, :channels].max().item()
        yield Text(f"  channels 0–{channels - 1}, from {low:.2f} ▁ to {high:.2f} █; length", style="dim")
        for token, row in zip(tokens, rows, strict=True):
            line = Text.assemble("  ", label(token, LABEL), " ")
            yield line + strip(row[:channels], low, high) + Text(f" {row.norm().item():6.2f}")

    def attention(self, name: str) -> Iterator[RenderableType]:
        """Queries, keys, values, scores, weights of all heads, what comes out, and add & norm."""
        kinds = ("queries", "keys", "scores", "weights", "head_outputs")
        queries, keys, scores, weights, outputs = (shape(self.trace[f"{name}.{kind}"]) for kind in kinds)
        config = self.run.recipe.model
        memory = parents(f"{name}.values", config)[0]
        yield shapes(f"x {shape(self.trace[sublayer_input(name, config)])}", f"queries {queries}")
        yield shapes(f"{'source' if 'cross' in name else 'x'} {shape(self.trace[memory])}", f"keys, values {keys}")
        yield from self.tell(f"{name}.queries", f"{name}.keys", f"{name}.values")
        yield shapes(f"scores {scores}", f"weights {weights}")
        yield from self.tell(f"{name}.scores")
        yield from self.tell(f"{name}.weights")
        yield Text("\n  Weights in hundredths: a row looks at its columns; · where it may not look.\n", style="dim")
        yield from self.grids(name)
        yield shapes(f"heads {outputs}", f"joined {shape(self.trace[name])}")
        yield from self.tell(name)
        yield from self.add_norm(name)

    def grids(self, name: str) -> Iterator[RenderableType]:
        """The weights of each head as a grid."""
        weights, mask = self.trace.named(f"{name}.weights"), self.trace[f"{name}.mask"]
        rows, columns = (labels[:MOST_TOKENS] for labels in weights.labels[2:])
        beside = min(LABEL, max(len(visible(name).strip()) for name in (*weights.labels[1], *rows))) + 1
        size = cell_size(len(columns), self.width - beside)
        drawn = [
            grid(
                title, head[:MOST_TOKENS, :MOST_TOKENS], seen[:MOST_TOKENS, :MOST_TOKENS], rows, columns, (beside, size)
            )
            for title, head, seen in zip(weights.labels[1], weights.value[0], mask[0], strict=True)
        ]
        yield from side_by_side(drawn, self.width)

    def feed_forward(self, name: str) -> Iterator[RenderableType]:
        """The two matrices and the bend between them: how many neurons fire, and which most."""
        before = self.trace[sublayer_input(name, self.run.recipe.model)]
        inner, after = self.trace[f"{name}.inner"], self.trace[name]
        yield shapes(f"x {shape(before)}", f"inside {shape(inner)}", f"output {shape(after)}")
        yield from self.tell(f"{name}.up")
        yield from self.tell(f"{name}.inner")
        yield from self.tell(name)
        yield Text(f"\n  {'':{LABEL}} above 0{'':14}the strongest neurons", style="dim")
        tokens = self.trace.named(name).labels[1]
        for token, neurons in list(zip(tokens, inner[0], strict=True))[:MOST_TOKENS]:
            active = (neurons > 0).float().mean().item()
            best = neurons.abs().topk(min(3, len(neurons))).indices.tolist()
            strongest = "".join(f"  {n:>4}: {neurons[n].item():5.2f}" for n in best)
            yield Text.assemble("  ", label(token, LABEL), f" {active:>7.0%} ", bar(active, 11), strongest)
        yield Text("")
        yield from self.add_norm(name)

    def add_norm(self, name: str) -> Iterator[RenderableType]:
        """What is added to the stream, and what the norm makes of it."""
        add_norm = f"{name}_add_norm"
        stream = stream_before(add_norm, self.run.recipe.model)
        yield shapes(f"x {shape(self.trace[stream])}", f"add & norm {shape(self.trace[add_norm])}")
        yield from self.tell(add_norm)
        if self.run.recipe.model.norm_order == "post":
            yield self.spreads({"x": stream, "sublayer": name, "sum": f"{add_norm}.added", "norm": add_norm})
        else:
            yield self.spreads({"x": stream, "norm": f"{add_norm}.norm", "sublayer": name, "sum": add_norm})

    def last_norm(self, stack: str) -> Iterator[RenderableType]:
        """With pre-norm, the stream is normalized once at its end."""
        yield from self.tell(f"{stack}.norm.normalized")
        yield from self.tell(f"{stack}.norm")
        stream = last_block_of(stack, self.run.recipe.model)
        yield self.spreads({"x": stream, "normalized": f"{stack}.norm.normalized", "norm": f"{stack}.norm"})

    def spreads(self, columns: dict[str, str]) -> RenderableType:
        """Mean and deviation of each token's vector in several tensors."""
        table = plain_table("mean ± deviation", *columns)
        tokens = self.trace.named(next(iter(columns.values()))).labels[1]
        for place, token in enumerate(tokens[:MOST_TOKENS]):
            vectors = [self.trace[column][0, place] for column in columns.values()]
            cells = [f"{v.mean().item():z.2f} ± {v.std(correction=0).item():.2f}" for v in vectors]
            table.add_row(label(token, LABEL), *cells)
        return indented(table, above=1)

    def answer(self) -> Iterator[RenderableType]:
        """The five likeliest tokens at each place, the classes, or the sentence's vector."""
        config = self.run.recipe.model
        if config.head == "embedding":
            yield shapes(f"x {shape(self.trace[last_of('encoder', config)])}", f"pooled {shape(self.trace['pooled'])}")
            yield from self.tell("pooled")
            vector = self.trace["pooled"][0]
            yield indented(strip(vector[: self.width - 4], vector.min().item(), vector.max().item()), above=1)
            return
        logits = self.trace.named("head.logits")
        yield shapes(f"x {shape(self.trace[parents('head.logits', config)[0]])}", f"logits {shape(logits.value)}")
        yield from self.tell("head.logits")
        yield Text("")
        if config.head == "classes":
            yield from self.bars(logits.value[0], logits.labels[1])
            return
        yield from self.next_tokens(logits.value[0], logits.labels[2])

    def next_tokens(self, logits: Tensor, words: tuple[str, ...]) -> Iterator[RenderableType]:
        """The five likeliest tokens at each place; those of the last one, or of masked ones, with bars."""
        side = "source" if self.run.recipe.model.family == "encoder-only" else "target"
        tokens, where = self.trace.tokens[side], "at" if side == "source" else "after"
        yield Text(f"  The five likeliest tokens {where} each place:\n", style="dim")
        for token, row in list(zip(tokens, logits, strict=True))[:MOST_TOKENS]:
            best = "".join(f" {chance:>4.0%} {label(word, 7)}" for word, chance in likeliest(row, words))
            yield Text.assemble("  ", (label(token, LABEL), "bold"), best)
        tokenizer, ids = self.run.tokenizers.target, self.trace.ids[side]
        masked = [n for n, number in enumerate(ids) if tokenizer.has("mask") and number == tokenizer.mask]
        for place in masked if side == "source" else [len(ids) - 1]:
            yield Text(f"\n  {where} place {place}, {self.spaced(tokens[place])}:", style="dim")
            yield from self.bars(logits[place], words)

    def bars(self, logits: Tensor, words: tuple[str, ...]) -> Iterator[RenderableType]:
        """The five likeliest choices, with bars."""
        for word, chance in likeliest(logits, words):
            yield Text.assemble("  ", label(word, 16), f" {chance:6.1%} ") + bar(chance, 40)

    def search(self) -> Iterator[RenderableType]:
        """A beam search as it grows, step by step, the tree that it leaves, and the texts at its ends."""
        found = beam_tree(Pass(lambda: self.run, self.trace.reading, self.trace.changes), self.run, BEAM)
        nodes = [node for node in found["nodes"] if node["depth"] <= DEEPEST]
        yield Text(f"  Beam search: the {BEAM} likeliest beginnings go on. Numbers: log-probabilities.\n", style="dim")
        for depth in range(1, max(node["depth"] for node in nodes) + 1):
            line = Text(f"  step {depth:>2} ", style="dim")
            level = sorted((node for node in nodes if node["depth"] == depth), key=lambda node: -node["total"])
            for node in level:
                before = nodes[node["parent"]]["word"] if node["parent"] >= 0 else ""
                line.append(f"  …{visible(before)}" if before else "  ", style="dim").append(
                    visible(node["word"]), "bold"
                )
                line.append(f" {node['total']:z.2f}", style="cyan")
            line.truncate(self.width - 1, overflow="ellipsis")
            yield line
        begun = self.trace.tokens["target"][0 if "source" in self.trace.tokens else -1]
        yield indented(search_tree(self.spaced(begun), nodes, DEEPEST), above=1)
        yield Text("")
        for rank, text in enumerate(found["texts"], 1):
            line = Text.assemble((f"  {rank}. ", "dim"), (visible(text), "bold" if rank == 1 else ""))
            line.truncate(self.width - 1, overflow="ellipsis")
            yield line
