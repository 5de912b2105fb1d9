"""`clearhead chat`: a conversation with a run in the terminal, or through a pipe: one line in, one answer out."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Callable, Generator, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from cyclopts import Parameter

from clearhead.config import UserError, require, suggest
from clearhead.decode.defaults import ANSWER_TOKENS
from clearhead.files import is_there, write_file
from clearhead.terminal.pipes import note, on_one_line, read_texts, write_text
from clearhead.text.dialogue import Dialogue, Message
from clearhead.verbs.options import LoadOptions, RunFolder, SamplingOptions, Temperature, TopP, warn_about

if TYPE_CHECKING:
    from clearhead.decode.sampling import SamplingSettings
    from clearhead.runs import Run

HELP = """Write a message and press Enter. Ctrl-C stops an answer, Ctrl-D ends the chat.
/reset          start a new conversation
/system TEXT    start a new conversation with a system message; without TEXT, with none
/save FILE      write the conversation as a JSON list of messages; a file that exists is kept
/help           show this
/quit           end the chat"""


@Parameter(name="*")
@dataclass(frozen=True)
class AnswerSamplingOptions(SamplingOptions):
    """How the next token of an answer is chosen."""

    temperature: Temperature = 0.7
    top_p: TopP = 0.9


def chat(
    run: RunFolder,
    *,
    system: str = "",
    tokens: int = ANSWER_TOKENS,
    sampling: AnswerSamplingOptions = AnswerSamplingOptions(),
    load: LoadOptions = LoadOptions(),
) -> None:
    """Chat with a run that was trained on conversations; type /help for what else you can do.

    Parameters
    ----------
    system
        A system message that begins the conversation.
    tokens
        Generate at most this many tokens per answer.

    """
    choice = sampling.choice()
    conversation = Conversation(load.open(run, "chat"), tokens, choice, sampling.seed, system)
    interactive = sys.stdin.isatty()
    if interactive:
        recipe = conversation.run.recipe
        note(f"{recipe.about or recipe.name}\n{HELP}\n")
    for line in typed_lines() if interactive else itertools.chain.from_iterable(read_texts()):
        if line.startswith("/"):
            if run_command(conversation, line):
                return
        elif line.strip():
            reply(conversation, line)


@dataclass
class Conversation:
    """The messages so far, and how the answers are generated."""

    run: Run
    tokens: int
    choice: SamplingSettings | None
    seed: int | None
    system: str = ""
    turns: list[Message] = field(default_factory=list)
    file: Path | None = None  # where it was saved last

    def messages(self) -> tuple[Message, ...]:
        """Return all messages, the system message first."""
        return (*([Message("system", self.system)] if self.system else []), *self.turns)

    def ask(self, question: str) -> Generator[str, None, None]:
        """Yield the answer as it is generated; an answer that is interrupted stays in the conversation as it is."""
        from clearhead.decode.chat import answer

        asked = Message("user", question)
        reply = answer(self.run, Dialogue((*self.messages(), asked)), self.tokens, self.choice, self.seed)
        if reply.forgotten:
            note(f"(the conversation is too long: the first {reply.forgotten} messages are left out)")
        written = ""
        try:
            for part in reply.text:
                written += part
                yield part
        finally:
            if written.strip():
                self.turns += [asked, Message("assistant", written)]


def typed_lines() -> Iterator[str]:
    """Yield the lines that the user types; Ctrl-C discards a line, Ctrl-D ends."""
    import readline  # noqa: F401 - makes lines editable, with a history on the arrow keys

    while True:
        try:
            yield input("> ")
        except EOFError:
            note("")
            return
        except KeyboardInterrupt:
            note("")


def reply(conversation: Conversation, question: str) -> None:
    """Write an answer as it is generated; in a terminal, Ctrl-C stops the answer but not the conversation."""
    warn_about(conversation.run, question)
    parts = conversation.ask(question)
    try:
        for part in parts:
            write_text(part if sys.stdin.isatty() else on_one_line(part))
    except KeyboardInterrupt:
        if not sys.stdin.isatty():
            raise
    except UserError as error:
        note(f"clearhead: {error}")
    finally:
        parts.close()
        write_text("\n")


def run_command(conversation: Conversation, line: str) -> bool:
    """Run a line that begins with a slash; return whether it ends the chat."""
    name, _, rest = line[1:].partition(" ")
    commands: dict[str, Callable[[str], None]] = {
        "reset": lambda _: begin_again(conversation, conversation.system),
        "system": lambda text: begin_again(conversation, text.strip()),
        "save": lambda file: save(conversation, file.strip()),
        "help": lambda _: note(HELP),
        "quit": lambda _: None,
    }
    if name in commands:
        commands[name](rest)
    else:
        note(f"/{name}: no such command; {suggest(name, list(commands))}")
    return name == "quit"


def begin_again(conversation: Conversation, system: str) -> None:
    """Start a new conversation with this system message."""
    conversation.turns = []
    conversation.system = system
    conversation.file = None
    note("(a new conversation)")


def save(conversation: Conversation, file: str) -> None:
    """Write the conversation as JSON: into a new file, or again into the file that it was saved in."""
    messages = [asdict(message) for message in conversation.messages()]
    path = Path(file).expanduser()
    try:
        require(bool(file), "/save FILE: give the name of a file")
        require(path == conversation.file or not is_there(path), f"{path} exists already; give another name")
        write_file(path, json.dumps(messages, ensure_ascii=False, indent=1) + "\n")
        conversation.file = path
        note(f"({len(messages)} messages in {path})")
    except (UserError, PermissionError) as error:
        note(str(error))
