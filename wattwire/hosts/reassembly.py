"""Wait until the kernel has discarded the incomplete datagrams of an earlier run.

A datagram of which a fragment was lost stays in the reassembly queue of the receiving namespace for
`ipfrag_time`, 30 s by default. Its memory counts against `ipfrag_high_thresh`, above which the
kernel drops all fragments, so the losses of a run would continue in the next run.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection
from pathlib import Path

from wattwire.hosts.host import Host
from wattwire.model.rig import NETNS

SOCKETS = Path("/proc/net/sockstat")
LIFETIME = Path("/proc/sys/net/ipv4/ipfrag_time")
EXTRA_S = 5.0
"""Time beyond the lifetime of a datagram after which the wait ends, whatever the queue contains."""
WAIT_MAX_S = 30.0 + EXTRA_S
"""Longest wait with the kernel's default lifetime."""
FRAGMENTED_FROM_BYTES = 1473
"""Smallest payload of a datagram that an Ethernet frame cannot carry."""
PERIOD_S, COMMAND_S = 0.2, 10.0
_IN_USE = re.compile(r"^FRAG: inuse (\d+)", re.MULTILINE)


def incomplete_datagrams(host: Host) -> int:
    """Return the number of incomplete datagrams in the reassembly queue of a host."""
    in_use = _IN_USE.search(_content(host, SOCKETS))
    return int(in_use[1]) if in_use else 0


def _content(host: Host, path: Path) -> str:
    """Return the content of a file of the kernel, which states no size."""
    return host.command(["cat", str(path)], COMMAND_S)[1]


def await_empty_queues(hosts: Collection[Host]) -> int:
    """Wait until no namespace has incomplete datagrams; return their number after the wait.

    Hosts of other kinds share their network with other programs, so their queues are not awaited.
    """
    waiting = [host for host in hosts if host.spec.kind == NETNS and incomplete_datagrams(host)]
    if not waiting:
        return 0
    longest_s = max(float(_content(host, LIFETIME)) for host in waiting) + EXTRA_S
    deadline_s = time.monotonic() + longest_s
    while time.monotonic() < deadline_s:
        time.sleep(PERIOD_S)
        waiting = [host for host in waiting if incomplete_datagrams(host)]
        if not waiting:
            return 0
    return sum(incomplete_datagrams(host) for host in waiting)
