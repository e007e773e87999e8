"""Clients without a bridge, whose bridge ends, or whose topic has another type in ROS."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
import xmlrpc.client
from pathlib import Path
from typing import Any

import pytest

from contract.conformance.cell import CellUnderTest
from contract.conformance.group import pair
from contract.conformance.process import NodeProcess
from contract.conformance.scenario import Bench
from contract.conformance.spec import base_spec, new_token

HANG_S = 120.0
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


def reason_of(node: NodeProcess) -> str:
    """Return the reason of a node's ERROR line, which must have code 4, and end the node."""
    try:
        line = node.wait_line("ERROR", HANG_S)
        assert line is not None and line.fields is not None, node.last_output()
        assert line.fields["code"] == 4, line.fields
        return str(line.fields["reason"])
    finally:
        node.kill()


def client(
    cell: CellUnderTest, role: str, run: str, endpoints: list[str], folder: Path
) -> NodeProcess:
    spec: dict[str, Any] = base_spec(cell, "topic", role)
    spec |= {"run": run, "peers.endpoints": endpoints, "ready_timeout_ms": 600_000}
    return NodeProcess(cell, spec, folder, role)


def test_a_client_without_a_bridge_names_its_address(cell: CellUnderTest, tmp_path: Path) -> None:
    with cell.service() as endpoints:
        pass
    reason = reason_of(client(cell, "subscriber", new_token(), endpoints, tmp_path / "node"))
    assert f"no bridge at websocket {endpoints[1]}" in reason
    assert "is it running?" in reason


def test_a_client_whose_bridge_has_lost_its_master_names_the_master(
    cell: CellUnderTest, tmp_path: Path
) -> None:
    with cell.service() as endpoints:
        os.kill(process_of_master(endpoints[0]), signal.SIGKILL)
        reason = reason_of(client(cell, "publisher", new_token(), endpoints, tmp_path / "node"))
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
            assert "the bridge was lost" in reason_of(node)


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
    with cell.service() as endpoints:
        uri = f"http://{endpoints[0]}/"
        command = ["/usr/bin/python3", "-c", PEER, uri, topic, kind, end]
        peer = subprocess.Popen(command, cwd=tmp_path)
        try:
            await_registered(uri, topic, end)
            reason = reason_of(client(cell, role, run, endpoints, tmp_path / "node"))
        finally:
            peer.kill()
            peer.wait()
    assert f"{topic} has an end of another type" in reason
    assert word in reason


def await_registered(uri: str, topic: str, end: str) -> None:
    """Wait until the master knows a publisher or subscriber of the topic."""
    deadline_s = time.monotonic() + HANG_S
    while True:
        state: Any = xmlrpc.client.ServerProxy(uri).getSystemState("/test")
        nodes_by_topic = state[2][("publisher", "subscriber").index(end)]
        if topic in [name for name, _ in nodes_by_topic]:
            return
        assert time.monotonic() < deadline_s, "the node was not registered"
        time.sleep(0.05)
