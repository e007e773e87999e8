"""Clients on libraries: without a bridge, and with a bridge that ends or reports an error."""

from __future__ import annotations

import contextlib
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
from tests.built_cells import built_cells
from tests.ros1_peers import error_reason, peer_of_another_type

CLIENTS = [
    "roslibpy",
    *(pytest.param(name, marks=pytest.mark.matrix) for name in ("javascript", "rust")),
]


@pytest.fixture(scope="module", params=CLIENTS)
def cell(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[CellUnderTest]:
    name = f"rosbridge/{request.param}"
    with built_cells([name], tmp_path_factory.mktemp("built")) as cells:
        yield cells[name]


def node(
    cell: CellUnderTest, role: str, run: str, endpoints: list[str], folder: Path, timeout_ms: int
) -> NodeProcess:
    spec: dict[str, Any] = base_spec(cell, "topic", role)
    spec |= {"run": run, "peers.endpoints": endpoints, "ready_timeout_ms": timeout_ms}
    return NodeProcess(cell, spec, folder, role)


def test_a_client_without_a_bridge_names_its_address(cell: CellUnderTest, tmp_path: Path) -> None:
    with cell.service() as endpoints:
        pass
    # The libraries try to connect until the timeout.
    client = node(cell, "subscriber", new_token(), endpoints, tmp_path / "node", 1_000)
    reason = error_reason(client)
    assert f"no bridge at websocket {endpoints[1]}" in reason
    assert "is it running?" in reason


def test_clients_whose_bridge_ends_in_the_window_end_too(
    cell: CellUnderTest, tmp_path: Path
) -> None:
    members = pair(cell, cell, "topic", {"duration_ns": 600 * 1_000_000_000})
    with contextlib.ExitStack() as stack:
        with cell.service() as endpoints:
            group = stack.enter_context(Bench(cell, tmp_path, endpoints).group("topic", members))
            group.start()
            group.go()
            time.sleep(0.5)
        for client in group.nodes:
            assert "the bridge was lost" in error_reason(client)


@pytest.mark.parametrize(
    "role", ["publisher", pytest.param("subscriber", marks=pytest.mark.matrix)]
)
def test_a_ros_node_with_another_type_ends_the_wait_at_once(
    cell: CellUnderTest, tmp_path: Path, role: str
) -> None:
    run = new_token()
    topic, end = f"/wattwire_{run}/topic", "subscriber" if role == "publisher" else "publisher"
    with (
        cell.service() as endpoints,
        peer_of_another_type(endpoints[0], topic, "md5sum", end, tmp_path),
    ):
        reason = error_reason(node(cell, role, run, endpoints, tmp_path / "node", 600_000))
    assert f"{topic} has an end of another type" in reason
