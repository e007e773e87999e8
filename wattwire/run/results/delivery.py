"""Count a run's messages end to end from its ledger."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import polars as pl

from wattwire.model.deployment import Flow
from wattwire.model.hosts.clocks import NodeClocks
from wattwire.model.latencies import LatencyTally
from wattwire.model.ledger import (
    EXPECTED,
    RECEIVED,
    Drain,
    Fate,
    FateCounts,
    LedgerPart,
    announced,
    ledger,
)
from wattwire.model.metrics import METRICS, SENT_RECORDS
from wattwire.model.sample_codes import FLAG_CORRUPT, FLAG_FAILED, FLAG_WARM_UP
from wattwire.run.results.between_clocks import clock_bands_us
from wattwire.run.results.hops import HopTally
from wattwire.run.results.saturation import BacklogTally, GrowthTally, Schedule, Waits, WaitTally
from wattwire.run.results.tallies import Columns, Tallies, TallyFacts
from wattwire.store import Messages

_RESTING = tuple(name for name, metric in METRICS.items() if metric.needs == SENT_RECORDS)
AFTER_WARMUP = tuple(name for name in _RESTING if name.endswith("_after_warmup"))
"""Counts without the warm-up that are unknown if a sender left no records."""
RESTING_ON_SENT = tuple(name for name in _RESTING if name not in AFTER_WARMUP)
"""The same counts of the whole run."""


def cost_window_start_ns(
    parts: Iterable[pl.DataFrame],
    flows: Sequence[Flow],
    start_ns: int,
    warmup_ns: int,
    closed: bool,
) -> int:
    """Return the time (ns) at which all senders have finished their warm-up; costs count from it.

    In an open loop, this time is fixed. In a closed loop, each caller's warm-up ends when its first
    unflagged call begins, and the latest such time is used. If all calls of a caller are warm-up,
    the end of its last call is used. `parts` are parts of one run's records.
    """
    time_ns = start_ns + warmup_ns
    last_ns: dict[int, int] = {}
    begins_ns: dict[int, int] = {}
    is_warm_up = (pl.col("flags") & FLAG_WARM_UP) != 0
    callers = [flow for flow in flows if flow.result] if closed else []
    for part in parts if callers else ():
        for flow in callers:
            calls, node = _sent_records(part, flow), flow.sender
            flagged, unflagged = calls.filter(is_warm_up), calls.filter(~is_warm_up)
            ended_ns = flagged.select(pl.max_horizontal("begin_ns", "end_ns").max()).item()
            begun_ns = unflagged.select(pl.col("begin_ns").min()).item()
            if ended_ns is not None:
                last_ns[node] = max(ended_ns, last_ns.get(node, ended_ns))
            if begun_ns is not None:
                begins_ns[node] = min(begun_ns, begins_ns.get(node, begun_ns))
    ends_ns = [begins_ns.get(node, ended_ns) for node, ended_ns in last_ns.items()]
    return max([time_ns, *ends_ns])


Span = tuple[int, int | None]
"""Begin (inclusive) and end (exclusive) in CLOCK_MONOTONIC ns; None is the end of the run."""


def sent_within(parts: Iterable[pl.DataFrame], flows: Sequence[Flow], span_ns: Span) -> int:
    """Return the number of messages or calls that senders sent within `span_ns`."""
    return sum(
        _within(_sent_records(part, flow), span_ns)["counter"].n_unique()
        for part in parts
        for flow in flows
    )


def _within(messages: pl.DataFrame, span_ns: Span) -> pl.DataFrame:
    begin_ns, end_ns = span_ns
    begun = messages.filter(pl.col("begin_ns") >= begin_ns)
    return begun if end_ns is None else begun.filter(pl.col("begin_ns") < end_ns)


def clients_active_mean(
    parts: Iterable[pl.DataFrame], flows: Sequence[Flow], span_ns: Span
) -> float | None:
    """Return the mean number of simultaneously active callers within `span_ns`; None without calls.

    A caller is active from its first call in the span to the end of its last call or of the span. A
    caller that has made all its allowed calls (C-11) ends early. Fewer callers than specified are
    then active during the last calls of the others.
    """
    first_ns: dict[int, int] = {}
    last_ns: dict[int, int] = {}
    for part in parts:
        for flow in flows:
            calls, node = _within(_sent_records(part, flow), span_ns), flow.sender
            begun_ns = calls.select(pl.col("begin_ns").min()).item()
            ended_ns = calls.select(pl.max_horizontal("begin_ns", "end_ns").max()).item()
            if begun_ns is not None:
                ended_ns = min(ended_ns, span_ns[1] or ended_ns)
                first_ns[node] = min(begun_ns, first_ns.get(node, begun_ns))
                last_ns[node] = max(ended_ns, last_ns.get(node, ended_ns))
    length_ns = max(last_ns.values(), default=0) - min(first_ns.values(), default=0)
    if length_ns <= 0:
        return None
    return sum(last_ns[node] - first_ns[node] for node in first_ns) / length_ns


def _sent_records(messages: pl.DataFrame, flow: Flow) -> pl.DataFrame:
    """Return the sender's records of sent messages: messages that were accepted, and all calls."""
    records = messages.filter(pl.col("node") == flow.sender)
    if flow.result:
        return records.filter(pl.col("kind") == flow.result)
    return records.filter((pl.col("flags") & FLAG_FAILED) == 0)


