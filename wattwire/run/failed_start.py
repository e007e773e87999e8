"""Find out why a process ended before GO, from its own words.

A port in use, a missing permission or a missing library is a property of the machine and not of the
measured load. Such an attempt failed: it is repeated and is no result.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from wattwire.hosts.host import Host
from wattwire.model.verdict import (
    MISSING_LIBRARY,
    PERMISSION,
    PORT_IN_USE,
    Reason,
    Verdict,
)
from wattwire.rig.agent import AgentError
from wattwire.run.lines import printable
from wattwire.run.run_processes import IN_USE, RunProcesses

CAUSES = {
    PORT_IN_USE: IN_USE,
    MISSING_LIBRARY: re.compile(
        r"error while loading shared libraries|cannot open shared object file|undefined symbol|"
        r"ModuleNotFoundError|ImportError|Cannot find (?:module|package)|cannot load such file|"
        r"ClassNotFoundException|NoClassDefFoundError|UnsatisfiedLinkError|DllNotFoundException|"
        r"FileNotFoundException: Could not load",
    ),
    PERMISSION: re.compile(
        r"permission denied|operation not permitted|\bEACCES\b|\bEPERM\b|access denied",
        re.IGNORECASE,
    ),
}
"""Code of a cause → words that the runtimes and libraries of all languages use for it."""
TAIL_LINES = 30
QUOTED_CHARACTERS = 200
SS_TIMEOUT_S = 3.0
_PORT = re.compile(r"(?:\bport\b\D{0,3}|:)(\d{2,5})\b", re.IGNORECASE)
_HOLDER = re.compile(r'\(\("(?P<name>[^"]+)",pid=(?P<pid>\d+)')


@dataclass(frozen=True)
class Cause:
    """A cause, and the words of the process that state it."""

    code: str
    line: str
    nearby: str


def cause_in(text: str) -> Cause | None:
    """Return the cause that the last lines of a process's output state, or None."""
    lines = [line.strip() for line in text.splitlines() if line.strip()][-TAIL_LINES:]
    for code, pattern in CAUSES.items():
        for index in reversed(range(len(lines))):
            if pattern.search(lines[index]):
                nearby = "\n".join([lines[index], *lines[max(0, index - 2) : index + 3]])
                return Cause(code, lines[index], nearby)
    return None


def reasons(processes: RunProcesses, ended: str, problem: str) -> list[Reason]:
    """Return the causes of the processes that ended before GO; `problem` describes one of them.

    The list is empty if no process states a cause. Its end is then a result.
    """
    texts = {
        process: "\n".join([*_written(processes, process), problem if process == ended else ""])
        for process, state in processes.states.items()
        if state.exit is not None and not _was_killed(state.exit)
    }
    texts.setdefault(ended, problem)
    causes = []
    for process, text in texts.items():
        cause = cause_in(text)
        if cause is not None:
            where = processes.host_of(process) if process in processes.states else None
            detail = (
                f"{process} failed before GO: {_words(cause, where, _ports(processes, process))}"
            )
            causes.append(Reason(Verdict.FAILED, cause.code, detail))
    return causes


def _was_killed(exit_status: Mapping[str, Any]) -> bool:
    return bool(exit_status.get("signal") or exit_status.get("guard_lost"))


def _written(processes: RunProcesses, process: str) -> list[str]:
    """Return what a process wrote, and the reason of its line ERROR, if any."""
    logs = []
    with contextlib.suppress(AgentError):
        logs = processes.logs_of(process)
    return [*logs, str(processes.states[process].lines.get("ERROR", {}).get("reason") or "")]


def _ports(processes: RunProcesses, process: str) -> list[int]:
    """Return the numbers in a process's arguments that may be ports."""
    words = processes.states[process].argv if process in processes.states else []
    return [int(word) for word in words if re.fullmatch(r"\d{2,5}", word) and int(word) < 65536]


def _words(cause: Cause, host: Host | None, candidates: Iterable[int]) -> str:
    quoted = printable(cause.line)[:QUOTED_CHARACTERS]
    if cause.code == MISSING_LIBRARY:
        return f"a library or module is missing ({quoted})"
    if cause.code == PERMISSION:
        return f"a permission is missing ({quoted})"
    stated = [int(port) for port in _PORT.findall(cause.nearby) if int(port) < 65536]
    ports = list(dict.fromkeys(stated or candidates))
    held = {port: holder for port in ports if host and (holder := holder_of(host, port))}
    if held:
        port, holder = next(iter(held.items()))
        return f"port {port} is in use by {holder} ({quoted})"
    if len(ports) == 1:
        return f"port {ports[0]} is in use; `ss -tulpn` on its host lists the holder ({quoted})"
    return f"a port is in use; `ss -tulpn` on its host lists the holders ({quoted})"


def holder_of(host: Host, port: int) -> str:
    """Return the process that uses a port on a host, such as "nginx (process 7)"; "" if unknown."""
    try:
        _, output = host.command(["ss", "-Hanptu", f"sport = :{port}"], SS_TIMEOUT_S)
    except AgentError:  # ss is not installed there
        return ""
    holder = _HOLDER.search(output)
    return f"{holder['name']} (process {holder['pid']})" if holder else ""
