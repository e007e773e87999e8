"""Velocity commands (C-44) without ROS: payloads in messages and serialized, and bad fields."""

from __future__ import annotations

import struct
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
SEQ, SENT_NS = 0x0203 << 48 | 7, 12_345_678_901_234
VALUES = struct.pack("<6d", 0.5, -1.0, float("inf"), 5e-324, float("nan"), 3.0)
PAYLOAD = struct.pack("<Qq", SEQ, SENT_NS) + VALUES
FRAME_ID = b"%020d" % SEQ


def serialized(
    sec: int = 12_345, nanosec: int = 678_901_234, length: int = 21, frame_id: bytes = FRAME_ID
) -> bytes:
    head = struct.pack("<4sII", bytes((0, 1, 0, 0)), sec, nanosec) + struct.pack("<I", length)
    return head + frame_id + bytes(8) + VALUES


@pytest.fixture
def velocity(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(ROOT / "languages" / "python" / "kit")
    monkeypatch.syspath_prepend(ROOT / "middleware" / "ros2" / "python")
    import velocity

    yield velocity
    imported = ("velocity", "fitting", "wattwire_kit")
    for name in [n for n in sys.modules if n.partition(".")[0] in imported]:
        del sys.modules[name]


def message() -> Any:
    vectors = (SimpleNamespace(x=0.0, y=0.0, z=0.0) for _ in range(2))
    twist = SimpleNamespace(**dict(zip(("linear", "angular"), vectors, strict=True)))
    header = SimpleNamespace(stamp=SimpleNamespace(sec=0, nanosec=0), frame_id="")
    return SimpleNamespace(header=header, twist=twist)


def test_a_message_has_the_fields_of_the_clause_and_the_payload_comes_back(velocity: Any) -> None:
    command = message()
    velocity.fill(command, bytearray(PAYLOAD))
    assert vars(command.header.stamp) == {"sec": 12_345, "nanosec": 678_901_234}
    assert command.header.frame_id == FRAME_ID.decode()
    assert (command.twist.linear.x, command.twist.linear.y) == (0.5, -1.0)
    assert command.twist.angular.z == 3.0
    assert velocity.payload_of(command) == PAYLOAD
    assert velocity.payload_within(serialized()) == PAYLOAD
    assert velocity.payload_within(serialized() + bytes(4)) == PAYLOAD


@pytest.mark.parametrize(
    "damaged",
    [
        serialized()[:-1],
        serialized(nanosec=1_000_000_000),
        serialized(length=20),
        serialized(frame_id=b"+" + FRAME_ID[1:]),
        serialized(frame_id=b" " + FRAME_ID[1:]),
        serialized(frame_id=b"%020d" % (1 << 64)),
    ],
)
def test_a_message_without_a_readable_header_has_no_payload(velocity: Any, damaged: bytes) -> None:
    assert velocity.payload_within(damaged) == b""


@pytest.mark.parametrize("frame_id", ["", "7", "lidar", "9" * 20, "٣" * 20])
def test_a_frame_that_is_no_sequence_leaves_no_payload(velocity: Any, frame_id: str) -> None:
    command = message()
    velocity.fill(command, PAYLOAD)
    command.header.frame_id = frame_id
    assert velocity.payload_of(command) == b""


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("payload.bytes", 63), ("payload.encoding", "text"), ("payload.literal", "Hello"),
        ("pattern", "service"),
    ],
)  # fmt: skip
def test_a_payload_that_no_velocity_command_can_carry_is_refused(
    velocity: Any, key: str, value: Any
) -> None:
    spec = {
        "pattern": "topic", "payload.encoding": "bytes", "payload.bytes": 64, "payload.literal": "",
    }  # fmt: skip
    settings = {"message": "twist_stamped"}
    kit = SimpleNamespace(spec=spec, setting=settings.__getitem__)
    assert velocity.is_velocity(kit)
    velocity.check_velocity(kit)
    spec[key] = value
    from wattwire_kit import Unsupported

    with pytest.raises(Unsupported, match=f"{key} {value!r} with settings.message = twist_stamped"):
        velocity.check_velocity(kit)
    settings["message"] = "payload"
    assert not velocity.is_velocity(kit)
