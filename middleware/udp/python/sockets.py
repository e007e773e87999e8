"""Opens sockets, and reports the sizes that the kernel granted."""

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


def open_sender(kit: Kit) -> socket.socket:
    """Return a socket that is bound to a free port of the host's address."""
    opened = open_socket(kit)
    try:
        opened.bind((kit.spec["host.address"], 0))
    except OSError as error:
        raise MiddlewareFailed(f"bind to a free port: {error}") from error
    return opened


def listen_address(kit: Kit) -> str:
    """Return the address on which this node listens: the setting, or the host's if it is empty."""
    return str(kit.setting("bind_address") or kit.spec["host.address"])


def listen(kit: Kit) -> socket.socket:
    """Bind `listen_address` and settings.bind_port (0: a free port), and print LISTENING."""
    opened = open_socket(kit)
    wanted = listen_address(kit), kit.setting("bind_port")
    try:
        opened.bind(wanted)
    except OSError as error:
        raise MiddlewareFailed(f"bind {wanted[0]}:{wanted[1]}: {error}") from error
    host, port = opened.getsockname()
    kit.listening([f"{host}:{port}"])
    return opened


def peer_addresses(kit: Kit) -> list[Address]:
    """Return a sender's destinations: settings.endpoint_override, or peers.endpoints."""
    override = kit.setting("endpoint_override")
    key = "settings.endpoint_override" if override else "peers.endpoints"
    return _addresses(key, override.split(",") if override else kit.spec["peers.endpoints"])


def successor_address(kit: Kit) -> Address:
    """Return the address of a relay's next node; settings.endpoint_override is only for senders."""
    return _addresses("peers.endpoints", kit.spec["peers.endpoints"])[-1]


def _addresses(key: str, endpoints: list[str]) -> list[Address]:
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
    """Print READY; a datagram socket does not know its peers, so `matched` is null."""
    granted = {
        "receive_buffer_bytes": opened.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF),
        "send_buffer_bytes": opened.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF),
        "bind_address": listen_address(kit),
        "transport": "udp/ipv4",
    }
    library = ("socket", platform.release(), f"CPython {platform.python_version()}")
    kit.ready(None, library, granted, ("best_effort", "none", "drop_newest"), discovery_ns)


def receive(opened: socket.socket, timeout_s: float) -> tuple[bytes, Address] | None:
    """Return (data, sender), or None at the timeout or at an error of an earlier send."""
    # The timeout of select has a resolution of 1 µs, that of a socket 1 ms.
    if not select.select((opened,), (), (), timeout_s)[0]:
        return None
    try:
        return opened.recvfrom(MESSAGE_BYTES_MAX)
    except ConnectionRefusedError:
        return None
