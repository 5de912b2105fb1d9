"""Which tensors a tensor is computed from: the model as a graph of names."""

from __future__ import annotations

from clearhead.config import ModelConfig
from clearhead.glass.names import block_of, kind_of


def parents(name: str, config: ModelConfig) -> tuple[str, ...]:
    """The named tensors that enter the formula of a named tensor; weights are not among them."""
    kind, above = kind_of(name), name.rpartition(".")[0]
    if ".blocks." in name:
        return inside_block(name, kind, above, config)
    if name.startswith("head"):
        return inside_head(name, config)
    if name == "pooled":
        return (last_of("encoder", config),)
    if kind == "sum":
        added = [f"{above}.embedding"]
        added += [f"{above}.position"] if config.position in ("sinusoidal", "learned") else []
        return (*added, *([f"{above}.segment"] if config.segments else []))
    if kind in ("embedding_norm", "norm"):
        return (f"{name}.normalized",)
    if kind == "normalized":
        stack = above.split(".")[0]
        return (f"{stack}.sum",) if above.endswith("embedding_norm") else (last_block_of(stack, config),)
    return ()  # embedding, position, segment: ids and places alone


def inside_block(name: str, kind: str, above: str, config: ModelConfig) -> tuple[str, ...]:
    """The parents of a tensor in a block."""
    post, rotary = config.norm_order == "post", config.position == "rotary" and ".cross_attention" not in name
    if "_add_norm" in name:
        add_norm = name.partition("_add_norm")[0] + "_add_norm"
        sum_of = (stream_before(add_norm, config), add_norm.removesuffix("_add_norm"))
        if kind == "normalized":
            return (f"{add_norm}.added",) if post else sum_of[:1]
        if kind == "added" or (kind != "norm" and not post):
            return sum_of
        return (f"{add_norm}.norm.normalized",)
    read = sublayer_input(above, config)
    memory = last_of("encoder", config) if above.endswith("cross_attention") else read
    turn = (f"{name.split('.')[0]}.position",)
    return {
        "query": (read,),
        "key": (read,),
        "queries": (f"{above}.query", *turn) if rotary else (read,),
        "keys": (f"{above}.key", *turn) if rotary else (memory,),
        "values": (memory,),
        "mask": (),
        "scores": (f"{above}.queries", f"{above}.keys"),
        "weights": (f"{above}.scores", f"{above}.mask"),
        "head_outputs": (f"{above}.weights", f"{above}.values"),
        "attention": (f"{name}.head_outputs",),
        "cross_attention": (f"{name}.head_outputs",),
        "gate": (read,),
        "up": (read,),
        "inner": (f"{above}.gate", f"{above}.up") if config.activation == "swiglu" else (f"{above}.up",),
        "feed_forward": (f"{name}.inner",),
    }[kind]


def inside_head(name: str, config: ModelConfig) -> tuple[str, ...]:
    """The parents of a tensor in the head."""
    words = config.head == "vocabulary"
    stack = "encoder" if config.family == "encoder-only" else "decoder"
    hidden = last_of(stack, config) if words else "pooled"
    ready = ("head.norm" if words else "head.activated") if config.head_dense else hidden
    return {
        "head.dense": (hidden,),
        "head.activated": ("head.dense",),
        "head.norm.normalized": ("head.activated",),
        "head.norm": ("head.norm.normalized",),
        "head.logits": (ready,),
    }[name]


def first_of(stack: str, config: ModelConfig) -> str:
    """What enters the first block of a stack."""
    return f"{stack}.embedding_norm" if config.embedding_norm else f"{stack}.sum"


def last_block_of(stack: str, config: ModelConfig) -> str:
    """What the last block of a stack gives."""
    encoder_layers = config.encoder_layers or config.layers
    return f"{stack}.blocks.{(encoder_layers if stack == 'encoder' else config.layers) - 1}.feed_forward_add_norm"


def last_of(stack: str, config: ModelConfig) -> str:
    """What a stack gives."""
    return f"{stack}.norm" if config.norm_order == "pre" else last_block_of(stack, config)


def stream_before(add_norm: str, config: ModelConfig) -> str:
    """The residual stream that an add & norm adds to."""
    block, kind = block_of(add_norm), kind_of(add_norm)
    stack, _, number = block.split(".")
    if kind == "attention_add_norm":
        return f"{stack}.blocks.{int(number) - 1}.feed_forward_add_norm" if int(number) else first_of(stack, config)
    crossed = stack == "decoder" and config.family == "encoder-decoder" and kind == "feed_forward_add_norm"
    return f"{block}.cross_attention_add_norm" if crossed else f"{block}.attention_add_norm"


def sublayer_input(sublayer: str, config: ModelConfig) -> str:
    """What a sublayer reads: the stream, or with the norm first the stream after its norm."""
    add_norm = f"{sublayer}_add_norm"
    return f"{add_norm}.norm" if config.norm_order == "pre" else stream_before(add_norm, config)
