"""Lines for people: no wider than the terminal, nor than 100 columns where there is none."""

from __future__ import annotations

import os
import re
import textwrap
from typing import TextIO

LOG_COLUMNS = 100
COLUMNS_MIN = 40
NO_BREAK = "\N{NO-BREAK SPACE}"
UNIT = re.compile(r"(?<=\d) (?=%|(?:µs|ms|s|min|h|B|W|J)\b)")
"""The space between a number and its unit."""


def columns(stream: TextIO) -> int:
    """How wide a line on `stream` may be: COLUMNS, its terminal's width, LOG_COLUMNS for a log."""
    asked = os.environ.get("COLUMNS", "")
    if asked.isdecimal() and int(asked):
        return max(COLUMNS_MIN, int(asked))
    try:
        if stream.isatty():
            return max(COLUMNS_MIN, os.get_terminal_size(stream.fileno()).columns)
    except (OSError, ValueError):  # a stand-in for a stream, or a closed one
        pass
    return LOG_COLUMNS


def wrapped(text: str, width: int, indent: str = "", hanging: str = "    ") -> str:
    """`text` in lines of at most `width`; long words stay whole, and units by their numbers."""
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
    """`text` wrapped on a terminal; whole in a log, where one searches for the words of a line."""
    if stream.isatty():
        return wrapped(text, columns(stream), indent, hanging)
    return indent + text
