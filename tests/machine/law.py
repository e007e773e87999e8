"""Read the module's log of busy time, and compute the energy that its law plants in a span."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Span = tuple[int, int]
"""Begin and end (ns of CLOCK_MONOTONIC)."""


@dataclass(frozen=True)
class Law:
    """The powers of the law (W), and the busy time (ns) of each core at the times of the log."""

    packages: int
    package_w: tuple[float, float, float]
    """Power of an idle package, of each busy core, and of a CPU latency limit."""
    dram_w: tuple[float, float]
    range_uj: int
    times_ns: Any
    shallow_ns: Any
    """Time with a CPU latency limit that forbids deep sleep."""
    busy_ns: Any
    """Array of shape [times, cores]."""

    def busy_cores(self, span: Span, package: int | None = None) -> float:
        """Return the mean number of busy cores in a span, of a package or of the machine."""
        cores = [c for c in range(self.busy_ns.shape[1]) if package in (None, c % self.packages)]
        return self._share(span, self.busy_ns[:, cores].sum(axis=1))

    def _share(self, span: Span, counter_ns: Any) -> float:
        """Return the increase of a counter (ns) per ns of a span."""
        if not self.times_ns[0] <= span[0] < span[1] <= self.times_ns[-1]:
            raise ValueError(
                f"found the span {span}; the log has {self.times_ns[0]} to {self.times_ns[-1]}"
            )
        begin, end = np.interp(span, self.times_ns, counter_ns)
        return float(end - begin) / (span[1] - span[0])

    def package_power_w(self, span: Span, package: int) -> float:
        """Return the mean power of a package in a span."""
        idle_w, busy_w, shallow_w = self.package_w
        shallow_share = self._share(span, self.shallow_ns)
        return idle_w + busy_w * self.busy_cores(span, package) + shallow_w * shallow_share

    def power_w(self, span: Span) -> float:
        """Return the mean power of all packages in a span."""
        return sum(self.package_power_w(span, package) for package in range(self.packages))

    def dram_power_w(self, span: Span) -> float:
        """Return the mean power of the memory in a span."""
        return self.dram_w[0] + self.dram_w[1] * self.busy_cores(span)


def read_law(path: Path) -> Law:
    """Return the law of a log `truth.txt`."""
    with path.open(encoding="ascii") as lines:
        words = next(lines).split()
        next(lines)
        table = np.loadtxt(lines, dtype=np.int64, ndmin=2)
    packages, *powers_mw, range_uj = (int(word) for word in words if word.isdigit())
    idle_w, busy_w, shallow_w, dram_idle_w, dram_busy_w = (power / 1000 for power in powers_mw)
    return Law(
        packages,
        (idle_w, busy_w, shallow_w),
        (dram_idle_w, dram_busy_w),
        range_uj,
        table[:, 0],
        table[:, 1],
        table[:, 2:],
    )
