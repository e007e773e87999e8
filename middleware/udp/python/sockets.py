"""Opening sockets, and saying what the kernel really granted."""

from __future__ import annotations

import platform
import select
import socket

from wattwire_kit import BadSpec, Kit, MiddlewareFailed

Address = tuple[str, int]
MESSAGE_BYTES_MAX = 65_535


def open_socket(kit: Kit) -> socket.socket:
    opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for name, option in (
        ("receive_buffer_bytes", socket.SO_RCVBUF),
        ("send_buffer_bytes", socket.SO_SNDBUF),
    ):
        if kit.setting(name):
            opened.setsockopt(socket.SOL_SOCKET, option, kit.setting(name))
    return opened


def open_sender(kit: Kit, addresses: list[Address]) -> socket.socket:
    """A socket with a free port, on the one interface that leads to all addresses."""
    opened = open_socket(kit)
    own = {_own_host(address) for address in addresses}
    try:
        opened.bind((own.pop() if len(own) == 1 else "", 0))
    except OSError as error:
        raise MiddlewareFailed(f"bind to a free port: {error}") from error
    return opened


def _own_host(peer: Address) -> str:
    """This host's address on the way to a peer; "" where no way is known. Sends nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(peer)
        except OSError:
            return ""
        return str(probe.getsockname()[0])


def listen(kit: Kit) -> socket.socket:
    """A socket on settings.bind_address and bind_port (0: a free one); prints LISTENING."""
    opened = open_socket(kit)
    wanted = kit.setting("bind_address"), kit.setting("bind_port")
    try:
        opened.bind(wanted)
    except OSError as error:
        raise MiddlewareFailed(f"bind {wanted[0]}:{wanted[1]}: {error}") from error
    host, port = opened.getsockname()
    kit.listening([f"{host}:{port}"])
    return opened


def peer_addresses(kit: Kit) -> list[Address]:
    """Where a sender sends to: settings.endpoint_override, or peers.endpoints."""
    override = kit.setting("endpoint_override")
    key = "settings.endpoint_override" if override else "peers.endpoints"
    endpoints = override.split(",") if override else kit.spec["peers.endpoints"]
    addresses = []
    for endpoint in endpoints:
        host, _, port = endpoint.rpartition(":")
        if not host or not port.isdecimal() or int(port) > 65535:
            raise BadSpec(key, endpoint, "HOST:PORT")
        addresses.append((host, int(port)))
    if not addresses:
        raise BadSpec(key, endpoints, "at least one HOST:PORT")
    return addresses


def ready(kit: Kit, opened: socket.socket, discovery_ns: int | None = None) -> None:
    """READY of a datagram socket: it cannot tell who is there, so `matched` is null."""
    granted = {
        "receive_buffer_bytes": opened.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF),
        "send_buffer_bytes": opened.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF),
        "bind_address": kit.setting("bind_address"),
        "bind_port": kit.setting("bind_port"),
        "endpoint_override": kit.setting("endpoint_override"),
        "transport": "udp/ipv4",
    }
    library = ("socket", platform.release(), f"CPython {platform.python_version()}")
    kit.ready(None, library, granted, ("best_effort", "none", "drop_newest"), discovery_ns)


def receive(opened: socket.socket, timeout_s: float) -> tuple[bytes, Address] | None:
    """(data, sender), or None at the timeout. An error of an earlier send is not an arrival."""
    # select, because its timeout has microseconds where a socket's has milliseconds
    if not select.select((opened,), (), (), timeout_s)[0]:
        return None
    try:
        return opened.recvfrom(MESSAGE_BYTES_MAX)
    except ConnectionRefusedError:
        return None
