"""Facts of the local host that the controller needs before a run: load, disk, suspend."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class CpuTimes:
    """Machine-wide times since boot in clock ticks, from the first line of /proc/stat."""

    busy: int
    steal: int
    total: int


def cpu_times(stat: Path = Path("/proc/stat")) -> CpuTimes:
    """Read /proc/stat. Guest time is part of user time already and is not added again."""
    fields = [int(word) for word in stat.read_text().splitlines()[0].split()[1:]]
    user, nice, system, idle, iowait, irq, softirq, steal = (fields + [0] * 8)[:8]
    busy = user + nice + system + irq + softirq
    return CpuTimes(busy, steal, busy + idle + iowait + steal)


def load_over(seconds: float) -> tuple[float, float]:
    """Return the busy and the steal share of all cores over the next `seconds`."""
    before = cpu_times()
    time.sleep(seconds)
    after = cpu_times()
    total = max(1, after.total - before.total)
    return (after.busy - before.busy) / total, (after.steal - before.steal) / total


def free_disk_bytes(path: Path) -> int:
    """Return the bytes that this user may still write below `path`."""
    return shutil.disk_usage(path).free


def succeeds(argv: list[str], timeout_s: float = 5.0) -> bool:
    """Return whether a short command ends with 0 in time; its output is ignored."""
    try:
        result = subprocess.run(argv, capture_output=True, timeout=timeout_s, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return result.returncode == 0


def cores() -> int:
    return os.cpu_count() or 1


def memory_bytes() -> int:
    """Return the machine's physical memory."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def suspended_ns(begin: list[dict[str, int]], end: list[dict[str, int]]) -> int:
    """Return how long the machine slept between two clock readings.

    BOOTTIME runs on while the machine sleeps, MONOTONIC stops.
    """
    return _gap(end, "boottime_ns") - _gap(begin, "boottime_ns")


def clock_step_ns(begin: list[dict[str, int]], end: list[dict[str, int]]) -> int:
    """Return by how much the wall clock was set forward between two readings (back: below 0).

    Slewing does not show: it changes the speed of all these clocks alike.
    """
    realtime_ns = _gap(end, "realtime_ns") - _gap(begin, "realtime_ns")
    return realtime_ns - suspended_ns(begin, end)


def _gap(triples: list[dict[str, int]], clock: str) -> int:
    """Return a clock's offset (ns) from MONOTONIC by the least disturbed reading."""
    # The reading with the narrowest bracket is the least disturbed one.
    best = min(triples, key=lambda t: t["monotonic_after_ns"] - t["monotonic_ns"])
    return best[clock] - (best["monotonic_ns"] + best["monotonic_after_ns"]) // 2
