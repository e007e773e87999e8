"""Compute delay variation and reordering, and the bands of latencies between clocks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from wattwire.model.deployment import Flow
from wattwire.model.hosts.clocks import NodeClocks
from wattwire.model.latencies import concatenated, quantile_rank
from wattwire.model.ledger import infinite

VARIATION_QUANTILES = {"p50": 0.50, "p99": 0.99}


class VariationTally:
    """Delay variation (µs) of a run without its warm-up, accumulated from parts of its ledger.

    The delay variation of a message is its time since the send call minus the smallest such time of
    its sender and receiver in the run. An error of a clock's offset cancels. Reference: RFC 5481,
    section 4.2.
    """

    def __init__(self) -> None:
        self._infinite = 0
        self._values_us: dict[tuple[int, int], list[pl.Series]] = {}

    def add(self, rows: pl.DataFrame) -> None:
        """Add the rows of one part."""
        columns = ("sender", "node", "latency_us", "since_send_us")
        kept = rows.lazy().filter(~pl.col("warm_up")).select(columns).collect()
        self._infinite += infinite(kept)
        arrived = kept.filter(pl.col("since_send_us").is_finite())
        for (sender, node), frame in arrived.group_by("sender", "node"):
            self._values_us.setdefault((sender, node), []).append(frame["since_send_us"])

    def summary(self) -> dict[str, float | None]:
        """Return the quantiles of all parts; null if they fall among lost messages."""
        streams = [concatenated(parts) for parts in self._values_us.values()]
        values = np.concatenate([np.empty(0), *(stream - stream.min() for stream in streams)])
        values.sort()
        total, summary = len(values) + self._infinite, {}
        for name, share in VARIATION_QUANTILES.items():
            rank = quantile_rank(total, share) if total else 0
            summary[f"delay_variation_{name}_us"] = (
                float(values[rank]) if rank < len(values) else None
            )
        return summary


class OrderTally:
    """Number of reordered messages of a run, accumulated from parts by ascending counters.

    A message is reordered if a later message of its sender arrived earlier at the same receiver.
    Only first arrivals count. Reference: RFC 4737, section 3.3.
    """

    def __init__(self, flows: Sequence[Flow]) -> None:
        self._senders = [flow.sender for flow in flows if not flow.result]
        self._ends_ns: dict[tuple[int, int], list[pl.Series]] = {}

    def add(self, rows: pl.DataFrame) -> None:
        """Add the rows of one part."""
        has_arrived = pl.col("sender").is_in(self._senders) & pl.col("end_ns").is_not_null()
        columns = ("sender", "node", "counter", "end_ns")
        arrived = rows.lazy().filter(has_arrived).select(columns).sort("counter").collect()
        for (sender, node), frame in arrived.group_by("sender", "node", maintain_order=True):
            self._ends_ns.setdefault((sender, node), []).append(frame["end_ns"])

    def summary(self) -> dict[str, float | None]:
        """Return the number of reordered messages of all streams; nothing without messages."""
        if not self._senders:
            return {}
        reordered = 0
        for parts in self._ends_ns.values():
            ends_ns = np.concatenate([part.to_numpy() for part in parts])
            earliest_later_ns = np.minimum.accumulate(ends_ns[::-1])[::-1][1:]
            reordered += int((ends_ns[:-1] > earliest_later_ns).sum())
        return {"reordered": reordered}


def clock_bands_us(flows: Sequence[Flow], clocks: NodeClocks) -> dict[str, float]:
    """Return the largest error (µs) of one-way latencies, of whole flows and of their hops."""
    bands = {"clock_band_us": max(clocks.flow_band_ns(flow) for flow in flows) / 1_000}
    for flow in flows:
        for hop, band_ns in enumerate(clocks.hop_bands_ns(flow) if flow.relays else (), 1):
            name = f"clock_band_us.hop.{hop}"
            bands[name] = max(band_ns / 1_000, bands.get(name, 0.0))
    return bands
