"""Forward a command's output, count the messages in it, and read figures from it."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Sequence
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
        self._discarded = 0.0
        self._matches = 0
        self.problem = ""
        """The reason why the messages are not counted."""
        self._first: tuple[float, float] | None = None
        self._last: tuple[float, float] | None = None

    def restart(self) -> None:
        """Begin to count, after the messages of the warm-up."""
        self._discarded, self._matches = self._count, 0
        self._first = self._last = None

    def line(self, text: str, at_s: float = 0.0) -> None:
        """Count the messages in one line that was read at `at_s` (s, monotonic).

        If the text of a group is not a number, that is the `problem`, and the count ends: the
        command continues, and its costs are measured.
        """
        if self.problem:
            return
        try:
            self._count_matches(text, at_s)
        except UsageError as error:
            self.problem = str(error)

    def _count_matches(self, text: str, at_s: float) -> None:
        for match in self._pattern.finditer(text):
            self._matches += 1
            if self._group is None:
                self._count += 1
                continue
            value = parse_number(match[self._group], f"--count-from: the group {self._group}")
            self._count = value if self._group == "n" else self._count + value
            if self._group == "n":
                self._first = self._first or (at_s, value)
                self._last = (at_s, value)

    def totals(self, seen_every_s: float) -> Totals | None:
        """Return the first and the last running total; None if the output contains no total."""
        if self._first is None or self._last is None:
            return None
        return Totals(self._first, self._last, self._matches, seen_every_s)

    @property
    def count(self) -> float | None:
        """Return the number of messages so far; None if no line has matched, or after a problem."""
        is_known = self._matches and not self.problem
        return self._count - self._discarded if is_known else None


class ValueReader:
    """Reader of figures that a command prints, such as "p50_ms=4.56".

    Each expression is the name of a figure, NAME=REGEX with a group for the number, or a regular
    expression with a named group per figure. The last match of a figure counts, whether its text
    is a number or not.
    """

    def __init__(self, expressions: Sequence[str]) -> None:
        self._patterns = [_figures(expression) for expression in expressions]
        self.names = [name for _, groups in self._patterns for name in groups]
        if len(set(self.names)) < len(self.names):
            raise UsageError(f"--value-from: found {self.names}; name each figure once")
        self.values: dict[str, float] = {}
        self.problems: dict[str, str] = {}
        """Name of a figure whose last match is not a number → the reason."""

    def restart(self) -> None:
        """Discard the figures of the warm-up."""
        self.values.clear()
        self.problems.clear()

    def line(self, text: str, _at_s: float = 0.0) -> None:
        """Read the figures in one line."""
        for pattern, groups in self._patterns:
            for match in pattern.finditer(text):
                for name, group in groups.items():
                    if match[group] is not None:
                        self._read(name, match[group])

    def _read(self, name: str, text: str) -> None:
        self.values.pop(name, None)
        self.problems.pop(name, None)
        try:
            self.values[name] = parse_number(text, f"--value-from: the group {name}")
        except UsageError as error:
            self.problems[name] = str(error)


_NUMBER = r"[-+]?(?:[\d.,_]*\d(?:[eE][-+]?\d+)?|(?i:inf(?:inity)?|nan)\b)"
"""All text that may be a number; `parse_number` decides."""
_GROUPED = re.compile(r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d*)?(?:[eE][-+]?\d+)?")
_NAMED = re.compile(r"(?P<name>[^\W\d]\w*)=(?P<expression>.*)", re.DOTALL)
_TOKEN = re.compile(
    r"(?P<number>\((?!\?))|\(\?(?:[a-zA-Z-]*[:)]|<?[=!])|\[\^?\]?(?:\\.|[^\]])*\]"
    r"|\{[^}]*\}|\\.|(?P<word>\w(?![?*]))|.",
    re.DOTALL,
)
"""A part of a regular expression: the group around the number, or a literal letter or digit."""


def _figures(expression: str) -> tuple[re.Pattern[str], dict[str, int]]:
    """Return a pattern, and the name of each figure in it → the number of its group.

    Of NAME=REGEX, the pattern is REGEX. Without a word before the number, as in
    "p50_ms=([0-9.]+) ms", REGEX would match other numbers of the output, too. The name then
    precedes the number in the output, and the pattern is the whole expression.
    """
    if expression.isidentifier():
        expression = rf"\b{expression}\b[\"']?\s*[=:]\s*(?P<{expression}>{_NUMBER})"
    named = _NAMED.fullmatch(expression)
    if named is None or "(?P<" in expression:
        pattern = _compiled(expression, expression)
        if not pattern.groupindex:
            raise _refused(expression, "it names no figure")
        return pattern, dict(pattern.groupindex)
    part = _compiled(named["expression"], expression)
    if part.groups != 1:
        raise _refused(expression, f"it has {part.groups} groups")
    tokens = (token.lastgroup for token in _TOKEN.finditer(named["expression"]))
    if next(filter(None, tokens), None) == "number":
        part = _compiled(rf"\b{expression}", expression)
    return part, {named["name"]: 1}


def _compiled(text: str, expression: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise UsageError(
            f'--value-from: "{expression}" is not a regular expression: {error}'
        ) from error


def _refused(expression: str, cause: str) -> UsageError:
    return UsageError(
        f'--value-from: "{expression}": {cause}; allowed: a name, such as p50_ms; NAME=REGEX with '
        r"one group around the number, such as 'p50_ms=median ([\d.]+) ms'; or an expression with "
        r"named groups, such as 'median (?P<p50_ms>[\d.]+) ms'"
    )


def parse_number(text: str | None, place: str) -> float:
    """Parse a finite number, which may have separators of thousands.

    Raise UsageError for other text. A comma that does not separate three digits may be a decimal
    comma, so the number is not guessed. Load generators print NaN or inf if no request succeeded.
    """
    found = text or ""
    if "," in found and not _GROUPED.fullmatch(found):
        raise UsageError(
            f"{place} matched {found!r}; allowed: a decimal point, and commas only before "
            "groups of three digits"
        )
    try:
        value = float(found.replace(",", "").replace("_", ""))
    except ValueError:
        raise UsageError(f"{place} matched {found!r}, which is not a number") from None
    if not math.isfinite(value):
        raise UsageError(f"{place} matched {found!r}, which is not a finite number")
    return value


class Tail:
    """Reader of a growing log file.

    It forwards the bytes, and passes complete lines to readers.
    """

    def __init__(
        self,
        path: Path,
        show: Callable[[bytes], None],
        readers: Sequence[MessageCounter | ValueReader],
    ) -> None:
        self._path, self._show, self._readers = path, show, readers
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
        for reader in self._readers:
            reader.line(line.decode(errors="replace"), time.monotonic())
