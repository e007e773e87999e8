"""Write text to the terminal: wrapped, in columns, and without control characters of others.

All commands format their lines here.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TextIO

CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""Characters that move the cursor, change the terminal or the direction of text."""
LOG_COLUMNS = 100
COLUMNS_MIN = 40
NO_BREAK = "\N{NO-BREAK SPACE}"
GAP = "  "
"""Space between columns."""
NAME_WIDTH_MAX = 48
"""Width of the longest name in `pairs` that the texts of all rows make room for."""
NARROWEST = 20
"""Width below which `table` narrows no column."""
UNIT = re.compile(r"(?<=\d) (?=%|(?:µs|ms|s|min|h|B|W|J)\b)")
"""A space between a number and its unit, at which lines do not break."""


def columns(stream: TextIO) -> int:
    """Return the line width for `stream`, from COLUMNS, the terminal or LOG_COLUMNS."""
    requested = os.environ.get("COLUMNS", "")
    if requested.isdecimal() and int(requested):
        return max(COLUMNS_MIN, int(requested))
    try:
        if stream.isatty():
            return max(COLUMNS_MIN, os.get_terminal_size(stream.fileno()).columns)
    except (OSError, ValueError):  # the stream is closed or has no descriptor
        pass
    return LOG_COLUMNS


def wrapped(text: str, width: int, indent: str = "", hanging: str = "    ") -> str:
    """Wrap `text` to lines of at most `width`, without breaks inside words or before units."""
    return "\n".join(
        line
        for paragraph in text.splitlines()
        for line in beside(indent, paragraph, width, indent + hanging)
    )


def beside(begin: str, text: str, width: int, hanging: str | None = None) -> list[str]:
    """Return the lines of `text` after `begin`, such as a name or a mark.

    The lines below the first begin with `hanging`, by default with the width of `begin` in spaces.
    """
    lines = textwrap.wrap(
        UNIT.sub(NO_BREAK, text),
        width,
        initial_indent=begin,
        subsequent_indent=" " * len(begin) if hanging is None else hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace(NO_BREAK, " ") for line in lines]


def shortened(text: str, width: int) -> str:
    """Return `text`, or its first words and "…" if it is longer than `width`."""
    return textwrap.shorten(text, width, placeholder=" …")


def one_line(text: str) -> str:
    """Return `text` so that `wrapped`, `pairs` and `table` do not break it, as a command."""
    return text.replace(" ", NO_BREAK)


def pairs(
    rows: Iterable[tuple[str, str]], width: int, name_width_max: int = NAME_WIDTH_MAX
) -> list[str]:
    """Return the lines of names and of texts next to them, which wrap in their own column."""
    known = [(name, text.strip()) for name, text in rows]
    name_width = min(name_width_max, max((len(name) for name, _ in known), default=0))
    lines: list[str] = []
    for name, text in known:
        begin = f"{GAP}{name:<{name_width}}{GAP}"
        hanging = " " * (len(GAP) + name_width + len(GAP))
        lines += beside(begin, text, width, hanging) or [begin.rstrip()]
    return lines


def table(
    rows: Sequence[Sequence[str]], align: str, width: int | None = None, indent: str = GAP
) -> list[str]:
    """Return the lines of rows of equal length, each column as wide as its longest text.

    `align` has a character per column: "<" for texts, ">" for numbers. If the table is wider than
    `width`, the widest columns of texts wrap.
    """
    widths = [max(1, *map(len, texts)) for texts in zip(*rows, strict=True)]
    excess = 0 if width is None else len(indent) + sum(widths) + len(GAP) * len(align[1:]) - width
    for _ in range(excess):
        texts_wide = [at for at, side in enumerate(align) if side == "<" and widths[at] > NARROWEST]
        if texts_wide:
            widths[max(texts_wide, key=widths.__getitem__)] -= 1
    lines = []
    for row in rows:
        cells = [
            textwrap.wrap(UNIT.sub(NO_BREAK, text), cell_width, break_on_hyphens=False)
            for text, cell_width in zip(row, widths, strict=True)
        ]
        for texts in itertools.zip_longest(*cells, fillvalue=""):
            padded = [f"{t:{side}{w}}" for t, side, w in zip(texts, align, widths, strict=True)]
            lines.append((indent + GAP.join(padded)).rstrip().replace(NO_BREAK, " "))
    return lines


def searchable(text: str, stream: TextIO, indent: str = "", hanging: str = "  ") -> str:
    """Return `text` wrapped for a terminal, or as one searchable line for a log."""
    if stream.isatty():
        return wrapped(text, columns(stream), indent, hanging)
    return indent + text


def printable(text: str) -> str:
    """Return the text with control characters escaped, except line breaks and tabs."""
    return CONTROL.sub(lambda match: ascii(match[0])[1:-1], text)


@contextlib.contextmanager
def unless_closed(stream: Any) -> Iterator[None]:
    """Discard all further output to a stream whose reader has closed the pipe.

    Such a reader, as `head -1`, must neither end a measurement nor change its exit code.
    """
    try:
        yield
    except BrokenPipeError:
        # At exit, Python would flush the rest of the buffer and fail again.
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)


class PrintableStream:
    """A text stream that escapes control characters.

    A text can come from a study, a table, a host or a node, and a terminal would execute its escape
    sequences. `unfiltered` is the stream for rich, which writes sequences of its own.
    """

    def __init__(self, stream: TextIO) -> None:
        self.unfiltered = stream

    def write(self, text: str) -> int:
        with unless_closed(self.unfiltered):
            self.unfiltered.write(printable(text))
        return len(text)

    def flush(self) -> None:
        with unless_closed(self.unfiltered):
            self.unfiltered.flush()

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.unfiltered, name)


def unfiltered(stream: Any) -> Any:
    """Return the stream of the terminal, for rich. Its texts must be `printable`."""
    return getattr(stream, "unfiltered", stream)


@contextlib.contextmanager
def printable_streams() -> Iterator[None]:
    """Escape control characters in standard output and standard error.

    A character that the encoding lacks is also escaped.
    """
    before = sys.stdout, sys.stderr
    streams = []
    for stream in before:
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
        streams.append(PrintableStream(unfiltered(stream)))
    sys.stdout, sys.stderr = streams
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
