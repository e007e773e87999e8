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

import numpy as np

from wattwire.analysis.dataset import Evidence, column
from wattwire.model.derived import FloatArray

DROPPED = "datagrams_dropped"
UNASSEMBLED = "datagrams_unassembled"


@dataclass(frozen=True)
class Drops:
    """Number of runs with the counter, and per run with a growth: name, datagrams, lost messages.

    `datagrams` and `lost` have shape (runs,). `by_host` and `lost_by_flow` are sums over these runs
    without zeros; they are empty for one host, and for a study without flows.
    """

    counted: int
    runs: tuple[str, ...]
    datagrams: FloatArray
    lost: FloatArray
    by_host: Mapping[str, int]
    lost_by_flow: Mapping[str, int]

    @property
    def equal(self) -> int:
        """The number of these runs that lost as many messages as datagrams."""
        return int(np.count_nonzero(self.datagrams == self.lost))


def drops(evidence: Evidence, counter: str) -> Drops | None:
    """Return the runs in which `counter` grew; None if no run has the counter."""
    frame = evidence.usable
    values = column(frame, counter)
    counted = np.isfinite(values)
    if not counted.any():
        return None
    grew = counted & (values > 0)
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
    return Drops(
        int(counted.sum()),
        tuple(np.array(frame["run"].to_list())[grew]),
        values[grew],
        np.nan_to_num(column(frame, "lost"))[grew],
        by_host,
        lost_by_flow,
    )
