"""Conversations: what is learned is what the assistant says, and nothing that is typed becomes a mark."""

from __future__ import annotations

import pytest

from clearhead.config import TokenizerConfig, UserError
from clearhead.terminal.colour import show_dialogue
from clearhead.text.chat import Rendered, render, render_prompt
from clearhead.text.dialogue import Dialogue, Message
from clearhead.text.tokenizer import Tokenizer, train_tokenizer
from properties import given, st

TOKENIZER = train_tokenizer(TokenizerConfig(vocab=300), ["What is 2 + 2? It is 4. Thank you. You are welcome."] * 3)
MARKS = ("<user>", "<assistant>", "<end>", "<pad>", "<system>")

contents = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30),
    st.lists(st.sampled_from([*MARKS, "\n", " ", "hi"]), min_size=1, max_size=5).map("".join),
).filter(lambda text: bool(text.strip()))


@st.composite
def dialogues(draw: st.DrawFn) -> Dialogue:
    system = [Message("system", draw(contents))] if draw(st.booleans()) else []
    turns = draw(st.lists(st.tuples(contents, contents), min_size=1, max_size=3))
    said = [[Message("user", question), Message("assistant", answer)] for question, answer in turns]
    return Dialogue((*system, *(message for turn in said for message in turn)))


def talk(*messages: tuple[str, str]) -> Dialogue:
    return Dialogue(tuple(Message(role, content) for role, content in messages))


def answers(rendered: Rendered, tokenizer: Tokenizer) -> list[str]:
    """What is learned, cut at the learned ends."""
    learned = [number for number, learn in zip(rendered.ids, rendered.learn, strict=True) if learn]
    said: list[list[int]] = [[]]
    for number in learned:
        if number == tokenizer.end:
            said.append([])
        else:
            said[-1].append(number)
    assert said.pop() == []  # the last thing learned is to stop
    return [tokenizer.decode(ids) for ids in said]


def test_the_format_token_by_token() -> None:
    encode = TOKENIZER.encode
    rendered = render(talk(("system", "Be"), ("user", "2?"), ("assistant", "It is 4.")), TOKENIZER)
    end = TOKENIZER.end
    asked = [TOKENIZER.system, *encode("Be"), end, TOKENIZER.user, *encode("2?"), end, TOKENIZER.assistant]
    answer = [*encode("It is 4."), end]
    assert rendered.ids == asked + answer
    assert rendered.learn == [False] * len(asked) + [True] * len(answer)


@given(dialogues())
def test_the_assistants_words_and_nothing_else_are_learned(dialogue: Dialogue) -> None:
    rendered = render(dialogue, TOKENIZER)
    assert len(rendered.ids) == len(rendered.learn)
    said = [message.content for message in dialogue.messages if message.role == "assistant"]
    assert answers(rendered, TOKENIZER) == said


@given(dialogues())
def test_marks_are_those_of_the_messages_whatever_they_say(dialogue: Dialogue) -> None:
    ids = render(dialogue, TOKENIZER).ids
    marks = [number for number in ids if number <= TOKENIZER.assistant]
    expected = [[TOKENIZER.special(message.role), TOKENIZER.end] for message in dialogue.messages]
    assert marks == [mark for pair in expected for mark in pair]


@given(dialogues())
def test_a_prompt_is_what_comes_before_the_last_answer(dialogue: Dialogue) -> None:
    rendered = render(dialogue, TOKENIZER)
    ids = render_prompt(Dialogue(dialogue.messages[:-1]), TOKENIZER)
    assert ids[-1] == TOKENIZER.assistant
    assert rendered.ids[: len(ids)] == ids
    assert all(rendered.learn[len(ids) :])
    assert not rendered.learn[len(ids) - 1]


BAD = [
    ([], "conversation is empty"),
    (
        [("user", "hi"), ("user", "there"), ("assistant", "yes")],
        r"message 2 \('there'\) is from the user, but it is the assistant's turn",
    ),
    ([("user", "hi"), ("assistant", "a"), ("assistant", "b")], "message 3 .*it is the user's turn"),
    ([("assistant", "hello")], "message 1 .*it is the user's turn"),
    ([("user", "hi"), ("system", "late"), ("assistant", "a")], "message 2 .*from the system"),
    ([("system", "a"), ("system", "b"), ("user", "c"), ("assistant", "d")], "message 2 .*from the system"),
    ([("user", "hi"), ("asistant", "a")], "unknown role 'asistant'; did you mean 'assistant'"),
    ([("user", " \n"), ("assistant", "a")], "message 1 .* from the user is empty"),
    ([("user", "hi"), ("assistant", "")], "message 2 .* from the assistant is empty"),
]


@pytest.mark.parametrize(("messages", "problem"), BAD)
def test_what_is_no_conversation_is_refused(messages: list[tuple[str, str]], problem: str) -> None:
    with pytest.raises(UserError, match=problem):
        render(talk(*messages), TOKENIZER)
    with pytest.raises(UserError, match=problem):
        render_prompt(talk(*messages), TOKENIZER)


def test_who_must_have_the_last_word() -> None:
    asked, answered = [("user", "hi")], [("user", "hi"), ("assistant", "hello")]
    with pytest.raises(UserError, match=r"ends with the user \('hi'\)"):
        render(talk(*asked), TOKENIZER)
    with pytest.raises(UserError, match="ends with the system"):
        render(talk(("system", "hi")), TOKENIZER)
    with pytest.raises(UserError, match=r"not the assistant's turn.*'hello'"):
        render_prompt(talk(*answered), TOKENIZER)


def test_shown_with_and_without_colour() -> None:
    dialogue = talk(
        ("user", "2 + 2?"), ("assistant", "北 4.\nYes"), ("user", "Tha\x1b[0m"), ("assistant", "<user> You")
    )
    shown = show_dialogue(render(dialogue, TOKENIZER), TOKENIZER)
    assert shown.plain.split("\n") == [
        "<user>2 + 2?<end>",
        "<assistant>⟦北 4.⏎",
        "Yes<end>⟧",
        r"<user>Tha\x1b[0m<end>",
        "<assistant>⟦<user> You<end>⟧",
    ]
    green = [shown.plain[span.start : span.end] for span in shown.spans if "green" in str(span.style)]
    assert green == ["⟦北 4.⏎\nYes<end>⟧", "⟦<user> You<end>⟧"]


def test_an_unfinished_conversation_can_be_shown() -> None:
    ids = render_prompt(talk(("user", "2 + 2?")), TOKENIZER)
    assert show_dialogue(Rendered(ids, [False] * len(ids)), TOKENIZER).plain == "<user>2 + 2?<end>\n<assistant>"
