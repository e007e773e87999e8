"""Velocity commands (C-44): the fields of published messages, and messages with bad fields."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from contract.conformance.cell import CellUnderTest
from contract.conformance.process import NodeProcess
from contract.conformance.samples import read_samples
from contract.conformance.spec import base_spec, open_loop
from wattwire.catalog import Catalog
from wattwire.model.errors import MissingError
from wattwire.rig import AgentClient, Builder, CellBuild

ROOT = Path(__file__).resolve().parents[3]
HANG_S = 120.0
DOMAIN = 78
COUNT = 5
BETWEEN = """
import json, sys
import rclpy
from geometry_msgs.msg import TwistStamped

rclpy.init()
node = rclpy.create_node("between")
publisher = node.create_publisher(TwistStamped, sys.argv[2], 10)
damages = [
    lambda message: None,
    lambda message: setattr(message.header, "frame_id", f"{int(message.header.frame_id) + 1:020d}"),
    lambda message: setattr(message.header, "frame_id", message.header.frame_id[1:]),
    lambda message: setattr(message.header, "frame_id", "9" * 20),
    lambda message: setattr(message.header.stamp, "nanosec", 1_000_000_000),
]
arrived = []


def on_message(message):
    twist = message.twist
    arrived.append({
        "stamp": [message.header.stamp.sec, message.header.stamp.nanosec],
        "frame_id": message.header.frame_id,
        "twist": [getattr(part, axis).hex() for part in (twist.linear, twist.angular)
                  for axis in "xyz"],
    })
    damages[len(arrived) - 1](message)
    publisher.publish(message)


node.create_subscription(TwistStamped, sys.argv[1], on_message, 10)
while len(arrived) < len(damages):
    rclpy.spin_once(node, timeout_sec=0.1)
publisher.wait_for_all_acked()
print(json.dumps(arrived), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def build(tmp_path: Path) -> Iterator[CellBuild]:
    client = AgentClient(tmp_path / "agent")
    cell = Catalog([ROOT]).cell("ros2/python")
    try:
        builder = Builder(client)
        ready = builder.cell(cell)
        if reason := builder.absent_levels(cell).get("message", {}).get("twist_stamped"):
            pytest.skip(reason)
        yield ready
    except MissingError as reason:
        pytest.skip(str(reason))
    finally:
        client.close()


@pytest.mark.slow
def test_fields_of_velocity_commands_are_sent_and_checked(build: CellBuild, tmp_path: Path) -> None:
    cell = build.cell
    settings = {
        **cell.middleware.effective_settings({}), "domain": DOMAIN, "message": "twist_stamped",
    }  # fmt: skip
    subject = CellUnderTest(
        cell.name, build.argv, build.env, cell.document["patterns"], cell.document["capabilities"],
        settings=settings,
    )  # fmt: skip
    sent, damaged = ("ww" + secrets.token_hex(5) for _ in range(2))
    keys: dict[str, Any] = {"payload__encoding": "bytes", "payload__bytes": 64}
    loop = open_loop(COUNT, 100)
    env = {
        **os.environ, **build.env, "ROS_DOMAIN_ID": str(DOMAIN),
        "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST", "ROS_LOG_DIR": str(tmp_path),
    }  # fmt: skip
    topics = [f"/wattwire_{run}/topic" for run in (sent, damaged)]
    between = subprocess.Popen(
        [build.argv[0], "-c", BETWEEN, *topics], env=env, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    specs = {
        role: base_spec(subject, "topic", role, run=run, **keys) | loop
        for role, run in (("publisher", sent), ("subscriber", damaged))
    }
    publisher, subscriber = (
        NodeProcess(subject, spec, tmp_path / role, role) for role, spec in specs.items()
    )
    try:
        for node in (publisher, subscriber):
            assert node.wait_line("READY", HANG_S), node.last_output()
        for node in (publisher, subscriber):
            node.write(f"GO {time.monotonic_ns() + 500_000_000}\n")
        assert publisher.wait_line("SENT", HANG_S), publisher.last_output()
        assert between.stdout is not None
        arrived = json.loads(between.stdout.readline())
        for node in (publisher, subscriber):
            node.write("STOP\n")
            assert node.wait_line("DONE", HANG_S), node.last_output()
            assert node.wait_exit(HANG_S) == 0
        done = subscriber.fields("DONE")
    finally:
        for node in (publisher, subscriber):
            node.kill()
        between.kill()
        between.wait()
    records = read_samples(publisher.out, specs["publisher"], "publisher").records
    for message, record in zip(arrived, records, strict=True):
        sec, nanosec = message["stamp"]
        assert sec * 10**9 + nanosec == record.begin_ns
        assert message["frame_id"] == f"{record.seq:020d}"
        assert len({*message["twist"]}) == 6
    # The first is whole. The sequence of the second contradicts its trailer; those of the third and
    # the fourth, which is above 64 bits, are unreadable, as is the fifth with its bad nanoseconds.
    assert (done["received"], done["corrupt"], done["foreign"]) == (2, 4, 0)
