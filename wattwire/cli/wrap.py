"""Wrap text to the width of the terminal."""

from __future__ import annotations

import os
import re
import textwrap
from typing import TextIO

LOG_COLUMNS = 100
COLUMNS_MIN = 40
NO_BREAK = "\N{NO-BREAK SPACE}"
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
    lines = [
        line
        for paragraph in text.splitlines()
        for line in textwrap.wrap(
            UNIT.sub(NO_BREAK, paragraph),
            width,
            initial_indent=indent,
            subsequent_indent=indent + hanging,
            break_long_words=False,
            break_on_hyphens=False,
        )
    ]
    return "\n".join(lines).replace(NO_BREAK, " ")


def searchable(text: str, stream: TextIO, indent: str = "", hanging: str = "  ") -> str:
    """Return `text` wrapped for a terminal, or as one searchable line for a log."""
    if stream.isatty():
        return wrapped(text, columns(stream), indent, hanging)
    return indent + text
