"""The fields that describe a kind of tensor. Everything that shows tensors reads them: library, terminal and page."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

from clearhead.config import ModelConfig
from clearhead.inspect.formula import Formula
from clearhead.inspect.kinds.cell import Computation, TensorCell
from clearhead.inspect.paths import Node, sublayer_input

Code = tuple[Callable[..., Any], *tuple[str, ...]]  # a function of the model, and how the lines begin that count
STREAM = ("batch", "token", "channel")
PAIRS = ("batch", "head", "query", "key")
QUERY_HEADS = ("batch", "head", "query", "channel")
WORDS: dict[str, dict[str, Any]] = tomllib.loads((Path(__file__).parent / "words.toml").read_text(encoding="utf8"))


class PagePicture(NamedTuple):
    """How the page draws a tensor."""

    view: str  # the view that shows it; "": the view of the module that it belongs to
    title: str = ""
    brief: str = ""  # what it is in a few words, below its title
    palette: Literal["signed", "weights"] = "signed"  # colours from -max to max, or from 0 to 1


class Definition(NamedTuple):
    """An entry of the page's glossary."""

    word: str
    meaning: str


def always(_node: Node) -> bool:
    """True of every tensor."""
    return True


def no_parents(_node: Node) -> tuple[str, ...]:
    """Computed from token ids or positions alone."""
    return ()


def own_input(node: Node) -> tuple[str, ...]:
    """Computed from the input of its sublayer; the keys and values of cross-attention are not."""
    return (sublayer_input(node.owner, node.config),)


def no_parameters(_node: Node) -> str:
    """No parameters take part."""
    return ""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """What is known about the tensors of one name, in models of some settings.

    Several entries may have the same name, such as queries with and without rotary positions: the first whose `when`
    is true describes a tensor. A module that no entry describes gives no tensor of its own, and is not listed.
    """

    name: str  # the last word of the tensor's name: "queries"
    variant: str = ""  # tells entries of the same name apart: "rotary"
    when: Callable[[Node], bool] = always
    axes: tuple[str, ...]  # without "token" where there is one vector for the whole text
    title: str
    text: str  # a paragraph
    formula: Formula | Callable[[ModelConfig], Formula]
    code: Code  # where the model computes it
    parents: Callable[[Node], tuple[str, ...]] = no_parents  # the tensors that enter the formula
    parameters: Callable[[Node], str] = no_parameters  # the module whose parameters enter it; "": none
    explain: Callable[[TensorCell], Computation]  # computes one cell from the parents and the parameters
    picture: PagePicture
    definition: Definition | None = None
    replaces: str = ""  # a kind in the same module, in whose place later tensors read this one
    in_stream: bool = False  # a state of the residual stream
    in_logit: bool = False  # one of the tensors that `lens.contributions` reads

    def formula_in(self, config: ModelConfig) -> Formula:
        """The formula in a model of these settings."""
        return self.formula if isinstance(self.formula, Formula) else self.formula(config)

    @property
    def full_name(self) -> str:
        """Name and variant: "queries.rotary"."""
        return f"{self.name}.{self.variant}" if self.variant else self.name


def words_of(entry: str) -> dict[str, Any]:
    """Title, text, picture and definition of an entry, as far as words.toml has them."""
    forms: dict[str, Callable[..., Any]] = {"picture": PagePicture, "definition": Definition}
    return {field: forms[field](**value) if field in forms else value for field, value in WORDS[entry].items()}


def described(name: str, variant: str = "", like: Kind | None = None, **fields: Any) -> Kind:
    """An entry with its words from words.toml; what is not given is as in the entry that it is `like`."""
    words = words_of(f"{name}.{variant}" if variant else name)
    fields = {"name": name, "variant": variant, **words, **fields}
    return replace(like, **fields) if like else Kind(**fields)
