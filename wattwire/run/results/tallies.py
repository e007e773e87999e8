"""List the tallies whose columns a whole run and each of its flows have.

A tally accumulates metrics from parts of the ledger, because a run can have more records than
memory. TALLIES is the only place that names it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import polars as pl

from wattwire.model.deployment import Flow
from wattwire.run.results.between_clocks import OrderTally, VariationTally
from wattwire.run.results.throughput import ThroughputTally

Columns = dict[str, float | None]


@dataclass(frozen=True)
class TallyFacts:
    """The flows of a tally, and the begin and end (ns) of the span of their rates."""

    flows: Sequence[Flow]
    span_ns: tuple[int, int]


class Tally(Protocol):
    """Columns of the summary, accumulated from parts of a ledger."""

    def add(self, rows: pl.DataFrame) -> None:
        """Add the deliveries of one part."""

    def summary(self) -> Columns:
        """Return the columns of all parts. Call this once, after the last part."""


TALLIES: tuple[Callable[[TallyFacts], Tally], ...] = (
    lambda facts: OrderTally(facts.flows),
    lambda facts: ThroughputTally(facts.flows, facts.span_ns),
    lambda _: VariationTally(),
)


class Tallies:
    """All tallies of a run or of a flow."""

    def __init__(self, facts: TallyFacts) -> None:
        self._tallies = [make(facts) for make in TALLIES]

    def add(self, rows: pl.DataFrame) -> None:
        """Add the deliveries of one part to each tally."""
        for tally in self._tallies:
            tally.add(rows)

    def summary(self) -> Columns:
        """Return the columns of all tallies. Call this once, after the last part."""
        columns: Columns = {}
        for tally in self._tallies:
            columns |= tally.summary()
        return columns
