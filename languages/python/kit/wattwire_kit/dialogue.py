"""The dialogue with the harness: lines on descriptor 3 and standard input (C-05, C-08, C-09)."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Mapping
from typing import Any, NoReturn

LINES = 3  # the descriptor of a node's lines


class Dialogue:
    """The dialogue; `start_ns` and `stop_ns` are None until GO and STOP arrive."""

    def __init__(self) -> None:
        os.set_inheritable(LINES, False)
        self._lock = threading.Lock()
        self.start_ns: int | None = None
        self.stop_ns: int | None = None
        self.go_or_stop = threading.Event()
        self.stop = threading.Event()

    def line(self, keyword: str, fields: Mapping[str, Any]) -> None:
        with self._lock:
            os.write(LINES, f"{keyword} {json.dumps(fields)}\n".encode())

    def fail(self, code: int, key: str | None, reason: str) -> NoReturn:
        """Print ERROR and end the process at once, even if the middleware is blocked."""
        self.line("ERROR", {"code": code, "key": key, "reason": reason})
        os._exit(code)

    def listen(self) -> None:
        threading.Thread(target=self._read, name="wattwire-stdin", daemon=True).start()

    def _read(self) -> None:
        rest = b""
        while True:
            chunk = os.read(0, 4096)
            if not chunk:
                os._exit(5)
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                self._obey(line.decode("utf-8", "replace").split())

    def _obey(self, words: list[str]) -> None:
        if words == ["STOP"]:
            self.stop_ns = self.stop_ns or time.monotonic_ns()
            self.stop.set()
        elif len(words) == 2 and words[0] == "GO" and words[1].isdecimal():
            now_ns = time.monotonic_ns()
            if int(words[1]) < now_ns:
                late = now_ns - int(words[1])
                self.fail(
                    2, "GO", f"GO {words[1]}: {late} ns in the past; allowed: a time in the future"
                )
            self.start_ns = int(words[1])
        elif words:
            self.fail(2, words[0], f"found {' '.join(words)!r}; allowed: GO <start_ns>, STOP")
        self.go_or_stop.set()
