"""Read the open sockets of a process and of its descendants from /proc."""

from __future__ import annotations

import contextlib
import ctypes
import ipaddress
import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
STREAMS, DATAGRAMS = ((name[:-1], name) for name in ("tcp6", "udp6"))
"""The files in /proc/PID/net with the sockets of IPv4 and of IPv6."""
LISTENS = "0A"
"""The state of a listening socket in these files."""
PIDFD_GETFD = 438
"""The number of this system call, which is the same on all architectures."""
INTERFACE_NAME_BYTES = 16
V4_MAPPED = "0000000000000000FFFF0000"


@dataclass(frozen=True)
class OpenSocket:
    """A socket that accepts connections or datagrams from any peer.

    `device` is the network interface to which the socket is bound, or "" if it is bound to none.
    """

    protocol: str
    address: str
    port: int
    device: str

    def __str__(self) -> str:
        device = f" on device {self.device}" if self.device else ""
        return f"{self.protocol} {self.address}:{self.port}{device}"


def open_sockets(root: int) -> list[OpenSocket]:
    """Return the open sockets of the process `root` and its descendants.

    These are listening TCP sockets and UDP sockets without a peer. The kernel chooses the local
    address of a connected socket by the route to its peer, so connected sockets are not returned.
    """
    sockets = {}
    for pid in _processes(root):
        with contextlib.suppress(OSError):  # the process has ended
            table = _table(pid)
            for inode, descriptor in _descriptors(pid):
                if inode in table:
                    protocol, address, port = table[inode]
                    device = "" if protocol in STREAMS else _device(pid, descriptor)
                    sockets[inode] = OpenSocket(protocol, address, port, device)
    return list(sockets.values())


def _processes(root: int) -> set[int]:
    """Return the processes of the session `root` and all their descendants."""
    parents, pids = {}, {root}
    for stat in PROC.glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            pid, parent, session = int(stat.parent.name), int(fields[1]), int(fields[3])
            parents[pid] = parent
            if session == root:
                pids.add(pid)
    while added := {pid for pid, parent in parents.items() if parent in pids} - pids:
        pids |= added
    return pids


def _descriptors(pid: int) -> Iterator[tuple[str, int]]:
    """Yield (inode, descriptor) for each socket of a process."""
    for link in (PROC / str(pid) / "fd").iterdir():
        with contextlib.suppress(OSError):
            target = os.readlink(link)
            if target.startswith("socket:["):
                yield target[8:-1], int(link.name)


def _table(pid: int) -> dict[str, tuple[str, str, int]]:
    """Return inode => (protocol, address, port) of the open sockets of a process's namespace."""
    table = {}
    for protocol in (*STREAMS, *DATAGRAMS):
        path = PROC / str(pid) / "net" / protocol
        lines = path.read_text().splitlines()[1:] if path.exists() else []
        for line in lines:
            local, remote, state, inode = (line.split()[i] for i in (1, 2, 3, 9))
            has_peer = not remote.endswith(":0000")
            if state == LISTENS if protocol in STREAMS else not has_peer:
                address, port = local.split(":")
                table[inode] = protocol, _address(address), int(port, 16)
    return table


def _address(digits: str) -> str:
    """Return an address of /proc/net as text; an IPv4 address in IPv6 (RFC 4291) as IPv4."""
    if digits.startswith(V4_MAPPED):
        digits = digits[len(V4_MAPPED) :]
    words = [bytes.fromhex(digits[at : at + 8])[::-1] for at in range(0, len(digits), 8)]
    return str(ipaddress.ip_address(b"".join(words)))


def _device(pid: int, descriptor: int) -> str:
    """Return the network interface to which a socket of a process is bound (SO_BINDTODEVICE)."""
    process = os.pidfd_open(pid)
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        copy = libc.syscall(PIDFD_GETFD, process, descriptor, 0)
    finally:
        os.close(process)
    if copy < 0:  # the kernel has no such call, or does not allow it
        return ""
    with socket.socket(fileno=copy) as copied:
        level, option = socket.SOL_SOCKET, socket.SO_BINDTODEVICE
        name = copied.getsockopt(level, option, INTERFACE_NAME_BYTES)
    return name.rstrip(b"\0").decode()
