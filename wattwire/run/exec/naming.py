"""Derive the name of a process in the tables from its ROS node, script or program."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

# A ROS node's name is set on the command line with `-r __node:=talker -r __ns:=/left`, or with
# `__name:=talker` in the older syntax.
_NODE = re.compile(r"(?:^|:)(?:__node|__name):=(.+)$")
_NAMESPACE = re.compile(r"(?:^|:)__ns:=(.+)$")
_INTERPRETER = re.compile(r"^(?:python[\d.]*|bash|sh|dash|zsh|perl|ruby|node|nodejs|java|php)$")
_TAKES_MODULE = "-m"
_TAKES_CODE = "-c"


def process_name(argv: Sequence[str], command: str) -> str:
    """Return the name of a process in the tables, from its arguments.

    `command` is the kernel's name of the process. It is used if there are no arguments.
    """
    if nodes := node_names(argv):
        return "+".join(nodes)
    if not argv:
        return command or "?"
    program = PurePosixPath(argv[0]).name.lstrip("-") or command
    if _INTERPRETER.match(program):
        script = _script(argv[1:])
        return f"{program} {script}" if script else program
    return program


def node_names(argv: Sequence[str]) -> list[str]:
    """Return the full names, without the first "/", of the nodes that the arguments name."""
    namespaces = _matches(_NAMESPACE, argv)
    namespace = namespaces[-1].strip("/") if namespaces else ""
    nodes = dict.fromkeys(_matches(_NODE, argv))
    return [f"{namespace}/{node}" if namespace else node for node in nodes]


def _matches(pattern: re.Pattern[str], argv: Sequence[str]) -> list[str]:
    """Return the first group of `pattern` for each matching argument."""
    return [match[1] for word in argv if (match := pattern.search(word))]


def _script(arguments: Sequence[str]) -> str:
    """Return the script that an interpreter runs: its file name, `-m MODULE`, `-c`, or ""."""
    for index, word in enumerate(arguments):
        if word == _TAKES_MODULE and index + 1 < len(arguments):
            return f"-m {arguments[index + 1]}"
        if word == _TAKES_CODE:
            return _TAKES_CODE
        if not word.startswith("-"):
            return PurePosixPath(word).name
    return ""
