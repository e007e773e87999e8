"""Restricts this process's sockets to one interface, and reads its multicast groups."""

import contextlib
import os
import socket
from pathlib import Path

DISCOVERY_GROUP = "239.255.0.1"
"""Multicast group of DDS discovery (DDSI-RTPS, section 9.6.2.4)."""


def stay_on(interface: str) -> None:
    """Bind this process's UDP sockets to one interface, if the kernel allows it.

    The library binds its receiving sockets to all addresses, whatever the configured interface.
    """
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(int(name))) as opened:
            if (opened.family, opened.type) == (socket.AF_INET, socket.SOCK_DGRAM):
                device = interface.encode() + b"\0"
                opened.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device)


def has_joined(interface: str, group: str = DISCOVERY_GROUP, table: str = "/proc/net/igmp") -> bool:
    """Return whether a process of this network has joined a multicast group on an interface.

    The library joins no group on an interface without multicast, such as lo, and reports nothing.
    """
    wanted = f"{int.from_bytes(socket.inet_aton(group), 'little'):08X}"
    device = ""
    for line in Path(table).read_text(encoding="ascii").splitlines()[1:]:
        words = line.split()
        if not line[0].isspace():
            device = words[1].rstrip(":")
        elif device == interface and words[0] == wanted:
            return True
    return False
