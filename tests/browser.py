"""A real browser for tests: chromium, headless, over a pipe.

The DevTools protocol over ``--remote-debugging-pipe`` is JSON ended by a NUL, in on descriptor 3
and out on 4: no port is opened and nothing is installed for it. The profile is a folder that goes
away with the browser.
"""

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from kubescene.clock import SECOND, WallClock

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
PATIENCE_S = 120.0
BEGIN = (
    "import os, sys\n"
    "os.dup2(int(sys.argv[1]), 3)\n"
    "os.dup2(int(sys.argv[2]), 4)\n"
    "os.execv(sys.argv[3], sys.argv[3:])"
)
MIDDLE = """async (selector) => {
  const place = (e) => {
    const b = e.getBoundingClientRect();
    return [b.x, b.y, b.width, b.height];
  };
  const e = document.querySelector(selector);
  if (!e || !e.checkVisibility()) return null;
  e.scrollIntoView({block: "center", behavior: "instant"});
  const before = place(e);
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  const after = place(e);
  if (!e.isConnected || String(before) !== String(after)) return null;
  const [x, y] = [after[0] + after[2] / 2, after[1] + after[3] / 2];
  const there = document.elementFromPoint(x, y);
  return there && (e.contains(there) || there.contains(e)) ? [x, y] : null;
}"""
FLAGS = (
    "--headless=new",
    "--remote-debugging-pipe",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--hide-scrollbars",
    "--no-default-browser-check",
    "--no-first-run",
)


def chromium() -> str | None:
    """The browser of this machine, if there is one."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """Started with a profile of its own; use it as a context manager."""

    def __init__(self, program: str) -> None:
        self._profile = tempfile.mkdtemp(prefix="kubescene-browser-")
        heard, self._in = os.pipe()
        self._out, said = os.pipe()
        flags = [*FLAGS, f"--user-data-dir={self._profile}"]
        if os.geteuid() == 0:
            flags.append("--no-sandbox")
        command = [sys.executable, "-c", BEGIN, str(heard), str(said), program, *flags]
        self._process = subprocess.Popen(
            [*command, "about:blank"],
            pass_fds=(heard, said),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(heard)
        os.close(said)
        self._number = 0
        self._rest = b""
        self._tab = ""
        self.events: list[dict[str, Any]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the browser; its end of the pipe ends it, also if it does not answer."""
        os.close(self._in)
        try:
            self._process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._out)
        shutil.rmtree(self._profile, ignore_errors=True)

    @property
    def process(self) -> int:
        """The browser's own, whose children draw."""
        return self._process.pid

    def call(self, method: str, session: str = "", **params: Any) -> dict[str, Any]:
        """One command and its answer; events that come meanwhile are kept."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self._in, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    def wait_for(self, method: str, session: str) -> None:
        """Until an event has come, now or before."""
        while not any(self._is(event, method, session) for event in self.events):
            self.events.append(self._read())

    @staticmethod
    def _is(event: dict[str, Any], method: str, session: str) -> bool:
        return event.get("method") == method and event.get("sessionId") == session

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._out], [], [], PATIENCE_S)
            if not ready:
                raise AssertionError("the browser does not answer")
            part = os.read(self._out, 1 << 20)
            if not part:
                raise AssertionError(
                    f"the browser has ended: code {self._process.wait(PATIENCE_S)}"
                )
            self._rest += part
        line, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        return message

    def open(self, url: str, *, dark: bool = False, width: int = 1280, height: int = 900) -> "Page":
        """A new tab that has loaded the page; the one before is closed, as tabs are large."""
        if self._tab:
            self.call("Target.closeTarget", targetId=self._tab)
        self._tab = str(self.call("Target.createTarget", url="about:blank")["targetId"])
        attached = self.call("Target.attachToTarget", targetId=self._tab, flatten=True)
        page = Page(self, attached["sessionId"])
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.call(f"{domain}.enable")
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        page.call("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        page.call("Emulation.setEmulatedMedia", features=[scheme])
        self.events.clear()
        page.call("Page.navigate", url=url)
        self.wait_for("Page.loadEventFired", page.session)
        return page


class Page:
    """One tab. What it printed, raised and asked the network for is kept from its beginning."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser = browser
        self.session = session

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        return self._browser.call(method, self.session, **params)

    def evaluate(self, expression: str) -> Any:
        """The value of an expression in the page, which may be a promise."""
        answer = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise AssertionError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def text(self, selector: str) -> str:
        found = self.evaluate(f"document.querySelector({json.dumps(selector)}).innerText")
        return str(found)

    def click(self, x: float, y: float) -> None:
        """Press and release the button at a point of the window."""
        point = {"x": x, "y": y, "button": "left", "clickCount": 1}
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        self.call("Input.dispatchMouseEvent", type="mousePressed", **point)
        self.call("Input.dispatchMouseEvent", type="mouseReleased", **point)

    def click_on(self, selector: str) -> None:
        self.click(*self.middle(selector))

    def middle(self, selector: str) -> tuple[float, float]:
        """The middle of an element, brought into view, once it is at rest and uncovered."""
        clock = WallClock()
        end = clock.now() + int(PATIENCE_S * SECOND)
        while clock.now() < end:
            found = self.evaluate(f"({MIDDLE})({json.dumps(selector)})")
            if found:
                return float(found[0]), float(found[1])
        shown = self.text("body")[:500]
        raise AssertionError(f"{selector} cannot be clicked on; the page shows {shown}")

    def press(self, key: str) -> None:
        """A key by its name; letters and Enter also as text."""
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        keys = {"key": key, "code": key, "windowsVirtualKeyCode": CODES.get(key, 0)}
        self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **keys)
        self.call("Input.dispatchKeyEvent", type="keyUp", **keys)

    def screenshot(self, path: Path, *, full: bool = False) -> None:
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=full)
        path.write_bytes(base64.b64decode(shot["data"]))

    @property
    def complaints(self) -> list[str]:
        """What was printed to the console, raised, or refused by the security policy."""
        self.evaluate("0")
        methods = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
        return [json.dumps(each["params"]) for each in self._events() if each["method"] in methods]

    @property
    def requests(self) -> list[str]:
        """The addresses that were asked for; those inside the page (data:) are no requests."""
        self.evaluate("0")
        asked = [each for each in self._events() if each["method"] == "Network.requestWillBeSent"]
        urls = [str(each["params"]["request"]["url"]) for each in asked]
        return [url for url in urls if not url.startswith("data:")]

    def _events(self) -> list[dict[str, Any]]:
        return [each for each in self._browser.events if each.get("sessionId") == self.session]


CODES = {"Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "End": 35, "Home": 36}
CODES |= {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
