"""A publisher of point clouds sends the struct PointCloud2 of ROS 2 (C-39)."""

from __future__ import annotations

import json
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
POINTS = 5
NODE = 0x0203
RECEIVER = """
import json, sys, time
from types import SimpleNamespace

source, kit, spec = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
sys.path[:0] = [source, kit]
from participant import Participant
from point_cloud import PointCloud2

participant = Participant(SimpleNamespace(
    spec=spec, setting=lambda name: spec[f"settings.{name}"], now=time.monotonic_ns))
reader = participant.reader("topic", PointCloud2)
arrived = []
while not arrived:
    arrived = participant.take(reader, 0.1)
cloud = arrived[0]
cloud.data = bytes(cloud.data)
print(json.dumps({"cdr": cloud.serialize().hex(), "data": cloud.data.hex()}), flush=True)
"""


def cdr(data: bytes) -> bytes:
    """Return the point cloud in CDR (OMG DDSI-RTPS 2.5, 10.2), little-endian, as ROS sends it."""
    out = bytearray()

    def put(form: str, value: Any) -> None:
        size = struct.calcsize(form)
        out.extend(bytes(-len(out) % size))
        out.extend(struct.pack("<" + form, value))

    def text(value: str) -> None:
        put("I", len(value) + 1)
        out.extend(value.encode() + b"\0")

    put("i", 0), put("I", 0), text("lidar")
    put("I", 1), put("I", POINTS), put("I", 4)
    for number, name in enumerate(("x", "y", "z", "intensity")):
        text(name), put("I", 4 * number), put("B", 7), put("I", 1)
    put("?", False), put("I", 16), put("I", 16 * POINTS), put("I", len(data))
    out.extend(data)
    put("?", False)
    return bytes(out)


@pytest.fixture
def builder(tmp_path: Path) -> Any:
    client = AgentClient(tmp_path / "agent")
    yield Builder(client)
    client.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cyclonedds/python", "cyclonedds/cpp"])
def test_a_published_point_cloud_has_the_layout_of_ros(
    builder: Builder, tmp_path: Path, name: str
) -> None:
    catalog = Catalog([ROOT])
    cell = catalog.cell(name)
    try:
        build = builder.cell(cell)
        python = builder.cell(catalog.cell("cyclonedds/python")).argv
    except MissingError as reason:
        pytest.skip(str(reason))
    subject = CellUnderTest(
        name, build.argv, build.env, cell.document["patterns"], cell.document["capabilities"],
        settings=cell.middleware.effective_settings({}),
    )  # fmt: skip
    spec = base_spec(
        subject, "topic", "publisher", run="ww" + secrets.token_hex(5),
        payload__encoding="pointcloud", payload__bytes=16 * POINTS,
    )  # fmt: skip
    source = Path(python[1]).parent
    receiver = subprocess.Popen(
        [python[0], "-c", RECEIVER, source, source / "_kit", json.dumps(spec)],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    publisher = NodeProcess(subject, spec, tmp_path / "publisher", name)
    try:
        assert publisher.wait_line("READY", HANG_S), publisher.last_output()
        publisher.write(f"GO {time.monotonic_ns() + 500_000_000}\n")
        assert publisher.wait_line("SENT", HANG_S), publisher.last_output()
        cloud = json.loads(receiver.communicate(timeout=HANG_S)[0])
    finally:
        publisher.kill()
        receiver.kill()
        receiver.wait()
    data, received = bytes.fromhex(cloud["data"]), bytes.fromhex(cloud["cdr"])
    # The header of 4 bytes names the encoding; padding may follow the message.
    expected = cdr(data)
    assert received[4 : 4 + len(expected)] == expected
    assert set(received[4 + len(expected) :]) <= {0} and len(received) - len(expected) < 8
    (seq,) = struct.unpack_from("<Q", data)
    assert seq >> 48 == NODE and data[-8:] == data[:8]
