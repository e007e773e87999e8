"""ROS 1 nodes as peers of a cell under test, for the tests of the folders that need a master."""

from __future__ import annotations

import contextlib
import subprocess
import time
import xmlrpc.client
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from contract.conformance.process import NodeProcess

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


@contextlib.contextmanager
def peer_of_another_type(
    master: str, topic: str, kind: str, end: str, folder: Path
) -> Iterator[None]:
    """Run a registered `end` (publisher or subscriber) of a topic, which differs in its `kind`.

    `master` is the endpoint of the master. `kind` is "type" for another type, and "md5sum" for the
    type of byte payloads with another sum.
    """
    command = ["/usr/bin/python3", "-c", PEER, f"http://{master}/", topic, kind, end]
    peer = subprocess.Popen(command, cwd=folder)
    try:
        await_registered(master, topic, end)
        yield
    finally:
        peer.kill()
        peer.wait()


def await_registered(master: str, topic: str, end: str) -> None:
    """Wait until the master knows a publisher or subscriber of the topic."""
    deadline_s = time.monotonic() + HANG_S
    while not _is_registered(master, topic, end):
        assert time.monotonic() < deadline_s, "the node was not registered"
        time.sleep(0.05)


def _is_registered(master: str, topic: str, end: str) -> bool:
    state: Any = xmlrpc.client.ServerProxy(f"http://{master}/").getSystemState("/test")
    nodes_by_topic = state[2][("publisher", "subscriber").index(end)]
    return topic in [name for name, _ in nodes_by_topic]


def error_reason(node: NodeProcess) -> str:
    """Return the reason of a node's ERROR line, which must have code 4, and end the node."""
    try:
        line = node.wait_line("ERROR", HANG_S)
        assert line is not None and line.fields is not None, node.last_output()
        assert line.fields["code"] == 4, line.fields
        return str(line.fields["reason"])
    finally:
        node.kill()
