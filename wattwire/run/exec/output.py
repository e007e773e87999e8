"""Forward a command's output and count the messages in it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from wattwire.model.errors import UsageError

LEFT_OUT = re.compile(rb"^\[wattwire: \d+ more bytes were left out\]$", re.MULTILINE)
CHUNK_BYTES = 1 << 16


@dataclass(frozen=True)
class Totals:
    """First and last running total of messages, each as (monotonic time in s, messages).

    The output is read every `seen_every_s` seconds, so a total may be that much older than its
    time.
    """

    first: tuple[float, float]
    last: tuple[float, float]
    readings: int
    seen_every_s: float

    @property
    def span_s(self) -> float:
        return self.last[0] - self.first[0]

    @property
    def per_s(self) -> float | None:
        """Return messages per second between both readings; None if they are too close in time."""
        if self.readings < 2 or self.span_s <= 2 * self.seen_every_s:
            return None
        return (self.last[1] - self.first[1]) / self.span_s

    @property
    def resolution_share(self) -> float | None:
        """Return the relative error of the rate due to the reading period; None without a rate."""
        return None if self.per_s is None else self.seen_every_s / self.span_s


class MessageCounter:
    """Counter of messages in lines of text, based on a regular expression.

    Without a group, each match is one message. A group `(?P<n>…)` is a running total, and the count
    is its last value. A group `(?P<add>…)` is an amount, and the count is the sum of all amounts.
    """

    def __init__(self, expression: str) -> None:
        try:
            self._pattern = re.compile(expression)
        except re.error as error:
            raise UsageError(
                f'--count-from: "{expression}" is not a regular expression: {error}'
            ) from error
        self._group = next(
            (group for group in ("n", "add") if group in self._pattern.groupindex), None
        )
        self._count = 0.0
        self._matches = 0
        self.problem = ""
        """The reason why the messages are not counted."""
        self._first: tuple[float, float] | None = None
        self._last: tuple[float, float] | None = None

    def line(self, text: str, at_s: float = 0.0) -> None:
        """Count the messages in one line that was read at `at_s` (s, monotonic).

        Raise UsageError if the text of a group is not a number.
        """
        for match in self._pattern.finditer(text):
            self._matches += 1
            if self._group is None:
                self._count += 1
                continue
            value = self._number(match[self._group])
            self._count = value if self._group == "n" else self._count + value
            if self._group == "n":
                self._first = self._first or (at_s, value)
                self._last = (at_s, value)

    def totals(self, seen_every_s: float) -> Totals | None:
        """Return the first and the last running total; None if the output contains no total."""
        if self._first is None or self._last is None:
            return None
        return Totals(self._first, self._last, self._matches, seen_every_s)

    def _number(self, text: str | None) -> float:
        try:
            return float((text or "").replace(",", "").replace("_", ""))
        except ValueError:
            raise UsageError(
                f"--count-from: the group {self._group} matched {text!r}, which is not a number"
            ) from None

    @property
    def count(self) -> float | None:
        """Return the number of messages so far; None if no line has matched, or after a problem."""
        return self._count if self._matches and not self.problem else None


class Tail:
    """Reader of a growing log file.

    It forwards the bytes, and passes complete lines to a counter.
    """

    def __init__(
        self, path: Path, show: Callable[[bytes], None], counter: MessageCounter | None
    ) -> None:
        self._path, self._show, self._counter = path, show, counter
        self._offset = 0
        self._partial = b""
        self.truncated = False
        """Whether the log reached its size limit, after which messages were not counted."""

    def take(self) -> None:
        """Read all data written since the last call."""
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
        """Read the remaining data, including an incomplete last line."""
        self.take()
        if self._partial:
            self._line(self._partial)
            self._partial = b""

    def _line(self, line: bytes) -> None:
        if LEFT_OUT.match(line):
            self.truncated = True
        if self._counter is not None and not self._counter.problem:
            try:
                self._counter.line(line.decode(errors="replace"), time.monotonic())
            except UsageError as error:  # the command continues, and its costs are measured
                self._counter.problem = str(error)
