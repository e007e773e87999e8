"""Read the bytes of the TCP connections of ssh: at its client here, and at its server on a host."""

from __future__ import annotations

import contextlib
import ipaddress
import json
import re
import shutil
import subprocess
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from wattwire.hosts.host import Host, in_parallel
from wattwire.hosts.namespaces import SYSTEM_PATHS
from wattwire.model.errors import WattwireError
from wattwire.rig.agent import Traffic

TIMEOUT_S = 5.0
_COUNTERS = re.compile(r"bytes_(sent|received):(\d+)")
_SENT, _SEGMENTS = re.compile(r"\bbytes_sent:(\d+)"), re.compile(r"\bsegs_out:(\d+)")
HEADER_BYTES = {4: 14 + 20 + 32, 6: 14 + 40 + 32}
"""Version of IP → bytes of Ethernet, IP and TCP with timestamps, per segment."""


@dataclass(frozen=True)
class SshSent:
    """Bytes on the wire that the ssh server of a host has sent to the controller by a device."""

    device: str
    wire_bytes: int


def sent_by_ssh(hosts: Collection[Host]) -> dict[str, SshSent]:
    """Return host → what its ssh server has sent to the controller since the connection began.

    A host is absent if it has no TCP connection of ssh, no iproute2, or a kernel without these
    counters (before Linux 4.19).
    """
    connected = [host for host in hosts if host.connection]
    counted = zip(connected, in_parallel(_sent_by_ssh, connected), strict=True)
    return {host.name: sent for host, sent in counted if sent is not None}


def since(after: Mapping[str, SshSent], before: Mapping[str, SshSent]) -> dict[str, SshSent]:
    """Return what was sent between two readings, of the hosts in both by the same device."""
    return {
        name: SshSent(sent.device, sent.wire_bytes - before[name].wire_bytes)
        for name, sent in after.items()
        if name in before and before[name].device == sent.device
    }


def _sent_by_ssh(host: Host) -> SshSent | None:
    """Return what the ssh server of a host has sent, without its reply to this request (1 kB)."""
    peer, peer_port, own, own_port = host.connection
    ports = f"sport = :{own_port} and dport = :{peer_port}"
    with contextlib.suppress(WattwireError, ValueError, LookupError):
        route = ["ip", "-json", "route", "get", peer, "from", own]
        device = json.loads(host.command(route, TIMEOUT_S)[1])[0]["dev"]
        wire_bytes = read_wire_bytes(host.command(["ss", "-tinHO", ports], TIMEOUT_S)[1], peer)
        return None if wire_bytes is None else SshSent(str(device), wire_bytes)
    return None


def read_wire_bytes(text: str, peer: str) -> int | None:
    """Return the bytes on the wire of the connection to `peer` in the output of `ss -tinHO`."""
    lines = [line for line in text.splitlines() if peer in line]
    sent, segments = (pattern.search(lines[0]) if lines else None for pattern in (_SENT, _SEGMENTS))
    if len(lines) != 1 or sent is None or segments is None:
        return None
    header_bytes = HEADER_BYTES[ipaddress.ip_address(peer).version]
    return int(sent[1]) + int(segments[1]) * header_bytes


def socket_traffic(pid: int) -> Traffic | None:
    """Return the bytes of a process's only TCP connection; None if the kernel does not show them.

    They include what TCP sent again, but no headers of TCP and IP.
    """
    ss = shutil.which("ss") or shutil.which("ss", path=":".join(SYSTEM_PATHS))
    if ss is None:
        return None
    try:
        done = subprocess.run(
            [ss, "-tinpOH"], capture_output=True, text=True, check=False, timeout=TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        return None
    return read_traffic(done.stdout, pid)


def read_traffic(text: str, pid: int) -> Traffic | None:
    """Return the bytes of a process in the output of `ss -tinpOH`, which has a line per socket."""
    lines = [line for line in text.splitlines() if f",pid={pid}," in line]
    if len(lines) != 1:
        return None
    counters = {name: int(value) for name, value in _COUNTERS.findall(lines[0])}
    # The kernel omits a counter that is 0.
    return Traffic(counters.get("sent", 0), counters.get("received", 0))
