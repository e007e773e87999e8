"""Separate messages that were still in a queue when the run ended from lost messages.

Above the capacity of a hop, its queue grows for as long as the senders send. Messages that are
still in the queue when `linger_ms` ends are neither delivered nor lost.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from wattwire.model.deployment import Flow
from wattwire.model.ledger.fates import Fate
from wattwire.model.ledger.passages import NEVER_NS, Passages
from wattwire.model.ledger.rows import OF_MISSING, missing

GAPS = 3
"""Arrivals on a saturated link come in bursts, so a gap can be longer than their mean."""


@dataclass
class Arrivals:
    """Number of arrivals at a node, and the times (ns) of its first and its last one."""

    count: int = 0
    first_ns: int = 0
    last_ns: int = 0

    def add(self, arrived_ns: npt.NDArray[np.int64]) -> None:
        """Add the arrivals of one part, of shape (arrivals,), at least one."""
        first_ns, last_ns = int(arrived_ns.min()), int(arrived_ns.max())
        self.first_ns = min(first_ns, self.first_ns) if self.count else first_ns
        self.last_ns = max(last_ns, self.last_ns) if self.count else last_ns
        self.count += len(arrived_ns)

    @property
    def gap_ns(self) -> float:
        """Return the mean time between two arrivals; infinite with one arrival."""
        return (self.last_ns - self.first_ns) / (self.count - 1) if self.count > 1 else math.inf


@dataclass(frozen=True)
class Drain:
    """The time after STOP in which receivers wait for messages that are still in queues.

    A node that receives after `until_ns` ends only when `linger_ms` ends, which is at `end_ns`.
    `end_ns` is None if silence ends a node earlier.
    """

    until_ns: int
    end_ns: int | None = None

    def has_lasted(self, arrivals: Arrivals) -> bool:
        """Return whether a node was still receiving when the drain ended.

        A node that waits until `end_ns` in any case was receiving if its last arrival is no older
        than GAPS mean times between arrivals.
        """
        silent_from_ns: float = self.until_ns
        if self.end_ns is not None:
            silent_from_ns = max(silent_from_ns, self.end_ns - GAPS * arrivals.gap_ns)
        return arrivals.last_ns > silent_from_ns


Key = tuple[int, int]
"""A queue: the sender of its messages, and the node behind the hop."""


class Queues:
    """Missing messages that no later message has passed, by sender and node behind the hop.

    The nodes in `unrecorded` left no records, so the messages that are missing there are lost.
    """

    def __init__(self, flows: Sequence[Flow], drain: Drain, unrecorded: Collection[int]) -> None:
        self._flows = {flow.sender: flow for flow in flows}
        self._drain, self._unrecorded = drain, frozenset(unrecorded)
        self._arrivals: dict[int, Arrivals] = {}
        self._waiting: dict[Key, list[pl.DataFrame]] = {}
        self._passed: list[tuple[Key, pl.DataFrame]] = []

    def settled(self, rows: pl.DataFrame, of_flows: Sequence[Passages]) -> pl.DataFrame:
        """Return the rows of a part whose fate later parts cannot change, and keep the others."""
        for passages in of_flows:
            for stage, node in enumerate(passages.flow.nodes[1:], 1):
                if node not in self._unrecorded:
                    rows = self._settled_at(rows, passages, stage)
        return rows

    def _settled_at(self, rows: pl.DataFrame, passages: Passages, stage: int) -> pl.DataFrame:
        """Return the settled rows as far as they depend on one stage."""
        flow, arrived_ns = passages.flow, passages.arrived_ns[stage]
        node = flow.nodes[stage]
        key = flow.sender, node
        has_arrived = arrived_ns != NEVER_NS
        if has_arrived.any():
            self._arrivals.setdefault(node, Arrivals()).add(arrived_ns[has_arrived])
        passed, first = np.flatnonzero(passages.passed[stage]), 0
        if passed.size:
            first = int(passed[-1]) + 1
            self._passed += [(key, frame) for frame in self._waiting.pop(key, [])]
        hop = _hop(flow, node)
        if not passages.passed[hop - 1, first:].any():
            return rows
        is_waiting = (
            (pl.col("sender") == flow.sender)
            & (pl.col("hop") == hop)
            & (pl.col("counter") >= int(passages.counters[first]))
            & (pl.lit(node in flow.relays) | (pl.col("node") == node))
        )
        self._waiting.setdefault(key, []).append(rows.filter(is_waiting).select(OF_MISSING))
        return rows.filter(~is_waiting)

    def lost(self) -> Iterator[pl.DataFrame]:
        """Yield, and no longer keep, the rows of messages that a later message has passed."""
        passed, self._passed = self._passed, []
        for key, messages in passed:
            yield self._rows(key, messages, Fate.LOST)

    def rest(self) -> Iterator[pl.DataFrame]:
        """Yield the kept rows as undelivered, or as lost if the node was no longer receiving."""
        for key, frames in self._waiting.items():
            fate = Fate.UNDELIVERED if self._was_receiving(key[1]) else Fate.LOST
            for messages in frames:
                yield self._rows(key, messages, fate)

    def _rows(self, key: Key, messages: pl.DataFrame, fate: Fate) -> pl.DataFrame:
        sender, node = key
        return missing(messages, sender, _hop(self._flows[sender], node), fate)

    def _was_receiving(self, node: int) -> bool:
        """Return whether a node received messages until the drain ended.

        A node that received none is behind a queue if an earlier node of its flow is.
        """
        if node in self._unrecorded:
            return False
        if node in self._arrivals:
            return self._drain.has_lasted(self._arrivals[node])
        return any(
            earlier in _before(node, self._flows[sender]) and self._was_receiving(earlier)
            for sender, earlier in self._waiting
        )


def _before(node: int, flow: Flow) -> Sequence[int]:
    """Return the relays of a flow before a node, which is a relay or a receiver."""
    if node in flow.relays:
        return flow.relays[: flow.relays.index(node)]
    return flow.relays if node in flow.receivers else ()


def _hop(flow: Flow, node: int) -> int:
    """Return the hop before a node, from 1. The hop before each receiver is the last one."""
    return min(flow.nodes.index(node), len(flow.relays) + 1)
