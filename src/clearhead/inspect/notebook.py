"""A trace as a static drawing in HTML, for a notebook: the model as in the paper's figure, with its tensors.

Shapes: T tokens, S keys, D channels.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from clearhead.inspect.lens import likeliest
from clearhead.inspect.paths import SUBLAYERS, kind_of, sublayers_of

if TYPE_CHECKING:
    from clearhead.inspect.trace import Trace

MOST_TOKENS = 40  # of a stack
MOST_BLOCKS = 4  # of a stack, the last ones
CHANNELS = 32  # of a vector
WEAK = (250, 250, 252)
STRONG = (49, 40, 120)
BELOW = (155, 47, 134)
ABOVE = (21, 121, 90)
COLOURS = {"source": "#0b63b0", "target": "#b34e00"}
BOX = "margin:3px 0;padding:4px 8px;border:1px solid #ddd;border-radius:6px;display:flex;gap:10px;align-items:center"
PAGE = "font:13px/1.4 system-ui,sans-serif;color:#1b2230;background:#fff;padding:12px;border-radius:8px;max-width:900px"


def notebook_html(trace: Trace) -> str:
    """The drawing: text only ever as text, pictures inside, no scripts."""
    stacks = [stack for stack in ("encoder", "decoder") if any(name.startswith(f"{stack}.") for name in trace)]
    columns = "".join(f'<div style="flex:1;min-width:0">{"".join(stack_rows(trace, stack))}</div>' for stack in stacks)
    outputs = "".join(output_rows(trace))
    hint = f"{len(trace)} tensors; <code>print(trace.tree())</code> lists them"
    return (
        f'<div style="{PAGE}">{outputs}<div style="display:flex;gap:18px;align-items:flex-end">{columns}</div>'
        f'<div style="color:#5d6675">{hint}</div></div>'
    )


def stack_rows(trace: Trace, stack: str) -> Iterator[str]:
    """A stack from its last block down to its tokens."""
    config = trace.run.recipe.model
    side = "source" if stack == "encoder" else "target"
    blocks = sorted({int(name.split(".")[2]) for name in trace if name.startswith(f"{stack}.blocks.")}, reverse=True)
    for number in blocks[:MOST_BLOCKS]:
        yield f'<div style="color:#5d6675;margin-top:6px">{stack}, block {number}</div>'
        for sublayer in reversed(sublayers_of(stack, config)):
            inside = "inner" if sublayer == "feed_forward" else "weights"
            yield box(trace, f"{stack}.blocks.{number}.{sublayer}.{inside}", SUBLAYERS[sublayer])
    if len(blocks) > MOST_BLOCKS:
        yield f'<div style="color:#5d6675">… and {len(blocks) - MOST_BLOCKS} more below</div>'
    yield box(trace, f"{stack}.embedding", "embedding")
    pieces = trace.tokens[side][:MOST_TOKENS]
    chips = " ".join(f'<span style="color:{COLOURS[side]};white-space:pre">{escape(piece)}</span>' for piece in pieces)
    yield f'<div style="margin-top:4px"><b>{side}</b> {chips}</div>'


def box(trace: Trace, name: str, title: str) -> str:
    """One tensor as a small picture beside its title; empty if the trace does not hold it."""
    if name not in trace:
        return ""
    value = trace[name][0]
    positive = kind_of(name) == "weights"
    value = value.mean(0)[:MOST_TOKENS, :MOST_TOKENS] if positive else value[:MOST_TOKENS, :CHANNELS]
    picture = base64.b64encode(png(colours(value, positive))).decode()
    style = f"height:{max(24, min(90, 7 * len(value)))}px;image-rendering:pixelated;border-radius:3px"
    shape = " × ".join(map(str, trace[name].shape[1:]))
    words = f'{title}<br><small style="color:#5d6675">{escape(kind_of(name))} {shape}</small>'
    image = f'<img alt="{escape(name)}" title="{escape(name)}" style="{style}" src="data:image/png;base64,{picture}">'
    return f'<div style="{BOX}"><span style="width:8.5em">{words}</span>{image}</div>'


def output_rows(trace: Trace) -> Iterator[str]:
    """The likeliest outputs with bars: classes, or tokens after the last position."""
    if "head.logits" not in trace:
        return
    named = trace.named("head.logits")
    logits = named.value[0]
    last = logits if logits.dim() == 1 else logits[-1]
    yield f"<div><b>{'classes' if logits.dim() == 1 else 'next token'}</b></div>"
    for word, probability in likeliest(last, named.labels[-1], 4):
        bar = f'<span style="height:9px;border-radius:3px;background:#4338a8;width:{220 * probability:.0f}px"></span>'
        label = f'<span style="width:8em;white-space:pre">{escape(word)}</span>'
        yield f'<div style="display:flex;gap:8px;align-items:center">{label}{bar}<span>{probability:.1%}</span></div>'


def colours(value: Tensor, positive: bool) -> Tensor:
    """Numbers (T, D) as colours (T, D, 3): from 0 to 1, or purple below 0 and green above."""
    share = (value.float() / value.float().abs().amax().clamp(min=1e-9)).nan_to_num().clamp(-1, 1)[..., None]
    strong = torch.tensor(STRONG if positive else ABOVE).float()
    end = torch.where(share < 0, torch.tensor(BELOW).float(), strong)
    weak = torch.tensor(WEAK).float()
    return (weak + share.abs() * (end - weak)).round().to(torch.uint8)


def png(pixels: Tensor) -> bytes:
    """Colours (T, D, 3) as a PNG file."""
    rows, columns, _ = pixels.shape
    lines = b"".join(b"\0" + bytes(row.flatten().tolist()) for row in pixels)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", columns, rows, 8, 2, 0, 0, 0)
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts
