"""Compute the losses and latencies of each hop of flows that pass relays.

Hop N is the connection to the node at position N of the path. The latency of a hop starts when the
send call is entered and ends when the next node's callback is entered. On one clock, the latencies
of all hops and the times that the relays need add up to the latency of the flow.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from wattwire.model.deliveries import MESSAGE
from wattwire.model.deployment import RELAYED, Flow
from wattwire.model.sample_codes import FLAG_CORRUPT, FLAG_FAILED, FLAG_WARM_UP

Counters = npt.NDArray[np.uint64]


class HopTally:
    """Losses and times of the hops of `flows`, accumulated from parts of a run's records.

    The relays in `unrecorded` left no records, for example because they were killed.
    """

    def __init__(self, flows: Sequence[Flow], unrecorded: Collection[int] = ()) -> None:
        self._flows = [flow for flow in flows if flow.relays]
        self._unrecorded = frozenset(unrecorded)
        hops = max((len(flow.relays) + 1 for flow in self._flows), default=0)
        self._lost = [0] * (hops + 1)
        self._hop_us: list[list[pl.Series]] = [[] for _ in range(hops + 1)]
        self._relay_us: list[list[pl.Series]] = [[] for _ in range(hops + 1)]

    def add(self, part: pl.DataFrame) -> None:
        """Add the records of one part."""
        for flow in self._flows:
            own = part.filter(pl.col("sender") == flow.sender)
            sent = _sent(own, flow.sender)
            relayed = [_relayed(own, node) for node in flow.relays]
            arrived = [_arrived(own, receiver) for receiver in flow.receivers]
            self._count(sent, relayed, arrived, flow)
            counted = sent.filter(~pl.col("warm_up")).select("counter")
            before = sent
            for hop, stage in enumerate(relayed, 1):
                self._add_times(hop, before, stage, counted)
                own_us = (stage["departed_ns"] - stage["arrived_ns"]) / 1000.0
                is_counted = stage["counter"].is_in(counted["counter"].implode())
                self._relay_us[hop].append(own_us.filter(is_counted))
                before = stage
            for stage in arrived:
                self._add_times(len(relayed) + 1, before, stage, counted)

    def _add_times(
        self, hop: int, before: pl.DataFrame, after: pl.DataFrame, counted: pl.DataFrame
    ) -> None:
        """Add the latencies (µs) of a hop, without the warm-up and corrupt arrivals."""
        departures = before.select("counter", "departed_ns")
        arrivals = after.filter(~pl.col("corrupt")).select("counter", "arrived_ns")
        joined = departures.join(arrivals, on="counter").join(counted, on="counter")
        self._hop_us[hop].append((joined["arrived_ns"] - joined["departed_ns"]) / 1000.0)

    def _count(
        self,
        sent: pl.DataFrame,
        relayed: Sequence[pl.DataFrame],
        arrived: Sequence[pl.DataFrame],
        flow: Flow,
    ) -> None:
        """Add the losses of each hop, in deliveries: a message lost at a relay is lost for all.

        A message that reached any later node has passed a hop, even if the node's record of it is
        missing. The losses of all hops therefore add up to the losses of the flow.
        """
        sent_counters = _counters(sent)
        ends = [np.intersect1d(_counters(stage), sent_counters) for stage in arrived]
        reached = np.unique(np.concatenate([np.empty(0, np.uint64), *ends]))
        passed = [reached]
        for stage in reversed(relayed):
            own = np.intersect1d(_counters(stage), sent_counters)
            passed.append(np.union1d(passed[-1], own))
        passed.append(sent_counters)
        passed.reverse()  # sent, after each relay, at any receiver
        for hop in range(1, len(relayed) + 1):
            self._lost[hop] += (len(passed[hop - 1]) - len(passed[hop])) * len(flow.receivers)
        last_relay = passed[len(relayed)]
        self._lost[len(relayed) + 1] += sum(len(last_relay) - len(end) for end in ends)

    def summary(self) -> dict[str, float | None]:
        """Return the columns of all hops.

        If a relay left no records, the losses of its two hops are one number, in the column of the
        second hop; the first hop's column is None.
        """
        columns: dict[str, float | None] = {}
        joint = {
            hop for flow in self._flows for hop, node in enumerate(flow.relays, 1)
            if node in self._unrecorded
        }  # fmt: skip
        carried = 0
        for hop in range(1, len(self._lost)):
            lost = self._lost[hop] + carried
            carried = lost if hop in joint else 0
            columns[f"lost.hop.{hop}"] = None if hop in joint else lost
            columns[f"latency_p50_us.hop.{hop}"] = _median(self._hop_us[hop])
            if hop < len(self._lost) - 1:
                columns[f"relay_time_p50_us.hop.{hop}"] = _median(self._relay_us[hop])
        return columns


def _median(parts: Sequence[pl.Series]) -> float | None:
    values = pl.concat([pl.Series([], dtype=pl.Float64), *parts])
    return None if values.is_empty() else float(values.median())  # type: ignore[arg-type]


def _counters(stage: pl.DataFrame) -> Counters:
    return np.unique(stage["counter"].to_numpy().astype(np.uint64))


def _has(flag: int) -> pl.Expr:
    return (pl.col("flags") & flag) != 0


def _sent(records: pl.DataFrame, node: int) -> pl.DataFrame:
    """Return the sent messages: counter, departed_ns, warm_up."""
    sent = records.filter(pl.col("node") == node, pl.col("kind") == MESSAGE, ~_has(FLAG_FAILED))
    return sent.unique("counter", keep="first", maintain_order=True).select(
        "counter", departed_ns="begin_ns", warm_up=_has(FLAG_WARM_UP)
    )


def _relayed(records: pl.DataFrame, node: int) -> pl.DataFrame:
    """Return the first arrival of each message at a relay.

    The columns are counter, arrived_ns, departed_ns and corrupt.
    """
    stage = records.filter(pl.col("node") == node, pl.col("kind") == RELAYED)
    return (
        stage.sort("intended_ns")
        .unique("counter", keep="first", maintain_order=True)
        .select(
            "counter",
            arrived_ns="intended_ns",
            departed_ns="begin_ns",
            corrupt=_has(FLAG_CORRUPT),
        )
    )


def _arrived(records: pl.DataFrame, node: int) -> pl.DataFrame:
    """Return the first arrival of each message at a receiver: counter, arrived_ns, corrupt."""
    stage = records.filter(pl.col("node") == node, pl.col("kind") == MESSAGE)
    return (
        stage.sort("end_ns")
        .unique("counter", keep="first", maintain_order=True)
        .select("counter", arrived_ns="end_ns", corrupt=_has(FLAG_CORRUPT))
    )
