"""A message that the RMW does not accept has failed; the node continues (C-14, C-37)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KIT = ROOT.parents[1] / "languages" / "python" / "kit"

PROGRAM = """
import sys
from types import ModuleType, SimpleNamespace as Fake

sys.path[:0] = sys.argv[1:]


class RCLError(RuntimeError):
    pass


names = ("rclpy", "rclpy.duration", "rclpy.impl", "rclpy.impl.implementation_singleton")
sys.modules |= {name: ModuleType(name) for name in names}
sys.modules[names[-1]].rclpy_implementation = Fake(RCLError=RCLError)
sys.modules["rclpy.duration"].Duration = None
import pipeline, session


def publish(message):
    if message.data == "rejected":
        raise RCLError("Failed to publish")
    print("sent", message.data)


def create_subscription(kind, topic, callback, qos):
    opened.spin_until_end = lambda: [
        callback(Fake(data=data)) for data in ("first", "rejected", "foreign", "last")
    ]
    return Fake(get_publisher_count=lambda: 1)


node = Fake(
    create_publisher=lambda *_: Fake(publish=publish, get_subscription_count=lambda: 1),
    create_subscription=create_subscription,
)
opened = Fake(
    node=node, prefix="", qos=lambda durability: None, spin_once=None, ready=lambda *_: None,
    granted_qos=lambda *_, **__: None, close=lambda: None,
)
kit = Fake(
    text=True, spec={"quiet_ms": 0}, setting=lambda name: "best_effort",
    sending_topic=lambda: "b", receiving_topic=lambda: "a", await_peers=lambda *_: None,
    relay=lambda data: None if data == "foreign" else data,
    relayed=lambda message: print("relayed", message),
    relay_failed=lambda message: print("failed", message),
)
session.Session = lambda kit: opened
pipeline.message_type = lambda kit: None
pipeline.relay(kit)
"""


def test_a_relay_records_a_rejected_message_as_failed_and_continues() -> None:
    command = [sys.executable, "-c", PROGRAM, str(ROOT / "python"), str(KIT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    expected = ["sent first", "relayed first", "failed rejected", "sent last", "relayed last"]
    assert done.stdout.splitlines() == expected
