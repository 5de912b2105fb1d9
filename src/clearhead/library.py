"""A trained run in Python: `clearhead.load("runs/phrasebook")`, with the same words as the command line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, overload

from torch import Tensor

from clearhead.config import Weights
from clearhead.decode.embed import Classified, classify, embed
from clearhead.decode.generate import Answer, answer, generate, generate_stream
from clearhead.decode.packed import pack
from clearhead.decode.sampling import Choice
from clearhead.decode.translate import Searching, Written, translate
from clearhead.runs import Model, Run, open_run
from clearhead.text.dialogue import Dialogue, Message, Role

if TYPE_CHECKING:
    from clearhead.evaluate.results import Results
    from clearhead.glass.trace import Trace


def load(folder: str | Path, device: str = "cpu", weights: Weights = "float32") -> Loaded:
    """A run, ready for use; on a CPU, its matrices may have fewer bits: smaller, faster, a little less exact."""
    run = open_run(folder, device)
    pack(run.model, weights)
    return Loaded(run)


class Loaded:
    """A trained model and what it can do; a verb that its task does not have is refused with a sentence."""

    def __init__(self, run: Run) -> None:
        self.run = run

    def __repr__(self) -> str:
        size = sum(p.numel() for p in self.model.parameters())
        return f"Loaded({str(self.run.folder)!r}, {self.run.recipe.data.task}, {size:,} parameters)"

    @property
    def model(self) -> Model:
        """The model itself, a torch module."""
        return self.run.model

    @overload
    def translate(self, text: str, beam: int = 4, length_penalty: float = 0.6, prefix: str = "") -> str: ...

    @overload
    def translate(self, text: list[str], beam: int = 4, length_penalty: float = 0.6, prefix: str = "") -> list[str]: ...

    def translate(
        self, text: str | list[str], beam: int = 4, length_penalty: float = 0.6, prefix: str = ""
    ) -> str | list[str]:
        """The translation (or summary) of a text, or of each of several."""
        how = Searching(beam, length_penalty, prefix=prefix)
        found = [best.text for best, *_ in translate(self.run, several(text), how)]
        return found[0] if isinstance(text, str) else found

    def nbest(self, text: str, how: Searching) -> list[Written]:
        """Several translations of a text with their scores, best first."""
        return translate(self.run, [text], how)[0]

    @overload
    def generate(
        self, prompt: str = "", tokens: int = 200, choice: Choice | None = None, seed: int | None = None
    ) -> str: ...

    @overload
    def generate(
        self, prompt: list[str], tokens: int = 200, choice: Choice | None = None, seed: int | None = None
    ) -> list[str]: ...

    def generate(
        self,
        prompt: str | list[str] = "",
        tokens: int = 200,
        choice: Choice | None = None,
        seed: int | None = None,
    ) -> str | list[str]:
        """How a text goes on, or each of several: drawn by a choice, greedily without one."""
        found = generate(self.run, several(prompt), tokens, choice, seed)
        return found[0] if isinstance(prompt, str) else found

    def stream(
        self, prompt: str = "", tokens: int = 200, choice: Choice | None = None, seed: int | None = None
    ) -> Iterator[str]:
        """How a text goes on, piece by piece, as it is written."""
        return generate_stream(self.run, prompt, tokens, choice, seed)

    def chat(
        self,
        messages: str | Sequence[Mapping[str, Any]],
        tokens: int = 256,
        choice: Choice | None = None,
        seed: int | None = None,
    ) -> Answer:
        """The assistant's next words, to iterate over as they are written, and how many messages were `forgotten`.

        A message is `{"role": ..., "content": ...}`, with a role of system, user or assistant.
        """
        said = [{"role": "user", "content": messages}] if isinstance(messages, str) else messages
        dialogue = Dialogue(tuple(Message(cast(Role, each["role"]), each["content"]) for each in said))
        return answer(self.run, dialogue, tokens, choice, seed)

    @overload
    def classify(self, text: str) -> Classified: ...

    @overload
    def classify(self, text: list[str]) -> list[Classified]: ...

    def classify(self, text: str | list[str]) -> Classified | list[Classified]:
        """The class of a text with all probabilities, or of each of several."""
        found = classify(self.run, several(text))
        return found[0] if isinstance(text, str) else found

    def embed(self, text: str | list[str]) -> Tensor:
        """The vector of a text (D), or of each of several (B, D); the dot product of two is their similarity."""
        found = embed(self.run, several(text))
        return found[0] if isinstance(text, str) else found

    def evaluate(self, split: str = "test", limit: int = 0, beam: int = 4) -> Results:
        """The scores of the run on a split of its corpus."""
        from clearhead.evaluate.scores import evaluate

        return evaluate(self.run, split, limit, beam, quiet=True)

    def trace(self, text: str, target: str | None = None, **options: Any) -> Trace:
        """Every named intermediate of a text's way through the model; see `clearhead.glass.trace`."""
        from clearhead.glass.trace import trace

        return trace(self.run, text, target, **options)

    def patch(self, changes: Mapping[str, Any]) -> AbstractContextManager[Any]:
        """Inside `with`, the model computes with these changes; see `clearhead.glass.patch`."""
        from clearhead.glass.patch import patch

        return patch(self.run, changes)


def several(text: str | list[str]) -> list[str]:
    """One text as a list of one."""
    return [text] if isinstance(text, str) else text
