"""A command's output: shown while it comes, and searched for a count of messages."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from wattwire.model.errors import UsageError

LEFT_OUT = re.compile(rb"^\[wattwire: \d+ more bytes were left out\]$", re.MULTILINE)
CHUNK_BYTES = 1 << 16


class MessageCounter:
    """Counts messages in lines of text by a regular expression.

    Without a group each match is one message. `(?P<n>…)` is a running total, whose last value
    counts; `(?P<add>…)` is an amount, and all of them are summed up.
    """

    def __init__(self, expression: str) -> None:
        try:
            self._pattern = re.compile(expression)
        except re.error as error:
            raise UsageError(
                f"--count-from: {expression!r} is no regular expression: {error}"
            ) from error
        self._group = next((g for g in ("n", "add") if g in self._pattern.groupindex), None)
        self._count = 0.0
        self._matches = 0

    def line(self, text: str) -> None:
        """Take one line. Raises UsageError where a group holds no number."""
        for match in self._pattern.finditer(text):
            self._matches += 1
            if self._group is None:
                self._count += 1
                continue
            value = self._number(match[self._group])
            self._count = value if self._group == "n" else self._count + value

    def _number(self, text: str | None) -> float:
        try:
            return float((text or "").replace(",", "").replace("_", ""))
        except ValueError:
            raise UsageError(
                f"--count-from: the group {self._group} caught {text!r}, which is no number"
            ) from None

    @property
    def count(self) -> float | None:
        """Messages so far; None where nothing ever matched."""
        return self._count if self._matches else None


class Tail:
    """Follows a log file that grows: gives its bytes on, and its whole lines to a counter."""

    def __init__(
        self, path: Path, show: Callable[[bytes], None], counter: MessageCounter | None
    ) -> None:
        self._path, self._show, self._counter = path, show, counter
        self._offset = 0
        self._partial = b""
        self.truncated = False
        """The log has a bound, and this one reached it: what followed was not counted."""

    def take(self) -> None:
        """Take all that was written since the last call."""
        if not self._path.exists():
            return
        with open(self._path, "rb") as file:
            file.seek(self._offset)
            while chunk := file.read(CHUNK_BYTES):
                self._offset += len(chunk)
                self._show(chunk)
                self._partial += chunk
                *lines, self._partial = self._partial.split(b"\n")
                for line in lines:
                    self._line(line)

    def end(self) -> None:
        """Take the rest, an unfinished last line included."""
        self.take()
        if self._partial:
            self._line(self._partial)
            self._partial = b""

    def _line(self, line: bytes) -> None:
        if LEFT_OUT.match(line):
            self.truncated = True
        if self._counter is not None:
            self._counter.line(line.decode(errors="replace"))
