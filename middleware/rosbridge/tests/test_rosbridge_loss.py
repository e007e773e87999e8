"""Clients without a bridge, whose bridge ends, or whose topic has another type in ROS."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from contract.conformance.cell import CellUnderTest
from contract.conformance.group import pair
from contract.conformance.process import NodeProcess
from contract.conformance.scenario import Bench
from contract.conformance.spec import base_spec, new_token
from middleware.rosbridge.tests.conftest import CLIENT
from tests.built_cells import built_cells
from tests.ros1_peers import error_reason, peer_of_another_type

SERVERS = ("websocket", "tcp", "udp")
"""The bridge's servers in the order of their endpoints, which follow that of the master."""


@pytest.fixture(
    scope="module", params=[CLIENT, pytest.param("rosbridge/octave", marks=pytest.mark.matrix)]
)
def cell(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[CellUnderTest]:
    with built_cells([request.param], tmp_path_factory.mktemp("built")) as cells:
        yield cells[request.param]


def client(
    cell: CellUnderTest, role: str, run: str, endpoints: list[str], folder: Path
) -> NodeProcess:
    spec: dict[str, Any] = base_spec(cell, "topic", role)
    spec |= {"run": run, "peers.endpoints": endpoints, "ready_timeout_ms": 600_000}
    return NodeProcess(cell, spec, folder, role)


def test_a_client_without_a_bridge_names_its_address(cell: CellUnderTest, tmp_path: Path) -> None:
    with cell.service() as endpoints:
        pass
    reason = error_reason(client(cell, "subscriber", new_token(), endpoints, tmp_path / "node"))
    server = cell.settings["server"]
    assert f"no bridge at {server} {endpoints[1 + SERVERS.index(server)]}" in reason
    assert "is it running?" in reason


def test_a_client_whose_bridge_has_lost_its_master_names_the_master(
    cell: CellUnderTest, tmp_path: Path
) -> None:
    with cell.service() as endpoints:
        os.kill(process_of_master(endpoints[0]), signal.SIGKILL)
        reason = error_reason(client(cell, "publisher", new_token(), endpoints, tmp_path / "node"))
    assert f"advertise: no master at http://{endpoints[0]}/; is rosmaster running?" in reason


def process_of_master(endpoint: str) -> int:
    """Return the process id of the master with this endpoint."""
    command = f"--core\0-p\0{endpoint.rpartition(':')[2]}\0".encode()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # a process that has ended
            if path.read_bytes().endswith(command):
                return int(path.parent.name)
    raise AssertionError(f"no process of the master at {endpoint}")


def test_clients_whose_bridge_ends_in_the_window_end_too(
    cell: CellUnderTest, tmp_path: Path
) -> None:
    changes = {"duration_ns": 600 * 1_000_000_000}
    members = pair(cell, cell, "topic", changes)
    with contextlib.ExitStack() as stack:
        with cell.service() as endpoints:
            bench = Bench(cell, tmp_path, endpoints)
            group = stack.enter_context(bench.group("topic", members))
            group.start()
            group.go()
            time.sleep(0.5)
        for node in group.nodes:
            assert "the bridge was lost" in error_reason(node)


@pytest.mark.parametrize(
    ("role", "kind", "word"),
    [
        ("publisher", "type", "std_msgs/Int32"),
        ("publisher", "md5sum", "0" * 32),
        ("subscriber", "md5sum", "0" * 32),
    ],
)
def test_a_ros_node_with_another_type_ends_the_wait_at_once(
    cell: CellUnderTest, tmp_path: Path, role: str, kind: str, word: str
) -> None:
    run = new_token()
    topic, end = f"/wattwire_{run}/topic", "subscriber" if role == "publisher" else "publisher"
    with (
        cell.service() as endpoints,
        peer_of_another_type(endpoints[0], topic, kind, end, tmp_path),
    ):
        reason = error_reason(client(cell, role, run, endpoints, tmp_path / "node"))
    assert f"{topic} has an end of another type" in reason
    assert word in reason
