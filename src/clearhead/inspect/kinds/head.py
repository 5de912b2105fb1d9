"""From the output of the last stack to the logits, or to one vector for the whole text."""

from __future__ import annotations

from clearhead.config import ModelConfig
from clearhead.inspect.formula import Formula, at, call, equals, fraction, number, row, symbol, total
from clearhead.inspect.kinds.cell import Computation, TensorCell, Term, explain_matrix, sum_of
from clearhead.inspect.kinds.feed_forward import explain_activation
from clearhead.inspect.kinds.kind import STREAM, described
from clearhead.inspect.kinds.letters import times, x, y
from clearhead.inspect.paths import Node, stack_output
from clearhead.model.families import EncoderOnly, Head


def explain_first(cell: TensorCell) -> Computation:
    """The vector of the first token."""
    value = cell.part(cell.parents[0], channel=cell.index["channel"])[0].item()
    terms = (Term(cell.trace.tokens["source"][0], (value,)),)
    return Computation(at(symbol("x"), "0", "c"), number(value), value, terms)


def explain_mean(cell: TensorCell) -> Computation:
    """The mean over all tokens."""
    column = cell.part(cell.parents[0], channel=cell.index["channel"])
    tokens = cell.trace.tokens["source"]
    terms = tuple(Term(token, (value,)) for token, value in zip(tokens, column.tolist(), strict=True))
    formula = fraction(total("t", at(symbol("x"), "t", "c")), symbol("T"))
    return Computation(formula, fraction(sum_of(terms), number(len(terms))), column.mean().item(), terms)


def head_input(node: Node) -> tuple[str, ...]:
    """What the head reads: the output of the last stack, or one vector for the whole text."""
    if node.config.head != "vocabulary":
        return ("pooled",)
    return (stack_output("encoder" if node.config.family == "encoder-only" else "decoder", node.config),)


def logits_input(node: Node) -> tuple[str, ...]:
    """What the last matrix reads: the input of the head, or the output of the dense layer before it."""
    if not node.config.head_dense:
        return head_input(node)
    return ("head.norm" if node.config.head == "vocabulary" else "head.activated",)


def logits_formula(config: ModelConfig) -> Formula:
    """Z = W x, plus a bias if the head has one."""
    product = row(symbol("W"), x)
    return equals(symbol("z"), row(product, "+", symbol("b")) if config.head_bias else product)


POOLED = described(
    "pooled",
    "mean",
    when=lambda node: node.config.head != "vocabulary" and node.config.pool == "mean",
    axes=("batch", "channel"),
    formula=equals(y, fraction(total("t", at(x, "t")), symbol("T"))),
    code=(EncoderOnly.pool, "if real is None", "return x.mean"),
    parents=lambda node: (stack_output("encoder", node.config),),
    explain=explain_mean,
)
FIRST = described(
    "pooled",
    "first",
    like=POOLED,
    when=lambda node: node.config.head != "vocabulary" and node.config.pool == "first",
    formula=equals(y, at(x, "0")),
    code=(EncoderOnly.pool, 'if self.config.pool == "first"', "return x[:, 0]"),
    explain=explain_first,
)
DENSE = described(
    "dense",
    axes=STREAM,
    formula=lambda config: equals(y, times("D", config)),
    code=(Head.features, "if self.dense", "x = self.activated"),
    parents=head_input,
    parameters=lambda node: node.name,
    explain=explain_matrix,
)
ACTIVATED = described(
    "activated",
    when=lambda node: node.config.head_dense,
    axes=STREAM,
    formula=lambda config: equals(
        y, call(config.activation if config.head == "vocabulary" else config.head_activation, symbol("dense"))
    ),
    code=(Head.features, "x = self.activated"),
    parents=lambda node: (node.beside("dense"),),
    explain=explain_activation,
)
LOGITS = described(
    "logits",
    when=lambda node: node.config.head == "vocabulary",
    axes=("batch", "token", "word"),
    formula=logits_formula,
    code=(Head.forward, "return x if self.project is None"),
    parents=logits_input,
    parameters=lambda node: node.beside("project"),
    explain=explain_matrix,
    in_logit=True,
)
CLASS_LOGITS = described(
    "logits",
    "classes",
    like=LOGITS,
    when=lambda node: node.config.head == "classes",
    axes=("batch", "class"),
)
KINDS = (POOLED, FIRST, DENSE, ACTIVATED, LOGITS, CLASS_LOGITS)
