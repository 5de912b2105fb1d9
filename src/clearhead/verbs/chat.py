"""A conversation with a run in the terminal, or through a pipe: a line in, an answer out."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Callable, Generator, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from clearhead.config import UserError, suggest
from clearhead.decode.generate import answer
from clearhead.decode.sampling import Choice
from clearhead.files import write_file
from clearhead.runs import Run
from clearhead.terminal.pipes import note, on_one_line, texts_from, write
from clearhead.text.dialogue import Dialogue, Message

HELP = """Write a message and press Enter. Ctrl-C stops an answer, Ctrl-D ends.
/reset          forget the conversation
/system TEXT    begin again with a system message; without TEXT, with none
/save FILE      write the conversation as a JSON list of messages
/help           this
/quit           end"""


@dataclass
class Conversation:
    """What was said so far, and how the answers are written."""

    run: Run
    tokens: int
    choice: Choice | None
    seed: int | None
    system: str = ""
    turns: list[Message] = field(default_factory=list)

    def messages(self) -> tuple[Message, ...]:
        """All messages, the system's first."""
        return (*([Message("system", self.system)] if self.system else []), *self.turns)

    def ask(self, question: str) -> Generator[str, None, None]:
        """The answer as it is written. What was written counts as said, even if somebody stops it in the middle."""
        asked = Message("user", question)
        reply = answer(self.run, Dialogue((*self.messages(), asked)), self.tokens, self.choice, self.seed)
        if reply.forgotten:
            note(f"(too long to remember: without the first {reply.forgotten} messages)")
        written = ""
        try:
            for piece in reply.text:
                written += piece
                yield piece
        finally:
            if written.strip():
                self.turns += [asked, Message("assistant", written)]


def chat(conversation: Conversation) -> None:
    """Talk until the input ends."""
    interactive = sys.stdin.isatty()
    if interactive:
        note(f"{conversation.run.recipe.about or conversation.run.recipe.name}\n{HELP}\n")
    for line in typed() if interactive else itertools.chain.from_iterable(texts_from()):
        if line.startswith("/"):
            if command(conversation, line):
                return
        elif line.strip():
            reply(conversation, line)


def typed() -> Iterator[str]:
    """What somebody types, a line at a time; Ctrl-C takes a line back, Ctrl-D ends."""
    import readline  # noqa: F401 - lines can be edited, and earlier ones come back with the arrow keys

    while True:
        try:
            yield input("> ")
        except EOFError:
            note("")
            return
        except KeyboardInterrupt:
            note("")


def reply(conversation: Conversation, question: str) -> None:
    """Write an answer as it comes; Ctrl-C stops it, and the conversation goes on."""
    pieces = conversation.ask(question)
    try:
        for piece in pieces:
            write((piece if sys.stdin.isatty() else on_one_line(piece)).encode())
    except KeyboardInterrupt:
        if not sys.stdin.isatty():
            raise
    except UserError as error:
        note(f"clearhead: {error}")
    finally:
        pieces.close()
        write(b"\n")


def command(conversation: Conversation, line: str) -> bool:
    """Do what a line that begins with a slash says; whether it says to end."""
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
    """Forget what was said."""
    conversation.turns, conversation.system = [], system
    note("(a new conversation)")


def save(conversation: Conversation, file: str) -> None:
    """Write the conversation down."""
    if not file:
        note("/save FILE: where to?")
        return
    messages = [asdict(message) for message in conversation.messages()]
    try:
        write_file(Path(file), json.dumps(messages, ensure_ascii=False, indent=1) + "\n")
        note(f"({len(messages)} messages in {file})")
    except UserError as error:
        note(str(error))
