"""Connections to the bridge over WebSocket, TCP and UDP."""

from __future__ import annotations

import select
import socket
from collections import deque
from typing import Any

from streams import InvalidStream, MessageStream
from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.sync.client import connect

MESSAGE_BYTES_MAX = 1 << 24
"""Longest message of the bridge. websockets' default of 1 MiB is too short for large payloads."""
DATAGRAM_BYTES_MAX = 65_507
READ_BYTES = 1 << 16


class Lost(Exception):
    """No connection to the bridge: it could not be opened, or it has ended."""


class WebSocket:
    """A connection of websockets, at the library's defaults without compression."""

    def __init__(self, host: str, port: int, timeout_s: float) -> None:
        try:
            self._connection = connect(
                f"ws://{host}:{port}", open_timeout=timeout_s, compression=None,
                max_size=MESSAGE_BYTES_MAX,
            )  # fmt: skip
        except (OSError, InvalidHandshake, EOFError) as error:
            raise Lost(str(error)) from error

    def send(self, text: str) -> None:
        try:
            self._connection.send(text)
        except ConnectionClosed as error:
            raise Lost(str(error)) from error

    def receive(self, timeout_s: float) -> str | bytes | None:
        """Return the next message, or None at the timeout. Raise Lost if the connection ended."""
        try:
            return self._connection.recv(timeout_s)
        except TimeoutError:
            return None
        except ConnectionClosed as error:
            raise Lost(str(error)) from error

    def close(self) -> None:
        self._connection.close()


class Tcp:
    """A connection on which messages follow each other without a separator."""

    def __init__(self, host: str, port: int, timeout_s: float) -> None:
        try:
            self._socket = socket.create_connection((host, port), timeout_s)
        except OSError as error:
            raise Lost(str(error)) from error
        self._socket.settimeout(None)
        self._stream = MessageStream(MESSAGE_BYTES_MAX)
        self._messages: deque[bytes] = deque()

    def send(self, text: str) -> None:
        try:
            self._socket.sendall(text.encode())
        except OSError as error:
            raise Lost(str(error)) from error

    def receive(self, timeout_s: float) -> bytes | None:
        """Return the next message, or None if none is complete when bytes arrive or time is up."""
        if not self._messages and is_readable(self._socket, timeout_s):
            try:
                arrived = self._socket.recv(READ_BYTES)
                self._messages.extend(self._stream.messages(arrived))
            except (OSError, InvalidStream) as error:
                raise Lost(str(error)) from error
            if not arrived:
                raise Lost("it closed the connection")
        return self._messages.popleft() if self._messages else None

    def close(self) -> None:
        self._socket.close()


class Udp:
    """A socket whose peer is the bridge. A datagram is a message."""

    def __init__(self, host: str, port: int, _timeout_s: float) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.connect((host, port))

    def send(self, text: str) -> None:
        try:
            self._socket.send(text.encode())
        except OSError as error:
            raise Lost(str(error)) from error

    def receive(self, timeout_s: float) -> bytes | None:
        try:
            is_due = is_readable(self._socket, timeout_s)
            return self._socket.recv(DATAGRAM_BYTES_MAX) if is_due else None
        except OSError as error:  # such as the refusal of a host without the bridge
            raise Lost(str(error)) from error

    def close(self) -> None:
        self._socket.close()


def is_readable(sock: socket.socket, timeout_s: float) -> bool:
    return bool(select.select([sock], [], [], timeout_s)[0])


TRANSPORTS: dict[str, Any] = {"websocket": WebSocket, "tcp": Tcp, "udp": Udp}
"""Value of the setting `server` → the transport."""
