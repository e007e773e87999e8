"""The streams of senders and listeners, and READY."""

from __future__ import annotations

import platform
import select
import socket
from collections.abc import Callable

from stream import ATTACH, Frame, Stream, connect, prepare
from wattwire_kit import BadSpec, Kit, MiddlewareFailed

BACKLOG = 128


def connect_all(kit: Kit) -> list[Stream]:
    """Return a stream to each of peers.endpoints, in their order."""
    endpoints = kit.spec["peers.endpoints"]
    if len(endpoints) < max(1, kit.spec["peers.count"]):
        wanted = f"at least {max(1, kit.spec['peers.count'])} HOST:PORT"
        raise BadSpec("peers.endpoints", endpoints, wanted)
    return [connect(kit, endpoint) for endpoint in endpoints]


def connect_server(kit: Kit) -> tuple[Stream, Stream]:
    """Return a client's streams for requests and for replies; with one connection, the same."""
    requests = connect_all(kit)[0]
    if kit.setting("connections") == 1:
        return requests, requests
    replies = connect(kit, kit.spec["peers.endpoints"][0])
    # The port of the requests tells the server for which of its connections this one is.
    replies.send(ATTACH, requests.socket.getsockname()[1], b"")
    attached = replies.receive(kit.spec["ready_timeout_ms"] / 1e3)
    if attached is None or attached[0] != ATTACH:
        raise MiddlewareFailed("the server did not accept a second connection for replies")
    return requests, replies


def connect_successor(kit: Kit) -> Stream:
    """Return a relay's stream to the next node of the pipeline."""
    endpoints = kit.spec["peers.endpoints"]
    if not endpoints:
        raise BadSpec("peers.endpoints", endpoints, "at least one HOST:PORT")
    return connect(kit, endpoints[-1])


def listen_address(kit: Kit) -> str:
    """Return the address on which this node listens: the setting, or the host's if it is empty."""
    return str(kit.setting("bind_address") or kit.spec["host.address"])


class Listener:
    """A listening socket and the streams that it accepted."""

    def __init__(self, kit: Kit) -> None:
        self.socket = prepare(kit, socket.socket(socket.AF_INET, socket.SOCK_STREAM))
        self.accepted = 0
        self._kit = kit
        self._streams: list[Stream] = []
        host = listen_address(kit)
        try:
            self.socket.bind((host, 0))
            self.socket.listen(BACKLOG)
        except OSError as error:
            raise MiddlewareFailed(f"listen on {host}: {error}") from error
        self.socket.setblocking(False)
        kit.listening([f"{host}:{self.socket.getsockname()[1]}"])

    def poll(self, timeout_s: float, handle: Callable[[Stream, Frame], object]) -> None:
        """Wait for arrivals, accept connections, and pass every complete frame to `handle`."""
        readable = select.select((self.socket, *self._streams), (), (), timeout_s)[0]
        for ready in readable:
            if not isinstance(ready, Stream):
                self._accept()
                continue
            ready.read()
            while ready.open and (frame := ready.take()) is not None:
                handle(ready, frame)
            if not ready.open:
                self._streams.remove(ready)

    def _accept(self) -> None:
        try:
            opened, peer = self.socket.accept()
        except OSError:
            return  # the peer has already closed the connection
        stream = Stream(self._kit, opened)
        stream.peer = peer
        self._streams.append(stream)
        self.accepted += 1

    def close(self) -> None:
        for stream in self._streams:
            stream.close()
        self.socket.close()


def ready(kit: Kit, asked: socket.socket, matched: int, discovery_ns: int | None) -> None:
    """Print READY; `asked` is the socket whose options are reported."""
    tcp, own = socket.IPPROTO_TCP, socket.SOL_SOCKET
    effective = {
        "tcp_nodelay": bool(asked.getsockopt(tcp, socket.TCP_NODELAY)),
        "receive_buffer_bytes": asked.getsockopt(own, socket.SO_RCVBUF),
        "send_buffer_bytes": asked.getsockopt(own, socket.SO_SNDBUF),
        "bind_address": listen_address(kit),
        "segment_bytes": asked.getsockopt(tcp, socket.TCP_MAXSEG),
        "transport": "tcp/ipv4",
    }
    library = ("socket", platform.release(), f"CPython {platform.python_version()}")
    kit.ready(matched, library, effective, ("reliable", "per_sender", "block"), discovery_ns)
