"""Decide the fate of each expected delivery of a run.

Counts, losses per hop, saturation, latencies and throughput read the rows of the ledger. No other
code decides whether a message arrived.
"""

from wattwire.model.ledger.deliveries import (
    LedgerPart,
    announced,
    deliveries,
    infinite,
    ledger,
)
from wattwire.model.ledger.fates import (
    EXPECTED,
    HAS_ARRIVED,
    MISSING,
    RECEIVED,
    SCHEMA,
    Fate,
    FateCounts,
)
from wattwire.model.ledger.passages import NEVER_NS, Passages
from wattwire.model.ledger.queues import GAPS, Drain

__all__ = [
    "EXPECTED", "GAPS", "HAS_ARRIVED", "MISSING", "NEVER_NS", "RECEIVED", "SCHEMA", "Drain", "Fate",
    "FateCounts", "LedgerPart", "Passages", "announced", "deliveries", "infinite", "ledger",
]  # fmt: skip
