"""Compute the payload and the messages that the flows of a run delivered per second."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from wattwire.model.deployment import Flow
from wattwire.model.ledger import HAS_ARRIVED

THROUGHPUT, RATE = "throughput_bytes_per_s", "rate_hz_delivered"


class ThroughputTally:
    """Arrivals of some flows in a span, accumulated from parts of a run's ledger.

    The payload of a message counts once for each receiver, when it arrives first. The payload of a
    request counts when its reply arrives. Corrupt payloads do not count. `span_ns` has the begin
    and the end of the span.
    """

    def __init__(self, flows: Sequence[Flow], span_ns: tuple[int, int]) -> None:
        self._senders = [flow.sender for flow in flows]
        self._begin_ns, self._end_ns = span_ns
        self.messages = self._bytes = 0

    @property
    def seconds(self) -> float:
        """Return the length of the span (s)."""
        return (self._end_ns - self._begin_ns) / 1e9

    def add(self, rows: pl.DataFrame) -> None:
        """Add the rows of one part."""
        in_span = (pl.col("end_ns") >= self._begin_ns) & (pl.col("end_ns") < self._end_ns)
        has_arrived = pl.col("fate").is_in(HAS_ARRIVED) & ~pl.col("is_corrupt")
        counts = in_span & has_arrived & pl.col("sender").is_in(self._senders)
        sizes_bytes = rows.lazy().filter(counts).select("bytes").collect().to_series()
        self.messages += len(sizes_bytes)
        self._bytes += int(sizes_bytes.sum())

    def summary(self) -> dict[str, float | None]:
        """Return the throughput (B/s) and the rate of delivery (Hz); nothing for an empty span."""
        if self.seconds <= 0 or not self._senders:
            return {}
        return {THROUGHPUT: self._bytes / self.seconds, RATE: self.messages / self.seconds}
