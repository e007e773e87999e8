"""Calls whose requests and replies use separate connections, and the modes of acknowledgements."""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from contract.conformance.cell import CellUnderTest
from contract.conformance.group import Member, pair
from contract.conformance.payload import payload
from contract.conformance.process import NodeProcess
from contract.conformance.scenario import Bench
from contract.conformance.spec import SEED, base_spec
from tests.built_cells import built_cells

HANG_S = 120.0
HEAD = struct.Struct("<IBQ")
REQUEST, REPLY, ATTACHMENT = 1, 2, 3
ONE_WAY = {"settings.connections": 2}
CELLS = ("tcp/python", "tcp/cpp")


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, CellUnderTest]]:
    with built_cells(CELLS, tmp_path_factory.mktemp("tcp")) as built:
        yield built


@pytest.mark.parametrize(("client", "server"), [CELLS, CELLS[::-1]])
@pytest.mark.parametrize("quickack", ["on", "off"])
def test_calls_over_two_connections_follow_the_contract(
    cells: dict[str, CellUnderTest], tmp_path: Path, client: str, server: str, quickack: str
) -> None:
    changes = {**ONE_WAY, "settings.tcp_quickack": quickack, "loop": "closed", "count": 5}
    changes |= {"period_ns": 0, "duration_ns": 0}
    members = pair(cells[client], cells[server], "pingpong", changes)
    bench = Bench(cells[client], tmp_path, ())
    assert bench.whole_run("pingpong", members=members) == []


@pytest.mark.parametrize("server", CELLS)
def test_each_of_two_clients_gets_its_own_replies(
    cells: dict[str, CellUnderTest], tmp_path: Path, server: str
) -> None:
    clients = [Member(cells[name], "client", dict(ONE_WAY)) for name in CELLS]
    members = [*clients, Member(cells[server], "server", dict(ONE_WAY))]
    bench = Bench(cells[server], tmp_path, ())
    assert bench.whole_run("service", members=members) == []


@pytest.mark.parametrize("server", CELLS)
def test_the_reply_to_a_request_arrives_on_the_attached_connection(
    cells: dict[str, CellUnderTest], tmp_path: Path, server: str
) -> None:
    spec = {**base_spec(cells[server], "service", "server"), **ONE_WAY}
    request = payload(spec["peers.nodes"][0] << 48, 0, spec["payload.bytes"], SEED, text=False)
    with serving(cells[server], spec, tmp_path) as address:
        requests, replies = connected(address), connected(address)
        port = requests.getsockname()[1]
        replies.sendall(HEAD.pack(0, ATTACHMENT, port))
        assert received(replies) == (ATTACHMENT, port, b"")
        requests.sendall(HEAD.pack(len(request), REQUEST, 7) + request)
        assert received(replies) == (REPLY, 7, request)
        requests.setblocking(False)
        with pytest.raises(BlockingIOError):
            requests.recv(1)


@pytest.mark.parametrize("server", CELLS)
def test_a_node_with_one_connection_rejects_an_attachment(
    cells: dict[str, CellUnderTest], tmp_path: Path, server: str
) -> None:
    with serving(cells[server], base_spec(cells[server], "service", "server"), tmp_path) as address:
        stream = connected(address)
        stream.sendall(HEAD.pack(0, ATTACHMENT, 1))
        assert stream.recv(1) == b""


@contextlib.contextmanager
def serving(cell: CellUnderTest, spec: dict[str, Any], folder: Path) -> Iterator[tuple[str, int]]:
    """Start a server, and yield the address on which it listens."""
    node = NodeProcess(cell, spec, folder / "server", f"server ({cell.name})")
    try:
        line = node.wait_line("LISTENING", HANG_S)
        assert line is not None and line.fields is not None, node.last_output()
        host, _, port = line.fields["endpoints"][0].rpartition(":")
        yield host, int(port)
    finally:
        node.kill()


def connected(address: tuple[str, int]) -> socket.socket:
    return socket.create_connection(address, HANG_S)


def received(stream: socket.socket) -> tuple[int, int, bytes]:
    """Return the kind, the number and the payload of the next frame."""
    with stream.makefile("rb") as file:
        length, kind, number = HEAD.unpack(file.read(HEAD.size))
        return kind, number, file.read(length)
