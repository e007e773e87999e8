"""A peer of loopback nodes without a kit, for the conformance suite: one datagram per message."""

from __future__ import annotations

import os
import select
import socket
import struct

_FRAME = struct.Struct("<BQ")
_HANG_S = 20.0


class Wire:
    """A bound socket in the abstract namespace."""

    def __init__(self, token: str) -> None:
        name = f"wattwire-{token}-suite-{os.getpid()}"
        self.endpoint = f"@{name}"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 212_992)
        self._socket.bind("\0" + name)
        self._socket.settimeout(_HANG_S)

    def send(self, kind: int, number: int, data: bytes, endpoint: str) -> None:
        address = "\0" + endpoint.removeprefix("@")
        self._socket.sendto(_FRAME.pack(kind, number) + data, address)

    def receive(self, timeout_s: float) -> tuple[int, int, bytes, str] | None:
        if not select.select([self._socket], [], [], timeout_s)[0]:
            return None
        data, address = self._socket.recvfrom(300_000)
        name = address.decode() if isinstance(address, bytes) else str(address)
        return *_FRAME.unpack_from(data), data[_FRAME.size :], "@" + name.lstrip("\0")

    def close(self) -> None:
        self._socket.close()
