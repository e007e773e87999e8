"""Compute the losses and latencies of each hop of flows that pass relays.

Hop N is the connection to the node at position N of the path. The latency of a hop starts when the
send call is entered and ends when the next node's callback is entered. On one clock, the latencies
of all hops and the times that the relays need add up to the time since the send call of the flow.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt

from wattwire.model.deployment import Flow
from wattwire.model.ledger import NEVER_NS, Fate, FateCounts, Passages

Times = npt.NDArray[np.float64]


class HopTally:
    """Times of the hops of `flows`, accumulated from parts of a run's ledger.

    The nodes in `unrecorded` left no records, for example because they were killed.
    """

    def __init__(self, flows: Sequence[Flow], unrecorded: Collection[int] = ()) -> None:
        self._flows = [flow for flow in flows if not flow.result]
        self._unrecorded = frozenset(unrecorded)
        self._hops = max((len(flow.relays) + 1 for flow in self._flows if flow.relays), default=0)
        self._hop_us: list[list[Times]] = [[] for _ in range(self._hops + 1)]
        self._relay_us: list[list[Times]] = [[] for _ in range(self._hops + 1)]

    def add(self, passages: Passages) -> None:
        """Add the times of each hop and relay, without the warm-up and corrupt arrivals."""
        arrived_ns, departed_ns = passages.arrived_ns, passages.departed_ns
        counted, relays = ~passages.warm_up, len(passages.flow.relays)
        for stage in range(1, len(arrived_ns)):
            hop = min(stage, relays + 1)
            has_arrived = arrived_ns[stage] != NEVER_NS
            begun = departed_ns[hop - 1] != NEVER_NS
            sound = counted & has_arrived & begun & ~passages.corrupt[stage]
            self._hop_us[hop].append((arrived_ns[stage] - departed_ns[hop - 1])[sound] / 1000.0)
            if hop <= relays:
                own_ns = departed_ns[hop] - arrived_ns[hop]
                self._relay_us[hop].append(own_ns[counted & has_arrived] / 1000.0)

    def summary(self, counts: FateCounts) -> dict[str, float | None]:
        """Return the columns of all hops; `counts` are those of the run's ledger.

        If a relay left no records, the losses of its two hops are one number, in the column of the
        second hop; the first hop's column is None. All losses are None if a sender left no records.
        """
        columns: dict[str, float | None] = {}
        joint = {
            hop for flow in self._flows for hop, node in enumerate(flow.relays, 1)
            if node in self._unrecorded
        }  # fmt: skip
        sent_is_unknown = any(flow.sender in self._unrecorded for flow in self._flows)
        carried = 0
        for hop in range(1, self._hops + 1):
            lost = counts.of(Fate.LOST, hop=hop) + carried
            carried = lost if hop in joint else 0
            is_unknown = sent_is_unknown or hop in joint
            undelivered = counts.of(Fate.UNDELIVERED, hop=hop)
            columns[f"lost.hop.{hop}"] = None if is_unknown else lost
            columns[f"undelivered.hop.{hop}"] = None if is_unknown else undelivered
            columns[f"latency_p50_us.hop.{hop}"] = _median(self._hop_us[hop])
            if hop < self._hops:
                columns[f"relay_time_p50_us.hop.{hop}"] = _median(self._relay_us[hop])
        return columns


def _median(parts: Sequence[Times]) -> float | None:
    values = np.concatenate([np.empty(0), *parts])
    return float(np.median(values)) if len(values) else None
