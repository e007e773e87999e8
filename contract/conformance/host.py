"""Hosts of nodes: how processes get there, their clocks and addresses, and the machine's load."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .roles import CODES

LOADAVG = Path("/proc/loadavg")
STAT = Path("/proc/stat")


def waiting_per_core(loadavg: Path = LOADAVG) -> float:
    """Return the number of processes that run or wait for a CPU, per core; 0 if it is unknown.

    It is the number now, or the mean of the last minute if that is larger.
    """
    try:
        mean, _, _, now, _ = loadavg.read_text().split()
        waiting = max(float(mean), int(now.partition("/")[0]))
    except (OSError, ValueError):
        return 0.0
    return waiting / (os.cpu_count() or 1)


class Watch:
    """A measurement of stolen CPU time since its creation; 0 if the kernel reports none."""

    def __init__(self, stat: Path = STAT) -> None:
        self._stat = stat
        self._before = self._read()

    def _read(self) -> tuple[int, int]:
        """Return the (stolen, total) clock ticks of all cores since boot.

        The columns for guests are excluded, because user time includes them.
        """
        try:
            columns = self._stat.read_text().splitlines()[0].split()[1:9]
        except (OSError, IndexError):
            return 0, 0
        ticks = [int(column) for column in columns]
        return (ticks[7] if len(ticks) == 8 else 0), sum(ticks)

    def stolen_share(self) -> float:
        """Return the share of all cores' time that other virtual machines used, 0 to 1."""
        stolen, total = self._read()
        return (stolen - self._before[0]) / max(1, total - self._before[1])


@dataclass(frozen=True)
class Place:
    """A host that shares the files and the process ids of this machine.

    - `enter`: command that executes its arguments on the host; () for the host of this process.
    - `clock_ahead_ns`: its CLOCK_MONOTONIC minus that of this process.
    - `address`, `interface`: host.address and host.interface of its nodes (C-38).
    """

    name: str = ""
    enter: Sequence[str] = ()
    clock_ahead_ns: int = 0
    address: str = "127.0.0.1"
    interface: str = "lo"

    def controller_ns(self, own_ns: int) -> int:
        """Return a time of the host's clock on the clock of this process."""
        return own_ns if own_ns == CODES["unknown_ns"] else own_ns - self.clock_ahead_ns


HERE = Place()
"""The host of this process."""
