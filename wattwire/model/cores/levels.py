"""Levels of the factor `cores`: three words, or a list of CPUs for each role or service."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from wattwire.model.errors import UsageError

CORES = "cores"
FREE, SAME, APART = "free", "same", "apart"
"""The scheduler chooses the CPUs; one core for all nodes of a machine; a core for each node."""
WORDS = (FREE, SAME, APART)
ANY = "*"
"""Name for all processes that a list does not name."""
ALLOWED = (
    f'"{FREE}", "{SAME}", "{APART}", or CPUs by role, service or process, such as "server=0 *=1-3" '
    f'or {{ server = [0], "*" = [1, 2, 3] }}'
)
CPU_MAX = 1023
"""Highest number of a CPU in a set of sched_setaffinity(2)."""
_ENTRY = re.compile(r"(?P<name>[\w.-]+|\*)=(?P<cpus>\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*)")


def checked(level: Any, where: str) -> str:
    """Return a level in its normal form.

    A table or a text of lists becomes "NAME=CPUS …", where CPUS are numbers separated by commas.
    Raises UsageError for an invalid level.
    """
    if isinstance(level, Mapping):
        lists = {name: _numbers(cpus, level, where) for name, cpus in level.items()}
    elif level in WORDS:
        return str(level)
    else:
        lists = _parsed(level, where)
    for name, cpus in lists.items():
        if not name or name.split() != [name] or "=" in name:
            raise UsageError(f"{where}: found the name {name!r}; allowed: a role or a service")
        if not cpus or max(cpus) > CPU_MAX:
            raise UsageError(
                f"{where}: {name}: found {cpus!r}; allowed: CPUs from 0 to {CPU_MAX}, at least one"
            )
    if not lists:
        raise UsageError(f"{where}: found {level!r}; allowed: {ALLOWED}")
    return " ".join(f"{name}={','.join(map(str, sorted(set(lists[name]))))}" for name in lists)


def listed_cpus(level: str) -> dict[str, tuple[int, ...]]:
    """Return name → CPUs of a level in its normal form; empty for one of WORDS."""
    if level in WORDS:
        return {}
    entries = (entry.partition("=") for entry in level.split())
    return {name: tuple(map(int, cpus.split(","))) for name, _, cpus in entries}


def _numbers(cpus: Any, level: Any, where: str) -> list[int]:
    is_list = isinstance(cpus, list) and all(type(cpu) is int and cpu >= 0 for cpu in cpus)
    if not is_list:
        raise UsageError(f"{where}: found {level!r}; allowed: {ALLOWED}")
    return list(cpus)


def _parsed(level: Any, where: str) -> dict[str, list[int]]:
    lists: dict[str, list[int]] = {}
    for word in str(level).split() if isinstance(level, str) else [""]:
        entry = _ENTRY.fullmatch(word)
        if entry is None or entry["name"] in lists:
            raise UsageError(f"{where}: found {level!r}; allowed: {ALLOWED}")
        lists[entry["name"]] = [
            cpu for part in entry["cpus"].split(",") for cpu in _range(part, level, where)
        ]
    return lists


def _range(part: str, level: Any, where: str) -> range:
    """Return the CPUs of "2" or "0-3"."""
    first, _, last = part.partition("-")
    begin, end = int(first), int(last or first)
    if end < begin or end > CPU_MAX:
        raise UsageError(f"{where}: found {level!r}; allowed: CPUs from 0 to {CPU_MAX}, ascending")
    return range(begin, end + 1)
