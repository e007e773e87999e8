"""Compute the counts, latency, rate and throughput of each flow of a study with `[[flow]]` tables.

The columns are those of the whole run with the suffix `.flow.NAME`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from wattwire.model.deliveries import LatencyTally
from wattwire.model.deployment import Flow
from wattwire.model.hosts.clocks import NodeClocks
from wattwire.model.metrics import OF_FLOWS
from wattwire.run.results import delivery
from wattwire.run.results.between_clocks import OrderTally, VariationTally, clock_bands_us
from wattwire.run.results.hops import Undelivered
from wattwire.run.results.saturation import BacklogTally, Schedule, backlog_growth

SECOND_NS = 1_000_000_000
RESTING_ON_SENT = (
    *delivery.RESTING_ON_SENT, *delivery.AFTER_WARMUP, "loss_share", "rate_hz_achieved",
)  # fmt: skip
"""Columns that are unknown if the sender left no records."""


@dataclass(frozen=True)
class FlowFacts:
    """A flow, the period of its sender, the payload of a message, and the counted span.

    The span is the window without its warm-up, by its begin and end. Rate and throughput refer to
    the messages that were sent, or that arrived, within it. `schedules` maps the flow's sender to
    its schedule; it is empty if the run ended before its schedule.
    """

    flow: Flow
    period_ns: int
    payload_bytes: int
    span_ns: tuple[int, int]
    schedules: Mapping[int, Schedule] = field(default_factory=dict)


class FlowTally:
    """Results of one flow, accumulated from parts of a run's records."""

    def __init__(self, facts: FlowFacts) -> None:
        self._facts = facts
        self._counts: Counter[str] = Counter()
        self._latency, self._variation = LatencyTally(), VariationTally()
        self._order, self._backlog = OrderTally([facts.flow]), BacklogTally(facts.schedules)
        self._sent = self._arrived = 0

    def add(self, part: pl.DataFrame, expected: pl.DataFrame, late_after_ns: int) -> None:
        """Add the records of one part, and the deliveries of all flows in it."""
        flow, (begin_ns, end_ns) = self._facts.flow, self._facts.span_ns
        own = expected.filter(pl.col("sender") == flow.sender)
        pairs = delivery.count_pairs(part, [flow])
        self._counts.update(delivery.count_summary(part, pairs, own, late_after_ns))
        self._latency.add(own)
        self._variation.add(own)
        self._order.add(own)
        self._backlog.add(own)
        self._sent += delivery.sent_within([part], [flow], self._facts.span_ns)
        in_span = (pl.col("end_ns") >= begin_ns) & (pl.col("end_ns") < end_ns)
        self._arrived += own.filter(pl.col("latency_us").is_finite() & in_span).height

    def summary(
        self, is_recorded: bool, clocks: NodeClocks | None, undelivered: Undelivered | None = None
    ) -> dict[str, float | None]:
        """Return the columns of the flow. Call this once, after the last part.

        `is_recorded` is false if the sender left no records. `undelivered` are the messages that a
        saturated hop had not delivered in time; they are not lost.
        """
        facts = self._facts
        if undelivered:
            self._counts.update({"undelivered": undelivered.total, "lost": -undelivered.total})
        columns: dict[str, float | None] = {**self._counts}
        columns |= self._latency.summary(
            facts.period_ns, delivery.scheduled_deliveries([facts.flow], facts.schedules)
        )
        columns["backlog_growth"] = backlog_growth(self._backlog.growing())
        columns |= self._variation.summary()
        reordered, received = self._order.count(), columns["received_unique"]
        columns["reordered"] = reordered
        columns["reordered_share"] = reordered / received if received else None
        if undelivered:
            columns["undelivered_after_warmup"] = undelivered.after_warmup
            missing = columns["lost_after_warmup"] or 0
            columns["lost_after_warmup"] = missing - undelivered.after_warmup
        lost, expected = columns["lost_after_warmup"], columns["expected_after_warmup"]
        columns["loss_share"] = lost / expected if expected and lost is not None else None
        seconds = (facts.span_ns[1] - facts.span_ns[0]) / SECOND_NS
        if seconds > 0:
            columns["rate_hz_achieved"] = self._sent / seconds
            columns["throughput_bytes_per_s"] = self._arrived * facts.payload_bytes / seconds
        if clocks:
            columns |= clock_bands_us([facts.flow], clocks)
        if not is_recorded:
            columns |= dict.fromkeys(columns.keys() & set(RESTING_ON_SENT))
        suffix = f".flow.{facts.flow.name}"
        return {f"{name}{suffix}": v for name, v in columns.items() if name in OF_FLOWS}


class FlowTallies:
    """Results of several flows."""

    def __init__(self, flows: Sequence[FlowFacts]) -> None:
        self._tallies = {facts.flow.sender: FlowTally(facts) for facts in flows}

    def add(self, part: pl.DataFrame, expected: pl.DataFrame, late_after_ns: int) -> None:
        """Add the records of one part, and its deliveries."""
        for tally in self._tallies.values():
            tally.add(part, expected, late_after_ns)

    def summary(
        self,
        unrecorded: Collection[int],
        clocks: NodeClocks | None,
        undelivered: Mapping[int, Undelivered] | None = None,
    ) -> dict[str, float | None]:
        """Return the columns of all flows. The nodes in `unrecorded` left no records.

        `undelivered` maps a sender to its messages that a saturated hop had not delivered in time.
        """
        columns: dict[str, float | None] = {}
        for sender, tally in self._tallies.items():
            of_flow = (undelivered or {}).get(sender)
            columns |= tally.summary(sender not in unrecorded, clocks, of_flow)
        return columns
