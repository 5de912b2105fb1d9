"""`clearhead demo`: each family is built, a batch walks through it, and every step shows its shape."""

from __future__ import annotations

from dataclasses import replace

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from clearhead.config import Family, ModelConfig
from clearhead.model import DecoderOnly, EncoderDecoder, EncoderOnly, build_model
from clearhead.presets import PRESETS
from clearhead.size import parameter_lines, readable, total

BATCH, SOURCE, LENGTH = 2, 5, 4  # sentences, tokens of a source, tokens of a text
PAPER = replace(PRESETS["paper-base"], layers=2, vocab=1000)  # its widths; two blocks and few words: quick to build
SHOWN: dict[Family, tuple[str, ModelConfig]] = {
    "encoder-decoder": ("the paper: reads a sentence, writes another", PAPER),
    "decoder-only": ("GPT: says what comes next", replace(PAPER, family="decoder-only")),
    "encoder-only": ("BERT: every token sees all others", replace(PAPER, family="encoder-only")),
}
STEPS = {  # the last part of a module's name -> what happens there
    "embedding": f"token embeddings × √{PAPER.d_model}",
    "position": "positions, added",
    "queries": f"queries, cut into {PAPER.heads} heads",
    "keys": "keys",
    "values": "values",
    "scores": f"scores: queries · keys / √{PAPER.head_size}",
    "weights": "weights: softmax of the scores",
    "head_outputs": "weights × values, head by head",
    "attention": "heads joined",
    "cross_attention": "joined: what the source says",
    "attention_add_norm": "add & norm",
    "cross_attention_add_norm": "add & norm",
    "inner": "feed-forward, inside",
    "feed_forward": "feed-forward, output",
    "feed_forward_add_norm": "add & norm",
    "logits": "logits: one score for each word",
}


def walk(model: EncoderDecoder | DecoderOnly | EncoderOnly) -> list[tuple[str, Tensor]]:
    """Run a batch through the model; give each named intermediate of the first blocks, in the order of computing."""
    seen: list[tuple[str, Tensor]] = []
    for name, module in model.named_modules():
        if name.split(".")[-1] in STEPS and ".blocks.1." not in name:
            module.register_forward_hook(lambda _m, _i, output, name=name: seen.append((name, output)))
    source, ids = (torch.randint(0, model.config.vocab, (BATCH, length)) for length in (SOURCE, LENGTH))
    with torch.inference_mode():
        model.eval()(*((source, ids) if isinstance(model, EncoderDecoder) else (ids,)))
    return seen


def walk_families() -> None:
    """Print the walk through all three families."""
    console = Console(highlight=False)
    console.print(
        f"A batch of {BATCH} sentences, {LENGTH} tokens each; the encoder-decoder reads {SOURCE} source tokens."
    )
    for family, (about, config) in SHOWN.items():
        torch.manual_seed(0)
        model = build_model(config)
        size = readable(total(parameter_lines(config)), "")
        console.print(f"\n[bold]{family}[/] ({about}): {size} parameters")
        console.print(shape_table(walk(model)))
    console.print(
        "\nThe second block does the same again. Try next:\n"
        "  [bold]clearhead size paper-base[/]               its arithmetic, shown\n"
        "  [bold]clearhead size gpt2 --batch 8 --gpus 4[/]   the same for four GPUs\n"
        "  [bold]clearhead --help[/]"
    )


def shape_table(steps: list[tuple[str, Tensor]]) -> Table:
    """Name, shape and meaning of each step, under a heading for each block."""
    table = Table(box=None, show_header=False, pad_edge=False)
    for _ in range(3):
        table.add_column(no_wrap=True)
    heading = ""
    for name, tensor in steps:
        block, _, inside = name.rpartition(".0.")
        if block and block != heading:
            table.add_row(f"[bold]{block}.0[/]")
        heading = block
        indent = "  " if block else ""
        table.add_row(f"{indent}[cyan]{inside}[/]", str(list(tensor.shape)), STEPS[name.split(".")[-1]])
    return table
