"""The pictures of docs/explore.md, from a real run of the phrasebook recipe with snapshots.

clearhead train phrasebook train.snapshots=16
python docs/screenshots.py runs/phrasebook
"""

from __future__ import annotations

import shutil
import sys
import threading
from io import BytesIO
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlencode

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from clearhead.inspect.web.explorer import Explorer
from clearhead.inspect.web.server import Server

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
PICTURES = Path(__file__).parent / "pictures"
TEXT = "yesterday, these musicians waited for the plane at the airport"
SHORT = "the red car is fast"
TARGET = "hier, ces musiciens ont attendu l'avion à l'aéroport"  # the same words before and after, up to "l'"
CROSS = {"stack": "decoder", "part": "cross_attention"}
OFF = '{"decoder.blocks.1.cross_attention":[{"kind":"scale","value":0,"at":{}}]}'
SHOTS: dict[str, dict[str, Any]] = {  # name -> the state of the page
    "overview": {"view": "overview", "text": SHORT},
    "attention": {"view": "attention", "text": SHORT, **CROSS, "layer": 1, "token": 1},
    "cell": {"view": "attention", **CROSS, "layer": 1, "head": 1, "token": 4},
    "alignment": {"view": "alignment", **CROSS, "layer": 1},
    "heads-dark": {"view": "heads", "text": SHORT},
    "before-after": {"view": "next", "changes": OFF, "beside": "before", "target": TARGET, "token": 8},
    "learning": {"view": "attention", **CROSS, "layer": 1, "head": 1, "snapshot": "STEP"},
    "tour": {"view": "overview", "text": SHORT},
}
READY = "#stage[data-drawn]:not([aria-busy]):not(:has([aria-busy])) h1"
PHONE = {
    "phone-overview": SHOTS["overview"],
    "phone-attention": SHOTS["cell"],
    "phone-decoding": {"view": "decoding", "shown": 6},
}


def chosen(shots: dict[str, dict[str, Any]], names: tuple[str, ...]) -> list[tuple[str, dict[str, Any]]]:
    """The pictures of these names; all if no name is given."""
    return [(name, state) for name, state in shots.items() if not names or name in names]


def shoot(page: Page, server: Server, name: str, state: dict[str, Any]) -> None:
    """Open a state, wait until all of it is there, and take the picture."""
    page.goto(f"{server.address}#{urlencode({'text': TEXT, **state})}")
    page.reload()
    page.wait_for_selector(READY)
    if name == "heads-dark":
        page.wait_for_selector(".layer:last-of-type .whole:not(:empty)")
    if name == "learning":
        page.wait_for_selector("#learn .milestone")
    if name == "tour":
        take_tour(page)
    if name == "cell":
        page.focus(".chosen-stage canvas")
        for key in ["ArrowDown"] * 5 + ["ArrowRight"] * 4:
            page.keyboard.press(key)
        page.wait_for_selector("#value")
    page.wait_for_timeout(4500 if state["view"] == "attention" else 500)  # there the steps of a row appear one by one
    picture = Image.open(BytesIO(page.screenshot())).convert("RGB")
    picture.quantize(256).save(PICTURES / f"{name}.png", optimize=True)  # a third of the size


def take_tour(page: Page) -> None:
    """Go to the stop about queries and keys, and answer its question."""
    page.keyboard.press("t")
    for number in range(1, 5):
        page.wait_for_selector(f"#tour small:text('{number} of')")
        page.wait_for_selector(".shown-by-tour")
        page.click("#tour .strong")
    page.locator("#tour .question button").nth(2).click()
    page.wait_for_selector("#tour .answer")
    page.wait_for_timeout(4000)  # until the steps of a row have appeared


def main(run: str, *names: str) -> None:
    """All pictures of one run, or only some of them."""
    PICTURES.mkdir(exist_ok=True)
    server = Server(Explorer([run]))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    known: Any = server.explorer.run()
    steps = known["runs"][0]["snapshots"]
    SHOTS["learning"]["snapshot"] = str(steps[len(steps) * 5 // 8])
    with sync_playwright() as playwright:
        path = shutil.which("chromium") or playwright.chromium.executable_path
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        for name, state in chosen(SHOTS, names):
            scheme: Literal["dark", "light"] = "dark" if name.endswith("dark") else "light"
            window = browser.new_context(viewport={"width": 1360, "height": 850}, color_scheme=scheme)
            shoot(window.new_page(), server, name, state)
        for name, state in chosen(PHONE, names):
            window = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True)
            shoot(window.new_page(), server, name, state)
        browser.close()
    server.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
