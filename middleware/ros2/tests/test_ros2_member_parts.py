"""A member waits for its reliable parts together, and its QoS is the weakest of its parts."""

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
sys.modules |= {name: ModuleType(name) for name in ("rclpy", "rclpy.duration")}
sys.modules["rclpy.duration"].Duration = lambda nanoseconds: nanoseconds
import members

clock_ms = 0


class Part(Fake):
    __hash__, __eq__ = object.__hash__, object.__eq__


def part(reliability):
    return Part(setting={"reliability": reliability}.get)


def publisher(name, acknowledged_after_ms):
    def wait(timeout_ns):
        global clock_ms
        print(name, "waits at most", timeout_ns // 1_000_000)
        clock_ms += min(timeout_ns // 1_000_000, acknowledged_after_ms)

    return Fake(wait_for_all_acked=wait)


kit = Fake(spec={"linger_ms": 1000, "quiet_ms": 60_000}, now=lambda: clock_ms * 1_000_000)
members._drain(kit, {
    part("best_effort"): publisher("scan", 0),
    part("reliable"): publisher("map", 300),
    part("reliable"): publisher("plan", 5000),
    part("reliable"): publisher("goal", 5000),
})


def qos(reliability, history, depth, durability):
    return {"reliability": reliability, "history": history, "depth": depth,
            "durability": durability}


for granted in (
    [qos("best_effort", "keep_all", 5, "volatile"), qos("reliable", "keep_last", 1, "volatile")],
    [qos("reliable", "keep_all", 5, "transient_local")] * 2,
):
    print(*members._weakest(granted).values())
"""


def test_a_member_shares_one_wait_and_has_the_weakest_policies_of_its_parts() -> None:
    command = [sys.executable, "-c", PROGRAM, str(ROOT / "python"), str(KIT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "map waits at most 1000",
        "plan waits at most 700",
        "goal waits at most 0",
        "best_effort keep_last 1 volatile",
        "reliable keep_all 5 transient_local",
    ]
