"""Collect the command lines that a campaign stores, which can contain secrets of any form."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

DOCUMENT = "run.json"
_RUN_FOLDER = re.compile(r"/runs/[^/]+/")


def command_lines(document: Any) -> set[str]:
    """Return the distinct command lines in the document of a run, each in one line.

    They are those of its processes, and of the children that `exec` observed. Paths in the folder
    of the run are the same for all runs.
    """
    return {_line(argv) for argv in _arguments(document)}


def _line(argv: list[str]) -> str:
    text = _RUN_FOLDER.sub("/runs/*/", shlex.join(argv))
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def _arguments(document: Any) -> Iterator[list[str]]:
    """Yield all lists of arguments. A foreign document may have any form."""
    if not isinstance(document, dict):
        return
    commands, members = (document.get(key) for key in ("commands", "members"))
    lists = [*commands.values()] if isinstance(commands, dict) else []
    for table in members.values() if isinstance(members, dict) else ():
        rows = table if isinstance(table, list) else []
        lists += [row.get("argv") for row in rows if isinstance(row, dict)]
    for argv in lists:
        if isinstance(argv, list) and argv and all(isinstance(word, str) for word in argv):
            yield argv
