"""Define crash points. Tests use them to check that a campaign survives SIGKILL.

If `WATTWIRE_CRASH=VICTIM@POINT` is set, VICTIM (controller, agent, guard, node, a role, the name of
a process, probe, profiled, emulator, switch, device or ssh) is ended when this process first
reaches POINT (ready, window, drain, convert or commit). A role means the last node with this role,
profiled the last node of a run that records layers, and ssh the connection to the last host over
ssh. VICTIM/PROGRAM is a descendant of VICTIM that executes PROGRAM, such as a device that a node
starts, or a script of this name. If the variable is not set, each phase costs one dictionary
look-up.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

VARIABLE = "WATTWIRE_CRASH"
POINTS = ("ready", "window", "drain", "convert", "commit")
PROGRAM_PATIENCE_S = 20.0
"""Longest wait for a PROGRAM, which its node may start later than POINT."""
_spent: set[str] = set()


def crash_point(point: str, victims: Mapping[str, int | Callable[[], None] | None]) -> None:
    """Kill the selected victim if `point` is the selected crash point.

    `victims` maps the names of victims to process ids, or to functions that end what is no process.
    """
    request = os.environ.get(VARIABLE)
    if not request or request in _spent:
        return
    victim, _, requested_point = request.partition("@")
    if requested_point != point:
        return
    name, _, program = victim.partition("/")
    pid = os.getpid() if name == "controller" else victims.get(name)
    if callable(pid):
        _spent.add(request)
        pid()
        return
    if pid is not None and program:
        pid = _descendant(pid, program)
    if pid is not None:
        _spent.add(request)
        os.kill(pid, signal.SIGKILL)


def descendants(pid: int) -> Iterator[int]:
    """Return all descendants of a process, parents first."""
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield int(child)
                yield from descendants(int(child))


def words_of(pid: int) -> list[str]:
    """Return the command line of a process, or nothing if it has ended."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace").split("\0")
    return []


def programs_of(words: Sequence[str]) -> list[str]:
    """Return the file names of a command's program and of its first argument.

    The argument of an interpreter is a script.
    """
    return [Path(word).name for word in words[:2]]


def _descendant(pid: int, program: str) -> int | None:
    """Wait for a descendant that executes a program; return it, or None after the patience."""
    deadline_s = time.monotonic() + PROGRAM_PATIENCE_S
    while time.monotonic() < deadline_s:
        for descendant in descendants(pid):
            if program in programs_of(words_of(descendant)):
                return descendant
        time.sleep(0.01)
    return None
