"""Define the fates of deliveries, and count them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import IntEnum

import polars as pl


class Fate(IntEnum):
    """The fate of a delivery; every row of a ledger has exactly one."""

    ARRIVED = 0
    LATE = 1
    """Arrived in the second half of the drain."""
    FAILED = 2
    """A call that ended with an error before its timeout."""
    LOST = 3
    """Missing at a hop, or a call without a reply at its timeout."""
    UNDELIVERED = 4
    """Still in the queue of a hop when the drain ended."""
    UNKNOWN = 5
    """Arrived, but the sender left no records, so the number of expected messages is unknown."""
    DUPLICATE = 6
    """An arrival beyond the first of a message that was sent. It is not an expected delivery."""


RECEIVED = (Fate.ARRIVED, Fate.LATE)
HAS_ARRIVED = (*RECEIVED, Fate.UNKNOWN)
MISSING = (Fate.FAILED, Fate.LOST, Fate.UNDELIVERED)
"""Fates with an infinite latency."""
EXPECTED = (*RECEIVED, *MISSING)
"""Fates of the messages in the senders' records, once for each receiver."""

SCHEMA = {
    "node": pl.Int64, "sender": pl.Int64, "counter": pl.Int64, "due_ns": pl.Int64,
    "begin_ns": pl.Int64, "end_ns": pl.Int64, "bytes": pl.Int64, "warm_up": pl.Boolean,
    "is_corrupt": pl.Boolean, "fate": pl.UInt8, "hop": pl.UInt8, "latency_us": pl.Float64,
    "since_send_us": pl.Float64,
}  # fmt: skip
"""Columns of a ledger.

`begin_ns` is the time of the send call that the arrival's record has. `hop` is the hop at which a
message is missing, from 1; it is 0 for calls and for messages that arrived.
"""


@dataclass(frozen=True)
class FateCounts:
    """Numbers of deliveries by sender, hop, fate and warm-up, accumulated from parts of a run."""

    numbers: Counter[tuple[int, int, int, bool]] = field(default_factory=Counter)

    def add(self, rows: pl.DataFrame) -> None:
        """Add the rows of one part of a ledger."""
        grouped = rows.group_by("sender", "hop", "fate", "warm_up").len()
        for sender, hop, fate, warm_up, count in grouped.iter_rows():
            self.numbers[sender, hop, fate, warm_up] += count

    def of(
        self,
        *fates: Fate,
        sender: int | None = None,
        hop: int | None = None,
        with_warm_up: bool = True,
    ) -> int:
        """Return the number of deliveries with these fates, of all senders and hops by default."""
        return sum(
            count
            for (its_sender, its_hop, fate, warm_up), count in self.numbers.items()
            if fate in fates
            and sender in (None, its_sender)
            and hop in (None, its_hop)
            and (with_warm_up or not warm_up)
        )
