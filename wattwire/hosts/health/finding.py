"""Define a property of a host that changes measured values, and read it by short programs."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from wattwire.hosts.host import Host
from wattwire.model.rig import NETNS, SSH
from wattwire.rig.agent import AgentError

OK, NOTE, MISSING = "ok", "note", "missing"
"""States: nothing to change, changes results, prevents runs."""
TIMEOUT_S = 10.0
OTHER_RIG = "compare campaigns with this rig before and after the change (wattwire compare)"


@dataclass(frozen=True)
class Finding:
    """One check of one host, or of a machine that several hosts share.

    - `evidence` is the value on that host, and `cause` what it does to a measurement.
    - `command` changes it, executed where wattwire runs; PID stands for the agent of a namespace.
    - `factor` is the factor of a study that shows the effect.
    """

    check: str
    state: str
    hosts: tuple[str, ...]
    evidence: str
    cause: str = ""
    command: str = ""
    factor: str = ""
    network: str = ""


def finding(
    host: Host, check: str, evidence: str, cause: str = "", command: str = "", factor: str = "",
    network: str = "", state: str = NOTE,
) -> Finding:  # fmt: skip
    """Return a finding on a host. A finding without a cause is OK."""
    state = state if cause else OK
    return Finding(check, state, (host.name,), evidence, cause, command, factor, network)


def as_root(host: Host, command: str, in_network: bool = False) -> str:
    """Return a command line that executes `command` on a host with the rights of root.

    `in_network` means that it refers to the host's network, which a host of kind netns has for
    itself. That of a namespace ends with the campaign.
    """
    is_root = host.agent.hello["rights"].get("root")
    sudo = "" if is_root else "sudo "
    if host.spec.kind == SSH:
        return f"ssh {host.spec.to} {shlex.quote(sudo + command)}"
    if host.spec.kind == NETNS and in_network:
        return f"{sudo}nsenter --net --target PID {command}"
    return sudo + command


def output_of(host: Host, *argv: str) -> str | None:
    """Return what a program prints on a host; None if it is missing or fails."""
    path = host.which(argv[0])
    if path is None:
        return None
    try:
        code, output = host.command([path, *argv[1:]], TIMEOUT_S)
    except AgentError:
        return None
    return output if code == 0 else None


def json_of(host: Host, *argv: str) -> list[dict[str, Any]]:
    """Return the JSON list that a program prints on a host; [] if there is none."""
    text = output_of(host, *argv)
    try:
        document = json.loads(text or "[]")
    except ValueError:  # a program without the option, such as that of busybox
        return []
    return [entry for entry in document if isinstance(entry, dict)]


def kernel_values(host: Host, names: Sequence[str]) -> dict[str, int]:
    """Return the numbers of /proc/sys on a host by name; names that it lacks are absent."""
    paths = [f"/proc/sys/{name.replace('.', '/')}" for name in names]
    # The kernel returns a number only to the first read of a file, so the shell's `read` fails.
    script = 'for f in "$@"; do echo "$f $(cat "$f")"; done 2>/dev/null'
    text = output_of(host, "sh", "-c", script, "sh", *paths) or ""
    words = [line.split() for line in text.splitlines()]
    values = {w[0]: w[1] for w in words if len(w) > 1 and w[1].isdecimal()}
    return {
        name: int(values[path]) for name, path in zip(names, paths, strict=True) if path in values
    }
