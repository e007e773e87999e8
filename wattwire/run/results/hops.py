"""Compute the losses and latencies of each hop of flows that pass relays.

Hop N is the connection to the node at position N of the path. The latency of a hop starts when the
send call is entered and ends when the next node's callback is entered. On one clock, the latencies
of all hops and the times that the relays need add up to the time since the send call of the flow.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from wattwire.model.deployment import RELAYED, Flow
from wattwire.model.sample_codes import FLAG_CORRUPT, FLAG_FAILED, FLAG_WARM_UP
from wattwire.run.results.saturation import Arrivals, Drain, Tail

Times = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
NEVER_NS = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Undelivered:
    """Deliveries that were still in a queue when `linger_ms` ended: all, and after the warm-up."""

    total: int
    after_warmup: int


class HopTally:
    """Losses and times of the hops of `flows`, accumulated from parts of a run's records.

    Flows of calls are not included: a call ends at its timeout. The nodes in `unrecorded` left no
    records, for example because they were killed. If a node was still receiving when `drain` ended,
    the messages after its last one are undelivered, not lost. Without `drain`, all missing messages
    are lost.
    """

    def __init__(
        self,
        flows: Sequence[Flow],
        unrecorded: Collection[int] = (),
        drain: Drain | None = None,
    ) -> None:
        self._flows = [flow for flow in flows if not flow.result]
        self._unrecorded = frozenset(unrecorded)
        self._drain = drain
        hops = max((len(flow.relays) + 1 for flow in self._flows if flow.relays), default=0)
        self._hops = hops
        self._tails: dict[tuple[int, int], tuple[Tail, int]] = {}
        self._arrivals: dict[int, Arrivals] = {}
        self._hop_us: list[list[Times]] = [[] for _ in range(hops + 1)]
        self._relay_us: list[list[Times]] = [[] for _ in range(hops + 1)]

    def add(self, part: pl.DataFrame) -> None:
        """Add the records of one part."""
        for flow in self._flows:
            passages = _passages(part, flow)
            self._count(passages, flow)
            if flow.relays:
                self._add_times(passages, len(flow.relays))

    def _add_times(self, passages: _Passages, relays: int) -> None:
        """Add the times of each hop and relay, without the warm-up and corrupt arrivals."""
        arrived_ns, departed_ns = passages.arrived_ns, passages.departed_ns
        counted = ~passages.warm_up
        for stage in range(1, len(arrived_ns)):
            hop = min(stage, relays + 1)
            has_arrived = arrived_ns[stage] != NEVER_NS
            begun = departed_ns[hop - 1] != NEVER_NS
            sound = counted & has_arrived & begun & ~passages.corrupt[stage]
            self._hop_us[hop].append((arrived_ns[stage] - departed_ns[hop - 1])[sound] / 1000.0)
            if hop <= relays:
                own_ns = departed_ns[hop] - arrived_ns[hop]
                self._relay_us[hop].append(own_ns[counted & has_arrived] / 1000.0)

    def _count(self, passages: _Passages, flow: Flow) -> None:
        """Add the missing messages of each hop, in deliveries.

        A message that is missing at a relay is missing for all receivers. A message that reached
        any later node has passed a hop, even if the node's record of it is missing. The missing
        messages of all hops therefore add up to those of the flow.
        """
        reached = passages.arrived_ns != NEVER_NS
        for stage, node in enumerate(flow.nodes):
            if reached[stage].any():
                arrived_ns = passages.arrived_ns[stage][reached[stage]]
                self._arrivals.setdefault(node, Arrivals()).add(arrived_ns)
        reached[0] = True
        last = len(flow.relays)
        ends = reached[last + 1 :]
        passed = np.vstack([reached[: last + 1], ends.any(axis=0)])
        passed = np.logical_or.accumulate(passed[::-1])[::-1]
        for hop, node in enumerate(flow.relays, 1):
            tail, _ = self._tails.setdefault((flow.sender, node), (Tail(), hop))
            tail.add(passed[hop - 1], passed[hop], passages.warm_up)
        for end, node in enumerate(flow.receivers):
            tail, _ = self._tails.setdefault((flow.sender, node), (Tail(), last + 1))
            tail.add(passed[last], ends[end], passages.warm_up)

    def _counts(self) -> tuple[list[int], list[int]]:
        """Return the lost and the undelivered deliveries of each hop, from hop 0."""
        hops = max((hop for _, hop in self._tails.values()), default=0)
        lost, undelivered = [0] * (hops + 1), [0] * (hops + 1)
        for (sender, node), (tail, hop) in self._tails.items():
            each, in_queue = self._each(sender, node), self._was_receiving(node)
            undelivered[hop] += tail.tail * each if in_queue else 0
            lost[hop] += (tail.missing - (tail.tail if in_queue else 0)) * each
        return lost, undelivered

    def _each(self, sender: int, node: int) -> int:
        """Return the number of deliveries of one message of a sender behind a node."""
        (flow,) = (flow for flow in self._flows if flow.sender == sender)
        return 1 if node in flow.receivers else flow.expected_per_message

    def _was_receiving(self, node: int) -> bool:
        """Return whether a node received messages until the drain ended.

        A node that received none is behind a queue if an earlier node of its flow is.
        """
        if self._drain is None or node in self._unrecorded:
            return False
        if node in self._arrivals:
            return self._drain.has_lasted(self._arrivals[node])
        return any(
            tail.tail and self._was_receiving(earlier)
            for flow in self._flows
            for (sender, earlier), (tail, _) in self._tails.items()
            if sender == flow.sender and earlier in _before(node, flow)
        )

    def undelivered(self) -> dict[int, Undelivered]:
        """Return sender → its undelivered deliveries of all hops."""
        counts = {flow.sender: [0, 0] for flow in self._flows}
        for (sender, node), (tail, _) in self._tails.items():
            if self._was_receiving(node):
                each = self._each(sender, node)
                counts[sender][0] += tail.tail * each
                counts[sender][1] += tail.tail_after_warmup * each
        return {sender: Undelivered(*both) for sender, both in counts.items()}

    def summary(self) -> dict[str, float | None]:
        """Return the columns of all hops.

        If a relay left no records, the losses of its two hops are one number, in the column of the
        second hop; the first hop's column is None. All losses are None if a sender left no records.
        """
        columns: dict[str, float | None] = {}
        joint = {
            hop for flow in self._flows for hop, node in enumerate(flow.relays, 1)
            if node in self._unrecorded
        }  # fmt: skip
        sent_is_unknown = any(flow.sender in self._unrecorded for flow in self._flows)
        lost_by_hop, undelivered = self._counts()
        lost_by_hop += [0] * (self._hops + 1 - len(lost_by_hop))
        undelivered += [0] * (self._hops + 1 - len(undelivered))
        carried = 0
        for hop in range(1, self._hops + 1):
            lost = lost_by_hop[hop] + carried
            carried = lost if hop in joint else 0
            is_unknown = sent_is_unknown or hop in joint
            columns[f"lost.hop.{hop}"] = None if is_unknown else lost
            columns[f"undelivered.hop.{hop}"] = None if is_unknown else undelivered[hop]
            columns[f"latency_p50_us.hop.{hop}"] = _median(self._hop_us[hop])
            if hop < self._hops:
                columns[f"relay_time_p50_us.hop.{hop}"] = _median(self._relay_us[hop])
        return columns


def _before(node: int, flow: Flow) -> Sequence[int]:
    """Return the relays of a flow before a node, which is a relay or a receiver."""
    if node in flow.relays:
        return flow.relays[: flow.relays.index(node)]
    return flow.relays if node in flow.receivers else ()


def _median(parts: Sequence[Times]) -> float | None:
    values = np.concatenate([np.empty(0), *parts])
    return float(np.median(values)) if len(values) else None


@dataclass(frozen=True)
class _Passages:
    """The first passage of each sent message at each stage of a flow, shape (stages, messages).

    Stage 0 is the sender. The relays follow in their order, then all receivers. NEVER_NS means
    that a stage has no record of a message. `warm_up` has shape (messages,).
    """

    arrived_ns: Integers
    departed_ns: Integers
    corrupt: npt.NDArray[np.bool_]
    warm_up: npt.NDArray[np.bool_]


def _passages(part: pl.DataFrame, flow: Flow) -> _Passages:
    stages = {node: stage for stage, node in enumerate(flow.nodes)}
    own = part.filter(
        pl.col("sender") == flow.sender,
        pl.col("node").is_in(list(stages)),
        (pl.col("node") != flow.sender) | ((pl.col("flags") & FLAG_FAILED) == 0),
    )
    is_relay = (own["kind"] == RELAYED).to_numpy()
    nodes, counters, flags = (own[name].to_numpy() for name in ("node", "counter", "flags"))
    times = own.select(pl.col("intended_ns", "begin_ns", "end_ns").fill_null(NEVER_NS))
    intended_ns, begin_ns, end_ns = (times[name].to_numpy() for name in times.columns)
    numbers = np.array(list(stages), nodes.dtype)
    in_order = np.argsort(numbers)
    stage = in_order[np.searchsorted(numbers[in_order], nodes)]
    from_sender = stage == 0
    sent = np.unique(counters[from_sender])
    message = np.minimum(np.searchsorted(sent, counters), max(0, len(sent) - 1))
    arrived_ns = np.where(is_relay, intended_ns, np.where(from_sender, begin_ns, end_ns))
    # Assign in descending order of arrival, so that the first arrival remains.
    order = np.argsort(-arrived_ns, kind="stable")
    order = order[sent[message[order]] == counters[order]] if len(sent) else order[:0]
    at = stage[order], message[order]
    shape = len(stages), len(sent)
    passages = _Passages(
        np.full(shape, NEVER_NS),
        np.full(shape, NEVER_NS),
        np.zeros(shape, np.bool_),
        np.zeros(len(sent), np.bool_),
    )
    passages.arrived_ns[at] = arrived_ns[order]
    passages.departed_ns[at] = begin_ns[order]
    passages.corrupt[at] = (flags[order] & FLAG_CORRUPT) != 0
    own_message = message[from_sender]
    passages.warm_up[own_message] = (flags[from_sender] & FLAG_WARM_UP) != 0
    return passages
