"""Control a headless Chromium through its debugging pipe, with page loads, clicks and keys."""

from __future__ import annotations

import itertools
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

PROGRAM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-background-networking --disable-sync "
    "--disable-component-update --no-first-run --disable-dev-shm-usage --hide-scrollbars "
    "--window-size=1300,1000 --remote-debugging-pipe"
)
NO_NETWORK = "--host-resolver-rules=MAP * ~NOTFOUND"
HANG_S = 120.0
KEYS = {" ": ("Space", 32, " "), "Tab": ("Tab", 9, ""), "ArrowDown": ("ArrowDown", 40, "")}


class Browser:
    """A page of a browser without a network. `said` contains the errors from its console."""

    def __init__(self, profile: Path) -> None:
        assert PROGRAM is not None
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()
        # The browser reads descriptor 3 and writes descriptor 4.
        opened = f'exec "$@" 3<&{to_read} 4>&{to_write}'
        command = [PROGRAM, *FLAGS.split(), NO_NETWORK, f"--user-data-dir={profile}"]
        self._process = subprocess.Popen(
            ["bash", "-c", opened, "bash", *command, "about:blank"],
            pass_fds=(to_read, to_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)
        self._numbers = itertools.count(1)
        self._held = b""
        self._session: str | None = None
        self.said: list[str] = []
        self.asked: list[str] = []
        pages = self.call("Target.getTargets")["targetInfos"]
        page = next(each for each in pages if each["type"] == "page")
        attach = {"targetId": page["targetId"], "flatten": True}
        self._session = self.call("Target.attachToTarget", attach)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self) -> None:
        """End the browser and all its processes."""
        os.close(self._write)
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._read)

    def call(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Call a method of the DevTools protocol and return its result."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": params or {}}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == number:
                assert "error" not in answer, (method, answer["error"])
                return dict(answer["result"])
            self._note(answer)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._held:
            ready, _, _ = select.select([self._read], [], [], HANG_S)
            assert ready, "the browser hangs"
            more = os.read(self._read, 1 << 20)
            assert more, "the browser ended"
            self._held += more
        line, self._held = self._held.split(b"\0", 1)
        return dict(json.loads(line))

    def _note(self, event: dict[str, Any]) -> None:
        params = event.get("params", {})
        if event.get("method") == "Runtime.exceptionThrown":
            self.said.append(json.dumps(params["exceptionDetails"]))
        elif event.get("method") == "Runtime.consoleAPICalled" and params["type"] == "error":
            self.said.append(json.dumps(params["args"]))
        elif event.get("method") == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.said.append(params["entry"]["text"])
        elif event.get("method") == "Network.requestWillBeSent":
            self.asked.append(params["request"]["url"])

    def open(self, page: Path) -> None:
        """Reload a file and wait until it is loaded."""
        self.call("Page.navigate", {"url": "about:blank"})
        self.until("location.protocol === 'about:'")
        self.call("Page.navigate", {"url": page.as_uri()})
        self.until("document.readyState === 'complete' && location.protocol === 'file:'")

    def value(self, expression: str) -> Any:
        """Evaluate an expression on the page and return its value."""
        found = self.call("Runtime.evaluate", {"expression": expression, "returnByValue": True})
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def until(self, expression: str) -> None:
        """Wait until an expression on the page is true."""
        end_s = time.monotonic() + HANG_S
        while not self.value(expression):
            assert time.monotonic() < end_s, f"never true: {expression}"
            time.sleep(0.05)

    def click(self, element: str) -> None:
        """Click the element `document.querySelector(element)` with the mouse."""
        place = self.value(
            f"(() => {{ const it = document.querySelector({json.dumps(element)});"
            "it.scrollIntoView({ block: 'center', behavior: 'instant' });"
            "const box = it.getBoundingClientRect();"
            "return [box.x + box.width / 2, box.y + box.height / 2]; })()"
        )
        at = {"x": place[0], "y": place[1], "button": "left", "clickCount": 1}
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", {"type": kind, **at})

    def press(self, *keys: str) -> None:
        """Press keys in sequence on the focused element."""
        for key in keys:
            self._press(key)

    def _press(self, key: str) -> None:
        code, number, text = KEYS[key]
        base = {"key": key, "code": code, "windowsVirtualKeyCode": number}
        typed = {"type": "keyDown", "text": text} if text else {"type": "rawKeyDown"}
        self.call("Input.dispatchKeyEvent", {**base, **typed})
        self.call("Input.dispatchKeyEvent", {**base, "type": "keyUp"})

    def pick(self, element: str, value: str) -> None:
        """Select an option of a list, with the events of a selection by a user."""
        self.value(
            f"(() => {{ const it = document.querySelector({json.dumps(element)});"
            f"it.value = {json.dumps(value)};"
            "it.dispatchEvent(new Event('change', { bubbles: true })); })()"
        )

    def words(self, element: str) -> str:
        """Return the text of an element."""
        return str(self.value(f"document.querySelector({json.dumps(element)}).textContent")).strip()

    def all_words(self, elements: str) -> Sequence[str]:
        """Return the texts of all visible elements that match a selector."""
        return list(
            self.value(
                f"[...document.querySelectorAll({json.dumps(elements)})]"
                ".filter((it) => it.getClientRects().length).map((it) => it.textContent.trim())"
            )
        )
