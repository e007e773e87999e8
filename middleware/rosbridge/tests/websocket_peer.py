"""A client of the bridge on bare sockets, which can also break the WebSocket protocol."""

from __future__ import annotations

import json
import socket
from typing import Any

HANG_S = 60.0
TEXT, BINARY = 1, 2
HANDSHAKE = (
    "GET / HTTP/1.1\r\nHost: bridge\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)


def frame(payload: bytes, opcode: int = TEXT) -> bytes:
    """Return a masked frame, as RFC 6455 requires from clients."""
    length = len(payload)
    # The shortest form of the length is required.
    if length < 126:
        size = bytes([0x80 | length])
    elif length < 1 << 16:
        size = b"\xfe" + length.to_bytes(2, "big")
    else:
        size = b"\xff" + length.to_bytes(8, "big")
    mask = bytes(4)  # a mask of zeros leaves the payload as it is
    return bytes([0x80 | opcode]) + size + mask + payload


class WebSocketPeer:
    """An open connection to a bridge. `receive` skips frames that carry no message."""

    def __init__(self, endpoint: str) -> None:
        host, _, port = endpoint.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=HANG_S)
        self.socket.sendall(HANDSHAKE.encode())
        self._stream = self.socket.makefile("rb")
        status = self._stream.readline()
        assert status.startswith(b"HTTP/1.1 101 "), status
        while self._stream.readline().strip():
            pass

    def send(self, **operation: Any) -> None:
        self.send_text(json.dumps(operation))

    def send_text(self, text: str) -> None:
        self.socket.sendall(frame(text.encode()))

    def receive(self) -> Any:
        """Return the next message: the fields of JSON, or the bytes of a binary message."""
        while True:
            first, second = self._stream.read(2)
            length = second & 0x7F
            if length > 125:
                length = int.from_bytes(self._stream.read(2 if length == 126 else 8), "big")
            payload = self._stream.read(length)
            if first & 0xF == TEXT:
                return json.loads(payload)
            if first & 0xF == BINARY:
                return payload

    def close(self) -> None:
        self._stream.close()
        self.socket.close()
