"""Read facts of the host that the controller needs before a run: load, disk, suspension."""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from wattwire.rig.agent import AgentClient

TICK_NS = 10_000_000
"""The kernel's usual clock tick."""


@dataclass(frozen=True)
class Load:
    """Shares of the time of all cores on an agent's host, between two replies to `load`."""

    busy: float
    steal: float
    other_demand: float
    """Demand of other processes; it may exceed all cores."""
    steal_step: float
    """Amount by which `steal` may be too high, because it is counted in clock ticks."""


def load_between(before: dict[str, int], after: dict[str, int]) -> Load:
    """Return the load between two replies of an agent to `load`."""
    total_ns = max(1, after["total_ns"] - before["total_ns"])
    return Load(
        busy=(after["busy_ns"] - before["busy_ns"]) / total_ns,
        steal=min(1.0, (after["steal_ns"] - before["steal_ns"]) / total_ns),
        other_demand=(after["other_demand_ns"] - before["other_demand_ns"]) / total_ns,
        steal_step=after["tick_ns"] * after["cpus"] / total_ns,
    )


def load_over(agent: AgentClient, seconds: float) -> Load:
    """Return the load of the agent's host over the next `seconds`."""
    before = agent.request("load")
    time.sleep(seconds)
    return load_between(before, agent.request("load"))


def free_disk_bytes(path: Path) -> int:
    """Return the number of bytes that this user can write below `path`."""
    return shutil.disk_usage(path).free


def cores() -> int:
    return os.cpu_count() or 1


def memory_bytes() -> int:
    """Return the physical memory of the machine in bytes."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def suspended_ns(begin: list[dict[str, int]], end: list[dict[str, int]]) -> int:
    """Return the time (ns) that the machine was suspended between two clock readings.

    BOOTTIME continues while the machine is suspended, and MONOTONIC stops.
    """
    return _gap(end, "boottime_ns") - _gap(begin, "boottime_ns")


def clock_step_ns(begin: list[dict[str, int]], end: list[dict[str, int]]) -> int:
    """Return the step (ns) of the wall clock between two readings, negative if it was set back.

    Slewing is not detectable, because it changes the speed of all these clocks equally.
    """
    realtime_ns = _gap(end, "realtime_ns") - _gap(begin, "realtime_ns")
    return realtime_ns - suspended_ns(begin, end)


def _gap(triples: list[dict[str, int]], clock: str) -> int:
    """Return the offset (ns) of a clock from MONOTONIC, from the least disturbed reading."""
    # The reading with the shortest bracket is the least disturbed.
    best = min(triples, key=lambda t: t["monotonic_after_ns"] - t["monotonic_ns"])
    return best[clock] - (best["monotonic_ns"] + best["monotonic_after_ns"]) // 2
