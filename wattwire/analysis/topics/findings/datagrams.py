"""Find runs in which the kernel of a host dropped or discarded datagrams, and what they lost.

What it detects: valid runs in which a counter of the meter net_stack grew before their end:
DROPPED for full receive buffers of sockets, and UNASSEMBLED for datagrams with missing fragments.

How: the counters of all hosts, next to the lost messages of the same run, by flow. If each run
lost as many messages as datagrams were dropped, two independent counts agree. Both are counted
over the whole run, with the warm-up.

What it misses: the counters include all programs of a host. A message may consist of several
datagrams, and a middleware may send dropped ones again, so the counts need not agree.

Reference: Linux Documentation/networking/snmp_counter.rst, "UdpRcvbufErrors" and "IpReasmFails".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from wattwire.analysis.dataset import Evidence, all_levels, column

DROPPED = "datagrams_dropped"
UNASSEMBLED = "datagrams_unassembled"


@dataclass(frozen=True)
class DropRun:
    """A run in which the counter grew, by `datagrams`; `lost` of its messages were lost.

    `treatment` has the levels of the varied factors.
    """

    treatment: tuple[Any, ...]
    run: str
    datagrams: float
    lost: float


@dataclass(frozen=True)
class Drops:
    """Number of runs with the counter, and the runs in which it grew, in run order.

    `by_host` and `lost_by_flow` are sums over these runs without zeros; they are empty for one
    host, and for a study without flows.
    """

    counted: int
    runs: tuple[DropRun, ...]
    by_host: Mapping[str, int]
    lost_by_flow: Mapping[str, int]

    @property
    def datagrams(self) -> int:
        """The number of datagrams over all runs."""
        return int(sum(run.datagrams for run in self.runs))

    @property
    def lost(self) -> int:
        """The number of lost messages over these runs."""
        return int(sum(run.lost for run in self.runs))

    @property
    def equal(self) -> int:
        """The number of these runs that lost as many messages as datagrams."""
        return sum(run.datagrams == run.lost for run in self.runs)


def drops(evidence: Evidence, counter: str) -> Drops | None:
    """Return the runs in which `counter` grew; None if no run has the counter."""
    frame = evidence.usable
    values = column(frame, counter)
    counted = np.isfinite(values)
    if not counted.any():
        return None
    grew = counted & (values > 0)
    lost = np.nan_to_num(column(frame, "lost"))
    sums = {
        prefix: {
            name.removeprefix(prefix): int(np.nansum(column(frame, name)[grew]))
            for name in frame.columns
            if name.startswith(prefix)
        }
        for prefix in (f"{counter}.on.", "lost.flow.")
    }
    by_host, lost_by_flow = (
        {name: total for name, total in totals.items() if total} for totals in sums.values()
    )
    levels = {entry["run"]: all_levels(entry) for entry in evidence.designed}
    runs = frame["run"].to_list()
    rows = (
        DropRun(
            tuple(levels.get(runs[row], {}).get(name) for name in evidence.varied),
            runs[row],
            float(values[row]),
            float(lost[row]),
        )
        for row in np.flatnonzero(grew)
    )
    return Drops(int(counted.sum()), tuple(rows), by_host, lost_by_flow)
