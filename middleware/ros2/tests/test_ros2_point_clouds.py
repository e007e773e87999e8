"""A publisher of point clouds sends real sensor_msgs/PointCloud2 messages (C-39)."""

from __future__ import annotations

import json
import os
import secrets
import struct
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from contract.conformance.cell import CellUnderTest
from contract.conformance.process import NodeProcess
from contract.conformance.spec import base_spec
from wattwire.catalog import Catalog
from wattwire.model.errors import MissingError
from wattwire.rig import AgentClient, Builder

ROOT = Path(__file__).resolve().parents[3]
HANG_S = 120.0
DOMAIN = 77
POINTS = 5
NODE = 0x0203
RECEIVER = """
import json, sys
import rclpy
from sensor_msgs.msg import PointCloud2

rclpy.init()
node = rclpy.create_node("receiver")
arrived = []
node.create_subscription(PointCloud2, sys.argv[1], arrived.append, 10)
while not arrived:
    rclpy.spin_once(node, timeout_sec=0.1)
cloud = arrived[0]
fields = {name: getattr(cloud, name) for name in (
    "height", "width", "is_bigendian", "point_step", "row_step", "is_dense")}
fields["stamp"] = [cloud.header.stamp.sec, cloud.header.stamp.nanosec]
fields["frame_id"] = cloud.header.frame_id
fields["fields"] = [[f.name, f.offset, f.datatype, f.count] for f in cloud.fields]
fields["data"] = bytes(cloud.data).hex()
print(json.dumps(fields), flush=True)
"""


@pytest.fixture
def builder(tmp_path: Path) -> Any:
    client = AgentClient(tmp_path / "agent")
    yield Builder(client)
    client.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ros2/python", "ros2/cpp-rcl"])
def test_every_field_of_a_published_point_cloud_has_its_value(
    builder: Builder, tmp_path: Path, name: str
) -> None:
    cell = Catalog([ROOT]).cell(name)
    try:
        build = builder.cell(cell)
        python = builder.cell(Catalog([ROOT]).cell("ros2/python")).argv[0]
    except MissingError as reason:
        pytest.skip(str(reason))
    if reason := builder.absent_capabilities(cell).get("encoding.pointcloud"):
        pytest.skip(reason)
    run = "ww" + secrets.token_hex(5)
    settings = {**cell.middleware.effective_settings({}), "domain": DOMAIN}
    subject = CellUnderTest(
        name, build.argv, build.env, cell.document["patterns"], cell.document["capabilities"],
        settings=settings,
    )  # fmt: skip
    spec = base_spec(
        subject, "topic", "publisher", run=run, payload__encoding="pointcloud",
        payload__bytes=16 * POINTS,
    )  # fmt: skip
    env = {
        **os.environ, **build.env, "ROS_DOMAIN_ID": str(DOMAIN),
        "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST", "ROS_LOG_DIR": str(tmp_path),
    }  # fmt: skip
    receiver = subprocess.Popen(
        [python, "-c", RECEIVER, f"/wattwire_{run}/topic"], env=env, stdout=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    publisher = NodeProcess(subject, spec, tmp_path / "publisher", name)
    try:
        assert publisher.wait_line("READY", HANG_S), publisher.last_output()
        publisher.write(f"GO {time.monotonic_ns() + 500_000_000}\n")
        assert publisher.wait_line("SENT", HANG_S), publisher.last_output()
        cloud = json.loads(receiver.communicate(timeout=HANG_S)[0].splitlines()[-1])
    finally:
        publisher.kill()
        receiver.kill()
        receiver.wait()
    data = bytes.fromhex(cloud.pop("data"))
    assert cloud == {
        "height": 1, "width": POINTS, "is_bigendian": False, "point_step": 16,
        "row_step": 16 * POINTS, "is_dense": False, "stamp": [0, 0], "frame_id": "lidar",
        "fields": [["x", 0, 7, 1], ["y", 4, 7, 1], ["z", 8, 7, 1], ["intensity", 12, 7, 1]],
    }  # fmt: skip
    assert len(data) == 16 * POINTS
    (seq,) = struct.unpack_from("<Q", data)
    assert seq >> 48 == NODE and data[-8:] == data[:8]
