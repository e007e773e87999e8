"""Nodes without their master, at the master of another run, or with peers of another type."""

from __future__ import annotations

import subprocess
import time
import xmlrpc.client
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from contract.conformance.cell import CellUnderTest
from contract.conformance.process import NodeProcess
from contract.conformance.spec import base_spec

HANG_S = 120.0
BOTH = pytest.mark.parametrize("cell", ["ros1/python", "ros1/cpp"], indirect=True)
PEER = """
import os, sys
uri, topic, kind, end = sys.argv[1:]
os.environ.update(ROS_MASTER_URI=uri, ROS_IP="127.0.0.1", ROS_HOME=".", ROS_LOG_DIR=".")
import rospy
from std_msgs.msg import Int32, UInt8MultiArray

class Altered(UInt8MultiArray):
    _md5sum = "0" * 32

rospy.init_node("peer", argv=[], disable_signals=True)
data_type = {"type": Int32, "md5sum": Altered}[kind]
if end == "publisher":
    rospy.Publisher(topic, data_type, queue_size=1)
else:
    rospy.Subscriber(topic, data_type, print)
rospy.spin()
"""


def error_of(cell: CellUnderTest, spec: dict[str, Any], folder: Path) -> str:
    """Start a node, and return the reason of its ERROR line, which must have code 4."""
    node = NodeProcess(cell, spec, folder, f"{spec['role']} ({cell.name})")
    try:
        line = node.wait_line("ERROR", HANG_S)
        assert line is not None and line.fields is not None, node.last_output()
        assert line.fields["code"] == 4, line.fields
        return str(line.fields["reason"])
    finally:
        node.kill()


def spec_of(
    cell: CellUnderTest, role: str, endpoint: str, run: str, timeout_ms: int
) -> dict[str, Any]:
    changes = {"run": run, "ready_timeout_ms": timeout_ms, "peers.endpoints": [endpoint]}
    return {**base_spec(cell, "topic", role), **changes}


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + HANG_S
    while not condition():
        assert time.monotonic() < deadline, "the node was not registered"
        time.sleep(0.05)


def is_registered(endpoint: str, topic: str, end: str) -> bool:
    """Return whether the master knows a publisher or subscriber of the topic."""
    state: Any = xmlrpc.client.ServerProxy(f"http://{endpoint}/").getSystemState("/test")
    nodes_by_topic = state[2][("publisher", "subscriber").index(end)]
    return topic in [name for name, _ in nodes_by_topic]


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
        wait_for(lambda: is_registered(master, "/wattwire_other/topic", "publisher"))
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
    peer = subprocess.Popen(
        ["/usr/bin/python3", "-c", PEER, f"http://{master}/", topic, kind, end], cwd=tmp_path
    )
    try:
        wait_for(lambda: is_registered(master, topic, end))
        reason = error_of(cell, spec_of(cell, role, master, "own", 600_000), tmp_path / "node")
    finally:
        peer.kill()
        peer.wait()
    assert "a peer has a topic of this run with another type" in reason
    assert word in reason
