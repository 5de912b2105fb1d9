"""A trained run in Python: `clearhead.load("runs/phrasebook")` has a method for each verb of the command line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from torch import Tensor

from clearhead.bundled import TRANSLATOR
from clearhead.config import Weights
from clearhead.decode.chat import Answer, answer
from clearhead.decode.defaults import ANSWER_TOKENS, BEAM, LENGTH_PENALTY, TOKENS
from clearhead.decode.embed import Classified, classify, embed
from clearhead.decode.generate import generate, generate_stream
from clearhead.decode.sampling import SamplingSettings
from clearhead.decode.translate import SearchSettings, Translation, translate
from clearhead.device import choose_device
from clearhead.fast.choose import store_matrices
from clearhead.model import Model
from clearhead.runs import Run, open_run
from clearhead.text.chat import message_from
from clearhead.text.dialogue import Dialogue

if TYPE_CHECKING:
    from clearhead.evaluate.results import Results
    from clearhead.inspect.trace import Trace


def load(folder: str | Path = TRANSLATOR, device: str = "cpu", weights: Weights = "auto") -> Loaded:
    """Open a run for use: a run folder, or the name of a run that comes with clearhead (by default the translator).

    Matrices can be stored in fewer bits: smaller, faster, slightly less exact. By default they are float32 on a CPU,
    and bfloat16 while text is generated on a GPU.
    """
    run = open_run(folder, str(choose_device(device, "device =")))
    store_matrices(run.model, weights)
    return Loaded(run)


class Loaded:
    """A trained run; a method that does not fit its task raises an error that names one that does."""

    def __init__(self, run: Run) -> None:
        self.run = run

    def __repr__(self) -> str:
        size = sum(p.numel() for p in self.model.parameters())
        return f"Loaded({str(self.run.folder)!r}, {self.run.recipe.data.task}, {size:,} parameters)"

    @property
    def model(self) -> Model:
        """The model, a torch module."""
        return self.run.model

    @overload
    def translate(
        self, text: str, beam: int = BEAM, length_penalty: float = LENGTH_PENALTY, prefix: str = ""
    ) -> str: ...

    @overload
    def translate(
        self, text: list[str], beam: int = BEAM, length_penalty: float = LENGTH_PENALTY, prefix: str = ""
    ) -> list[str]: ...

    def translate(
        self, text: str | list[str], beam: int = BEAM, length_penalty: float = LENGTH_PENALTY, prefix: str = ""
    ) -> str | list[str]:
        """Return the translation (or summary) of a text, or of each text of a list."""
        self.run.require_verb("translate")
        how = SearchSettings(beam, length_penalty, prefix=prefix)
        found = [best.text for best, *_ in translate(self.run, as_list(text), how)]
        return found[0] if isinstance(text, str) else found

    def nbest(self, text: str, how: SearchSettings) -> list[Translation]:
        """Return several translations of a text with their scores, best first."""
        self.run.require_verb("translate")
        return translate(self.run, [text], how)[0]

    @overload
    def generate(
        self, prompt: str = "", tokens: int = TOKENS, choice: SamplingSettings | None = None, seed: int | None = None
    ) -> str: ...

    @overload
    def generate(
        self, prompt: list[str], tokens: int = TOKENS, choice: SamplingSettings | None = None, seed: int | None = None
    ) -> list[str]: ...

    def generate(
        self,
        prompt: str | list[str] = "",
        tokens: int = TOKENS,
        choice: SamplingSettings | None = None,
        seed: int | None = None,
    ) -> str | list[str]:
        """Return the continuation of a prompt, or of each of a list: sampled as `choice` says, or greedily."""
        self.run.require_verb("generate")
        found = generate(self.run, as_list(prompt), tokens, choice, seed)
        return found[0] if isinstance(prompt, str) else found

    def stream(
        self, prompt: str = "", tokens: int = TOKENS, choice: SamplingSettings | None = None, seed: int | None = None
    ) -> Iterator[str]:
        """Yield the continuation of a prompt in parts, as it is generated."""
        self.run.require_verb("generate")
        return generate_stream(self.run, prompt, tokens, choice, seed)

    def chat(
        self,
        messages: str | Sequence[Mapping[str, Any]],
        tokens: int = ANSWER_TOKENS,
        choice: SamplingSettings | None = None,
        seed: int | None = None,
    ) -> Answer:
        """Return the assistant's next message, to iterate over as it is generated.

        A message is `{"role": ..., "content": ...}`, with a role of system, user or assistant. `forgotten` of the
        answer is the number of oldest messages that did not fit into the model's context.
        """
        self.run.require_verb("chat")
        said = [{"role": "user", "content": messages}] if isinstance(messages, str) else messages
        return answer(self.run, Dialogue(tuple(map(message_from, said))), tokens, choice, seed)

    @overload
    def classify(self, text: str) -> Classified: ...

    @overload
    def classify(self, text: list[str]) -> list[Classified]: ...

    def classify(self, text: str | list[str]) -> Classified | list[Classified]:
        """Return the class of a text with all probabilities, or of each text of a list."""
        self.run.require_verb("classify")
        found = classify(self.run, as_list(text))
        return found[0] if isinstance(text, str) else found

    def embed(self, text: str | list[str]) -> Tensor:
        """Return the vector (D) of a text, or (B, D) of a list; the dot product of two vectors is their similarity."""
        self.run.require_verb("embed")
        found = embed(self.run, as_list(text))
        return found[0] if isinstance(text, str) else found

    def evaluate(self, split: str = "test", limit: int = 0, beam: int = BEAM) -> Results:
        """Return the scores of the run on a split of its corpus."""
        from clearhead.evaluate.scores import evaluate

        return evaluate(self.run, split, limit, beam, quiet=True)

    def trace(self, text: str, target: str | None = None, **options: Any) -> Trace:
        """Return every named intermediate tensor of a forward pass; see `clearhead.inspect.trace`."""
        from clearhead.inspect.trace import trace

        return trace(self.run, text, target, **options)

    def patch(self, changes: Mapping[str, Any]) -> AbstractContextManager[Any]:
        """Return a context in which the model computes with these changes; see `clearhead.inspect.patch`."""
        from clearhead.inspect.patch import patch

        return patch(self.run, changes)


def as_list(text: str | list[str]) -> list[str]:
    """Return a single text as a list."""
    return [text] if isinstance(text, str) else text
