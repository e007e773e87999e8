"""Summarize the latencies of a run from its ledger.

The quantiles of the summary and the curves of the page use the same rows of `ledger`.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import polars as pl

from wattwire.model.ledger import EXPECTED, MISSING, Fate, FateCounts

LATENCY, SINCE_SEND = "latency", "since_send"
"""Stems of the columns: the time from the due time, and the time from the send call."""
LATENCY_QUANTILES = {
    "p50": 0.50, "p90": 0.90, "p95": 0.95, "p99": 0.99, "p999": 0.999, "max": 1.0,
}  # fmt: skip
MISSED = {
    "soft_deadline_missed_share": (0.2, 5_000_000),
    "hard_deadline_missed_share": (1.0, 50_000_000),
}
"""Column → share of the period and upper limit (ns); the smaller of both is the deadline."""


def quantile_rank(count: int, share: float) -> int:
    """Return the 0-based index of the nearest-rank quantile `share` in `count` sorted values."""
    return min(count, max(1, math.ceil(round(share * count, 9)))) - 1


class LatencyTally:
    """Latency (µs) of a run without its warm-up, accumulated from parts of its ledger."""

    def __init__(self) -> None:
        self.counts = FateCounts()
        self._values_us: dict[str, list[pl.Series]] = {LATENCY: [], SINCE_SEND: []}

    @property
    def expected(self) -> int:
        """Return the number of deliveries after the warm-up, without duplicates."""
        return self.after_warmup(*EXPECTED, Fate.UNKNOWN)

    def after_warmup(self, *fates: Fate) -> int:
        """Return the number of deliveries after the warm-up with these fates."""
        return self.counts.of(*fates, with_warm_up=False)

    def add(self, rows: pl.DataFrame) -> None:
        """Add the rows of one part."""
        self.counts.add(rows)
        names = [f"{stem}_us" for stem in self._values_us]
        has_arrived = ~pl.col("warm_up") & pl.col("latency_us").is_finite()
        arrived = rows.lazy().filter(has_arrived).select(names).collect()
        for name, parts in zip(names, self._values_us.values(), strict=True):
            parts.append(arrived[name])

    def summary(self, period_ns: int = 0, scheduled: int = 0) -> dict[str, float | None]:
        """Return the summary of all parts. Call this once, after the last part.

        A quantile is null (infinite) if it falls among messages that never arrived. `scheduled` is
        the number of deliveries after the warm-up that the schedule requires, 0 if unknown; those
        that were never sent are infinitely late, but have no time since a send call. Shares of
        missed deadlines require the period of an open loop; messages without arrival miss their
        deadlines.
        """
        unsent, missing = max(0, scheduled - self.expected), self.after_warmup(*MISSING)
        infinite_of = {LATENCY: missing + unsent, SINCE_SEND: missing}
        summary: dict[str, float | None] = {
            "latency_samples": sum(map(len, self._values_us[LATENCY])),
            "expected_after_warmup": self.expected,
            "failed_after_warmup": self.after_warmup(Fate.FAILED),
            "lost_after_warmup": self.after_warmup(Fate.LOST),
        }
        if scheduled:
            summary["unsent_after_warmup"] = unsent
        for stem, parts in self._values_us.items():
            values = concatenated(parts)
            values.sort()
            total = len(values) + infinite_of[stem]
            for name, share in LATENCY_QUANTILES.items():
                rank = quantile_rank(total, share) if total else 0
                at_rank = float(values[rank]) if rank < len(values) else None
                summary[f"{stem}_{name}_us"] = at_rank
            summary[f"{stem}_mean_us"] = float(values.mean()) if len(values) else None
            if stem == LATENCY and period_ns and total:
                summary |= _missed_shares(values, total, period_ns)
        return summary


def latency_summary(rows: pl.DataFrame) -> dict[str, float | None]:
    """Return the latency (µs) of one run from all rows of its ledger, without the warm-up."""
    tally = LatencyTally()
    tally.add(rows)
    return tally.summary()


def _missed_shares(
    values_us: npt.NDArray[np.float64], total: int, period_ns: int
) -> dict[str, float]:
    """Return the share of `total` deliveries that missed each deadline; the values are sorted."""
    shares = {}
    for name, (share, limit_ns) in MISSED.items():
        deadline_us = min(share * period_ns, limit_ns) / 1000
        in_time = int(np.searchsorted(values_us, deadline_us, side="right"))
        shares[name] = (total - in_time) / total
    return shares


def concatenated(parts: list[pl.Series]) -> npt.NDArray[np.float64]:
    """Return the values of all parts in one array, and empty `parts` to free memory."""
    values = np.concatenate([np.empty(0), *(part.to_numpy() for part in parts)])
    parts.clear()
    return values
