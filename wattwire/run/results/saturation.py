"""Separate messages that a saturated hop had not delivered in time from lost messages.

Above the capacity of a hop, its queue and the latency of its messages grow for as long as the
senders send. Messages that are still in the queue when `linger_ms` ends are neither delivered nor
lost.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

Mask = npt.NDArray[np.bool_]
GROWTH = "latency_growth_us_per_s"
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


@dataclass
class Tail:
    """Messages of one hop that have not passed it, after the last counter that has.

    `missing` is the number of all messages that have not passed the hop. `tail` and
    `tail_after_warmup` are those after the last counter that has, with and without the warm-up.
    """

    missing: int = 0
    tail: int = 0
    tail_after_warmup: int = 0

    def add(self, due: Mask, passed: Mask, warm_up: Mask) -> None:
        """Add a part of the messages in the order of their counters, each of shape (messages,).

        `due` messages have passed all earlier hops.
        """
        is_missing = due & ~passed
        self.missing += int(is_missing.sum())
        passed_at = np.flatnonzero(passed)
        if passed_at.size:
            self.tail = self.tail_after_warmup = 0
            is_missing[: passed_at[-1]] = False
        self.tail += int(is_missing.sum())
        self.tail_after_warmup += int((is_missing & ~warm_up).sum())


class GrowthTally:
    """Growth of latency with the time of sending, accumulated from parts of a run's deliveries.

    The growth is the slope of the least-squares line of latency over send time, without the
    warm-up and without messages that did not arrive. In a saturated open loop, it is the offered
    rate divided by the capacity, minus 1, times 10⁶ µs/s.
    """

    def __init__(self) -> None:
        self._origin_ns: int | None = None
        self._sums = np.zeros(5)

    def add(self, expected: pl.DataFrame) -> None:
        """Add the deliveries of one part (`model/deliveries.py`)."""
        arrived = expected.filter(
            ~pl.col("warm_up") & pl.col("latency_us").is_finite() & pl.col("due_ns").is_not_null()
        )
        if arrived.is_empty():
            return
        if self._origin_ns is None:
            self._origin_ns = int(arrived["due_ns"][0])
        due_s = (arrived["due_ns"] - self._origin_ns).to_numpy() / 1e9
        latency_us = arrived["latency_us"].to_numpy()
        self._sums += np.array([
            len(due_s), due_s.sum(), latency_us.sum(), due_s @ due_s, due_s @ latency_us,
        ])  # fmt: skip

    def summary(self) -> dict[str, float | None]:
        """Return the growth (µs/s); None with fewer than two send times."""
        count, due_s, latency_us, squares, products = self._sums.tolist()
        spread = count * squares - due_s * due_s
        if count < 2 or spread <= 0:
            return {GROWTH: None}
        slope = (count * products - due_s * latency_us) / spread
        return {GROWTH: slope if math.isfinite(slope) else None}
