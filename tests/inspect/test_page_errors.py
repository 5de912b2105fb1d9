"""What is wrong is explained on the page: damaged addresses, hostile and empty texts, numbers that overflow."""

from __future__ import annotations

import json
from collections.abc import Callable
from urllib.parse import urlencode

import pytest

from browsing import Visit, texts


def test_a_damaged_address_opens_the_start(visit: Callable[..., Visit]) -> None:
    window = visit("translator")
    window.go(view="nonsense", layer="99", head="-x", changes="{", stack="middle", token="1e9")
    assert window.page.text_content("#stage h1") == "Overview"


def test_what_the_server_refuses_is_said(visit: Callable[..., Visit]) -> None:
    window = visit("translator")
    window.page.goto(f"{window.address}#{urlencode({'text': 'x' * 19_000})}")
    assert "at most 2,000 can be shown" in window.page.text_content("#stage .error")
    assert [text for text in window.wrong if "400" not in text] == []
    window.wrong.clear()  # the browser itself notes a refused request


def test_an_error_of_the_other_server_is_said_in_its_words(visit: Callable[..., Visit]) -> None:
    window = visit("translator")
    answer = {"error": {"message": "the request failed; the server's log has the error", "type": "server_error"}}
    window.page.route("**/api/trace?*", lambda route: route.fulfill(status=500, json=answer))
    window.page.goto(f"{window.address}#text=a")
    assert window.page.text_content("#stage .error") == answer["error"]["message"]
    window.page.unroute_all()
    assert [text for text in window.wrong if "500" not in text] == []
    window.wrong.clear()  # the browser itself notes a failed request


def test_a_text_that_is_too_long_for_an_address_is_not_sent(visit: Callable[..., Visit]) -> None:
    window = visit("translator")
    window.page.goto(f"{window.address}#{urlencode({'text': '語' * 7300})}")  # nine characters of an address each
    assert window.page.text_content("#stage .error") == "The text is too long to be sent; shorten it."


def test_hostile_text_is_shown_as_text(visit: Callable[..., Visit]) -> None:
    hostile = "<img src=x onerror=alert(1)><script>alert(2)</script>\"'&lt;"
    window = visit("translator")
    for view in ("overview", "tokenization", "attention", "alignment", "lens"):
        window.go(view=view, text=hostile, target=hostile)
        assert window.page.locator("img, #stage script, #strips script").count() == 0
    assert window.page.input_value("#sentence input") == hostile
    assert "".join(window.page.locator("#strips .source").all_text_contents()).startswith("<img·src=x")


@pytest.mark.parametrize(
    "damage",
    [
        {"changes": '{"x":5}'},
        {"changes": '{"x":[5]}', "view": "heads"},
        {"changes": '{"encoder.sum":[{"kind":"scale","value":1,"at":{"token":3}}]}', "view": "next"},
        {"view": "attention", "stage": "nonsense", "part": "nonsense", "lines": "nonsense"},
        {"view": "constructor", "beside": "nonsense", "snapshot": "", "width": "-3"},
        {"view": "next", "temperature": "x", "top_p": "x", "token": "-7"},
    ],
)
def test_damaged_addresses_open(damage: dict[str, str], visit: Callable[..., Visit]) -> None:
    window = visit("translator")
    window.go(**damage)
    assert window.page.locator("#strips .token").count() > 3


def test_an_error_is_not_shown_with_the_tokens_of_another_text(visit: Callable[..., Visit]) -> None:
    window = visit("translator")
    window.go(view="attention")
    window.page.fill("#sentence input", "x" * 19_000)
    window.page.keyboard.press("Enter")
    window.page.wait_for_selector("#stage .error")
    assert window.page.locator("#strips .token").count() == 0
    assert window.page.input_value("#sentence input") == "x" * 19_000
    assert not texts(window, "#inspector .card")
    window.wrong.clear()  # the browser itself notes a refused request


def test_numbers_that_overflow_are_explained(visit: Callable[..., Visit]) -> None:
    window = visit("translator")
    name = "encoder.blocks.0.feed_forward"
    for view in ("attention", "next", "addnorm", "lens", "beam"):  # very large, but not too large
        window.go(view=view, stack="encoder", changes=json.dumps({name: [{"kind": "scale", "value": 1e15, "at": {}}]}))
    change = json.dumps({name: [{"kind": "scale", "value": 1e30, "at": {}}]})
    window.page.goto(f"{window.address}#{urlencode({'changes': change})}")
    assert "choose a smaller factor" in window.page.text_content("#stage .error")
    assert window.page.is_visible("#changes >> text=Undo all")
    window.page.click("#changes >> text=Undo all")
    window.drawn()
    assert [text for text in window.wrong if "400" not in text] == []
    window.wrong.clear()


def test_an_empty_text_is_not_read_and_the_skip_link_keeps_the_state(visit: Callable[..., Visit]) -> None:
    window = visit("translator")
    window.go(view="attention", stack="encoder")
    before = window.page.url
    for empty in ("", "   "):
        window.page.fill("#sentence input", empty)
        window.page.keyboard.press("Enter")
        assert window.page.locator("#sentence input:invalid").count() == 1
    window.page.focus("#skip")
    window.page.keyboard.press("Enter")
    assert window.page.evaluate("document.activeElement.id") == "stage"
    assert window.page.url == before