def schedule_lateness_us(parts: Iterable[pl.Series]) -> dict[str, float | None]:
    """Return how late senders were relative to their schedule: p50 and p99 (µs).

    `parts` are results of `lateness_us`.
    """
    late = pl.concat([pl.Series([], dtype=pl.Float64), *parts])
    if late.is_empty():
        return {"schedule_late_p50_us": None, "schedule_late_p99_us": None}
    return {
        "schedule_late_p50_us": float(late.quantile(0.5) or 0.0),
        "schedule_late_p99_us": float(late.quantile(0.99) or 0.0),
    }


def lateness_us(messages: pl.DataFrame) -> pl.Series:
    """Return the lateness (µs) of each scheduled message, warm-up excluded."""
    scheduled = messages.filter(
        pl.col("node") == pl.col("sender"),
        pl.col("intended_ns").is_not_null(),
        (pl.col("flags") & FLAG_WARM_UP) == 0,
    )
    return (scheduled["begin_ns"] - scheduled["intended_ns"]) / 1000.0


COUNTED_FATES = {
    "expected": EXPECTED, "received_unique": RECEIVED, "failed": [Fate.FAILED],
    "lost": [Fate.LOST], "duplicates": [Fate.DUPLICATE], "late": [Fate.LATE],
}  # fmt: skip
"""Column → the fates of the deliveries that it counts. Late deliveries are also received."""


