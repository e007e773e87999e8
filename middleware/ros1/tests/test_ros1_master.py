"""Nodes without their master, at the master of another run, or with peers of another type."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from contract.conformance.cell import CellUnderTest
from contract.conformance.process import NodeProcess
from contract.conformance.spec import base_spec
from tests.ros1_peers import await_registered, error_reason, peer_of_another_type

BOTH = pytest.mark.parametrize("cell", ["ros1/python", "ros1/cpp"], indirect=True)


def error_of(cell: CellUnderTest, spec: dict[str, Any], folder: Path) -> str:
    """Start a node, and return the reason of its ERROR line, which must have code 4."""
    return error_reason(NodeProcess(cell, spec, folder, f"{spec['role']} ({cell.name})"))


def spec_of(
    cell: CellUnderTest, role: str, endpoint: str, run: str, timeout_ms: int
) -> dict[str, Any]:
    changes = {"run": run, "ready_timeout_ms": timeout_ms, "peers.endpoints": [endpoint]}
    return {**base_spec(cell, "topic", role), **changes}


@BOTH
def test_a_node_whose_master_has_ended_names_the_master(
    cell: CellUnderTest, tmp_path: Path
) -> None:
    with cell.service() as endpoints:
        pass
    reason = error_of(
        cell, spec_of(cell, "subscriber", endpoints[0], "gone", 20_000), tmp_path / "node"
    )
    assert f"no master at http://{endpoints[0]}/" in reason
    assert "is rosmaster running?" in reason


@BOTH
def test_a_node_at_the_master_of_another_run_says_so(
    cell: CellUnderTest, master: str, tmp_path: Path
) -> None:
    other_spec = spec_of(cell, "publisher", master, "other", 600_000)
    other = NodeProcess(cell, other_spec, tmp_path / "other", "publisher of another run")
    try:
        await_registered(master, "/wattwire_other/topic", "publisher")
        reason = error_of(
            cell, spec_of(cell, "subscriber", master, "own", 1_000), tmp_path / "node"
        )
    finally:
        other.kill()
    assert "matched 0 of 1 peers" in reason
    assert f"The master at http://{master}/ has nodes that are not of this run" in reason
    assert "is it the master of run own?" in reason


@pytest.mark.parametrize(
    ("cell", "role", "kind", "word"),
    [
        ("ros1/python", "publisher", "type", "std_msgs/Int32"),
        ("ros1/python", "publisher", "md5sum", "0" * 32),
        ("ros1/python", "subscriber", "md5sum", "0" * 32),
        ("ros1/cpp", "publisher", "type", "std_msgs/Int32"),
        ("ros1/cpp", "publisher", "md5sum", "0" * 32),
    ],
    indirect=["cell"],
)
def test_a_peer_with_another_type_ends_the_wait_at_once(
    cell: CellUnderTest, master: str, tmp_path: Path, role: str, kind: str, word: str
) -> None:
    topic, end = "/wattwire_own/topic", "subscriber" if role == "publisher" else "publisher"
    with peer_of_another_type(master, topic, kind, end, tmp_path):
        reason = error_of(cell, spec_of(cell, role, master, "own", 600_000), tmp_path / "node")
    assert "a peer has a topic of this run with another type" in reason
    assert word in reason
