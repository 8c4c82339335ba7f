"""What somebody does with a page, and what he waits for."""

import json
from typing import Any

from browser import Browser, Page
from kubescene.apiserver.server import Server
from kubescene.clock import WallClock

MOST_TABS = 200
HOSTILE = "<img src=x onerror=alert(1)>\u202e"


def until(page: Page, expression: str) -> Any:
    """The value of an expression, once it is true."""
    clock, value = WallClock(), None
    end = clock.now() + 60_000_000_000
    while clock.now() < end:
        value = page.evaluate(f"Promise.resolve({expression}).then(Boolean)")
        if value:
            return value
    raise AssertionError(f"{expression} stays {value!r}; the page shows {page.text('#page')[:500]}")


def shows(page: Page, text: str, selector: str = "#page") -> None:
    """Wait until an element says something; what is hidden says nothing."""
    until(
        page,
        f"(e => e?.checkVisibility() && e.innerText.includes({json.dumps(text)}))"
        f"(document.querySelector({json.dumps(selector)}))",
    )


def open_(browser: Browser, server: Server, path: str, **more: Any) -> Page:
    return browser.open(f"{server.url}{path}", **more)


def type_into(page: Page, selector: str, text: str) -> None:
    page.evaluate(
        f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
        f"e.value = {json.dumps(text)};"
        "e.dispatchEvent(new Event('input', {bubbles: true})); })()"
    )


def press_on(page: Page, selector: str) -> None:
    """Click it, wherever it is, once it is there."""
    until(page, f"document.querySelector({json.dumps(selector)}) !== null")
    page.evaluate(f"document.querySelector({json.dumps(selector)}).click()")


def tab_to(page: Page, selector: str) -> None:
    """Go there as somebody does who has no mouse; who cannot be reached so, cannot be used."""
    until(page, f"document.querySelector({json.dumps(selector)}) !== null")
    for _ in range(MOST_TABS):
        page.press("Tab")
        if page.evaluate(f"document.activeElement.matches({json.dumps(selector)})"):
            return
    raise AssertionError(f"{selector} is not reached in {MOST_TABS} tabs")


def write(page: Page, text: str) -> None:
    """In the place of all that the field says that has the focus."""
    keys = {"key": "a", "code": "KeyA", "modifiers": 2, "windowsVirtualKeyCode": 65}
    page.call("Input.dispatchKeyEvent", type="rawKeyDown", commands=["selectAll"], **keys)
    page.call("Input.dispatchKeyEvent", type="keyUp", **keys)
    page.call("Input.insertText", text=text)
