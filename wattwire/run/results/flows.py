"""Compute the counts, latency, rate and throughput of each flow of a study with `[[flow]]` tables.

The columns are those of the whole run with the suffix `.flow.NAME`. `model/derived.py` derives
further ones from them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from wattwire.model.deployment import Flow
from wattwire.model.hosts.clocks import NodeClocks
from wattwire.model.latencies import LatencyTally
from wattwire.model.ledger import Fate, LedgerPart
from wattwire.model.metrics import OF_FLOWS
from wattwire.run.results import delivery
from wattwire.run.results.between_clocks import clock_bands_us
from wattwire.run.results.saturation import BacklogTally, Schedule, backlog_growth
from wattwire.run.results.tallies import Columns, Tallies, TallyFacts

RESTING_ON_SENT = (
    *delivery.RESTING_ON_SENT, *delivery.AFTER_WARMUP, "rate_hz_achieved",
)  # fmt: skip
"""Columns that are unknown if the sender left no records."""


@dataclass(frozen=True)
class FlowFacts:
    """A flow, the period of its sender, and the counted span.

    The span is the window without its warm-up, by its begin and end. Rate and throughput refer to
    the messages that were sent, or that arrived, within it. `schedules` maps the flow's sender to
    its schedule; it is empty if the run ended before its schedule.
    """

    flow: Flow
    period_ns: int
    span_ns: tuple[int, int]
    schedules: Mapping[int, Schedule] = field(default_factory=dict)


class FlowTally:
    """Results of one flow, accumulated from parts of a run's ledger."""

    def __init__(self, facts: FlowFacts) -> None:
        self._facts = facts
        self._latency, self._backlog = LatencyTally(), BacklogTally(facts.schedules)
        self._tallies = Tallies(TallyFacts([facts.flow], facts.span_ns))
        self._sent = 0

    def add(self, part: LedgerPart) -> None:
        """Add one part, with the deliveries of all flows."""
        flow = self._facts.flow
        own = part.deliveries.filter(pl.col("sender") == flow.sender)
        for tally in (self._latency, self._backlog, self._tallies):
            tally.add(own)
        self._sent += delivery.sent_within([part.records], [flow], self._facts.span_ns)

    def summary(self, is_recorded: bool, clocks: NodeClocks | None) -> Columns:
        """Return the columns of the flow. Call this once, after the last part.

        `is_recorded` is false if the sender left no records.
        """
        facts, flow, latency = self._facts, self._facts.flow, self._latency
        columns: Columns = {**delivery.count_summary(latency.counts, [flow])}
        if not flow.result:
            columns["undelivered"] = latency.counts.of(Fate.UNDELIVERED)
        columns |= latency.summary(
            facts.period_ns, delivery.scheduled_deliveries([flow], facts.schedules)
        )
        columns["backlog_growth"] = backlog_growth(self._backlog.growing())
        columns |= self._tallies.summary()
        if not flow.result:
            columns["undelivered_after_warmup"] = latency.after_warmup(Fate.UNDELIVERED)
        begin_ns, end_ns = facts.span_ns
        if end_ns > begin_ns:
            columns["rate_hz_achieved"] = self._sent / ((end_ns - begin_ns) / 1e9)
        if clocks:
            columns |= clock_bands_us([flow], clocks)
        if not is_recorded:
            columns |= dict.fromkeys(columns.keys() & set(RESTING_ON_SENT))
        suffix = f".flow.{flow.name}"
        return {f"{name}{suffix}": v for name, v in columns.items() if name in OF_FLOWS}


class FlowTallies:
    """Results of several flows."""

    def __init__(self, flows: Sequence[FlowFacts]) -> None:
        self._tallies = {facts.flow.sender: FlowTally(facts) for facts in flows}

    def add(self, part: LedgerPart) -> None:
        """Add one part."""
        for tally in self._tallies.values():
            tally.add(part)

    def summary(self, unrecorded: Collection[int], clocks: NodeClocks | None) -> Columns:
        """Return the columns of all flows. The nodes in `unrecorded` left no records."""
        columns: Columns = {}
        for sender, tally in self._tallies.items():
            columns |= tally.summary(sender not in unrecorded, clocks)
        return columns