def count_summary(counts: FateCounts, flows: Sequence[Flow]) -> dict[str, int]:
    """Return the message counts of `flows` from those of their ledger, including the warm-up."""
    sent = (counts.of(*EXPECTED, sender=f.sender) // f.expected_per_message for f in flows)
    return {
        "sent": sum(sent),
        **{name: counts.of(*fates) for name, fates in COUNTED_FATES.items()},
    }


@dataclass(frozen=True)
class Tallied:
    """Message counts of one run, with its latency and lateness by response name."""

    counts: dict[str, int]
    latency: dict[str, float | None]
    lateness: dict[str, float | None]
    hops: dict[str, float | None]
    columns: Columns
    """Columns of the tallies that flows also have."""
    between_clocks: dict[str, float]
    """Bands of one-way latencies; empty without a rig or without one-way flows."""
    unsent: int
    """Deliveries that the schedules require of messages that were never sent."""
    backlogs: dict[int, tuple[int, ...]]
    """Sender whose backlog grew until the end of its schedule → its backlogs (`BacklogTally`)."""
    waits: dict[int, Waits]
    """Sender of calls → how long its calls occupied it."""
    goals_without_result: int
    """Goals without a record of their result, although every call has a record (C-12)."""


class PartTally(Protocol):
    """A further result that accumulates from parts of a run's ledger."""

    def add(self, part: LedgerPart) -> None:
        """Add one part."""


def tallied(
    messages: Messages,
    flows: Sequence[Flow],
    late_after_ns: int,
    period_ns: int = 0,
    unrecorded: Collection[int] = (),
    clocks: NodeClocks | None = None,
    further: Sequence[PartTally] = (),
    drain: Drain | None = None,
    schedules: Mapping[int, Schedule] | None = None,
    rates_span_ns: tuple[int, int] = (0, 0),
) -> Tallied:
    """Return the message counts, latency, lateness and hops of a run's records.

    The records are processed in parts. Only sums and latencies of each part remain in memory.
    `period_ns` is the period of an open loop, and the nodes in `unrecorded` left no records.
    `clocks` are the clocks of a rig's hosts. The times of `messages` are already on one clock.
    Each of `further` also receives each part. `drain` is the time in which receivers wait for
    messages that are still in queues; without it, all missing messages are lost. `schedules` maps
    each sender of an open loop that could complete its schedule to this schedule; its messages that
    were never sent are then infinitely late. Throughput refers to `rates_span_ns`.
    """
    schedules = schedules or {}
    corrupt, results, latency, hops = 0, 0, LatencyTally(), HopTally(flows, unrecorded)
    growth, backlog = GrowthTally(), BacklogTally(schedules)
    one_way, waits = [flow for flow in flows if not flow.result], WaitTally(flows)
    of_calls = [flow for flow in flows if flow.result]
    tallies = Tallies(TallyFacts(flows, rates_span_ns))
    late_us: list[pl.Series] = []
    known_senders = announced(messages.origins, flows)
    for part in ledger(messages.parts(), flows, known_senders, late_after_ns, drain, unrecorded):
        for tally in (latency, growth, backlog, waits, tallies):
            tally.add(part.deliveries)
        for passages in part.passages:
            hops.add(passages)
        corrupt += int(((part.records["flags"] & FLAG_CORRUPT) != 0).sum())
        results += sum(_sent_records(part.records, f)["counter"].n_unique() for f in of_calls)
        for other in further:
            other.add(part)
        late_us.append(lateness_us(part.records))
    lateness = schedule_lateness_us(late_us)
    del late_us
    between_clocks = clock_bands_us(one_way, clocks) if clocks and one_way else {}
    quantiles = latency.summary(period_ns, scheduled_deliveries(flows, schedules))
    counts = {**count_summary(latency.counts, flows), "corrupt": corrupt}
    calls = sum(latency.counts.of(*EXPECTED, sender=flow.sender) for flow in of_calls)
    if one_way:
        counts["undelivered"] = latency.counts.of(Fate.UNDELIVERED)
        quantiles["undelivered_after_warmup"] = latency.after_warmup(Fate.UNDELIVERED)
    if period_ns or schedules:
        quantiles |= growth.summary()
    scheduled = sum(
        schedules[flow.sender].scheduled * flow.expected_per_message
        for flow in flows
        if flow.sender in schedules
    )
    return Tallied(
        counts, quantiles, lateness, hops.summary(latency.counts), tallies.summary(),
        between_clocks, max(0, scheduled - counts["expected"]), backlog.growing(), waits.waits,
        calls - results,
    )  # fmt: skip


def scheduled_deliveries(flows: Sequence[Flow], schedules: Mapping[int, Schedule]) -> int:
    """Return the deliveries after the warm-up that the schedules require; 0 if one is unknown."""
    if any(flow.sender not in schedules for flow in flows):
        return 0
    return sum(schedules[flow.sender].after_warmup * flow.expected_per_message for flow in flows)
