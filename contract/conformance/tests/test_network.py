"""Test that the suite finds the open sockets of a process and of its children."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from contract.conformance.network.scenarios import is_on_host
from contract.conformance.network.sockets import OpenSocket, open_sockets

ADDRESS = "127.0.0.2"
CHILD = """
import socket, sys
listener = socket.create_server(("127.0.0.3", 0))
print(listener.getsockname()[1], flush=True)
sys.stdin.read()
"""


def opened(kind: socket.SocketKind, address: str = ADDRESS) -> socket.socket:
    own = socket.socket(socket.AF_INET, kind)
    own.bind((address, 0))
    return own


def own_sockets(port: int) -> list[OpenSocket]:
    """Return the open sockets of this process with a port."""
    return [one for one in open_sockets(os.getpid()) if one.port == port]


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with opened(socket.SOCK_STREAM) as own:
        own.listen()
        yield own


def test_a_listening_socket_is_open(listener: socket.socket) -> None:
    port = listener.getsockname()[1]
    assert own_sockets(port) == [OpenSocket("tcp", ADDRESS, port, "")]


def test_connected_sockets_are_not_open(listener: socket.socket) -> None:
    with socket.create_connection(listener.getsockname()) as client:
        assert own_sockets(client.getsockname()[1]) == []
    with opened(socket.SOCK_DGRAM) as receiver, opened(socket.SOCK_DGRAM) as sender:
        sender.connect(receiver.getsockname())
        assert own_sockets(sender.getsockname()[1]) == []
        assert len(own_sockets(receiver.getsockname()[1])) == 1


def test_a_socket_for_all_addresses_is_reported_as_such() -> None:
    with opened(socket.SOCK_DGRAM, "0.0.0.0") as receiver:
        port = receiver.getsockname()[1]
        assert own_sockets(port) == [OpenSocket("udp", "0.0.0.0", port, "")]


def test_an_ipv4_address_of_an_ipv6_socket_is_reported_as_ipv4() -> None:
    with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as own:
        own.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        try:
            own.bind((f"::ffff:{ADDRESS}", 0))
        except OSError as error:
            pytest.skip(f"no IPv6: {error}")
        own.listen()
        port = own.getsockname()[1]
        assert own_sockets(port) == [OpenSocket("tcp6", ADDRESS, port, "")]


def test_the_device_of_a_datagram_socket_is_reported() -> None:
    with opened(socket.SOCK_DGRAM, "0.0.0.0") as receiver:
        try:
            receiver.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo\0")
        except OSError as error:
            pytest.skip(f"SO_BINDTODEVICE: {error}")
        port = receiver.getsockname()[1]
        assert own_sockets(port) == [OpenSocket("udp", "0.0.0.0", port, "lo")]


def test_the_sockets_of_children_are_included() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        port = int(child.stdout.readline())
        assert own_sockets(port) == [OpenSocket("tcp", "127.0.0.3", port, "")]
        child.communicate()


@pytest.mark.parametrize(
    ("local", "device", "host", "expected"),
    [
        ("10.77.0.1", "", "10.77.0.1", True),
        ("0.0.0.0", "", "10.77.0.1", False),
        ("0.0.0.0", "lan", "10.77.0.1", True),
        ("0.0.0.0", "other", "10.77.0.1", False),
        ("127.0.0.1", "", "10.77.0.1", True),
        ("127.0.0.1", "", "127.0.0.2", False),
        ("10.77.0.2", "", "10.77.0.1", False),
    ],
)
def test_a_socket_is_on_the_host_unless_others_can_reach_it_otherwise(
    local: str, device: str, host: str, expected: bool
) -> None:
    assert is_on_host(OpenSocket("udp", local, 7400, device), host, "lan") is expected
