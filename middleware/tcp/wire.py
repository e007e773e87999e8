"""A peer of TCP nodes without a kit, for the conformance suite: README.md has the frame."""

from __future__ import annotations

import contextlib
import queue
import socket
import struct
import threading

_HEAD = struct.Struct("<IBQ")
Frame = tuple[int, int, bytes, str]


class Wire:
    """A listener, with connections to endpoints; a thread reads each connection."""

    def __init__(self, token: str) -> None:
        del token  # the address identifies this peer (C-18)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.endpoint = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._streams: dict[str, socket.socket] = {}
        self._arrived: queue.Queue[Frame] = queue.Queue()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # the listener was closed
            while True:
                stream, (host, port) = self._listener.accept()
                self._attend(f"{host}:{port}", stream)

    def _attend(self, name: str, stream: socket.socket) -> None:
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._streams[name] = stream
        threading.Thread(target=self._read, args=(name, stream), daemon=True).start()

    def _read(self, name: str, stream: socket.socket) -> None:
        with contextlib.suppress(OSError), stream.makefile("rb") as file:
            while len(head := file.read(_HEAD.size)) == _HEAD.size:
                length, kind, number = _HEAD.unpack(head)
                self._arrived.put((kind, number, file.read(length), name))

    def send(self, kind: int, number: int, data: bytes, endpoint: str) -> None:
        if endpoint not in self._streams:
            host, _, port = endpoint.rpartition(":")
            self._attend(endpoint, socket.create_connection((host, int(port))))
        self._streams[endpoint].sendall(_HEAD.pack(len(data), kind, number) + data)

    def receive(self, timeout_s: float) -> Frame | None:
        try:
            return self._arrived.get(timeout=timeout_s)
        except queue.Empty:
            return None

    def close(self) -> None:
        for opened in (self._listener, *self._streams.values()):
            with contextlib.suppress(OSError):
                opened.shutdown(socket.SHUT_RDWR)  # wakes the reading thread
            opened.close()
