"""Percentile columns, and the number of messages that a percentile requires in each run."""

from __future__ import annotations

import math
import re

from wattwire.model.flows import COLUMN

QUANTILE = re.compile(r"(latency|since_send|delay_variation)_(p(?P<digits>\d+)|max)_us")
"""Columns of quantiles: infinite if they fall on messages without arrival."""
# The thresholds were defined with this quantile; 1.959964 would change two of them by one.
Z_TWO_SIDED = 1.96
CLUSTERS_MIN = 10
"""Smallest number of separate groups of messages above a percentile over the median."""


def share_of(name: str) -> float | None:
    """Return the quantile of a percentile column (0.99 for latency_p99_us); None for others."""
    of_flow = COLUMN.fullmatch(name)
    quantile = QUANTILE.fullmatch(of_flow["stem"] if of_flow else name)
    digits = quantile["digits"] if quantile else None
    return int(digits) / 10 ** len(digits) if digits else None


def two_sided_size(share: float) -> int:
    """Return the smallest effective size at which both limits of `share` exist at 95 %."""
    tail = math.erfc(Z_TWO_SIDED / math.sqrt(2.0)) / 2.0  # of the standard normal distribution
    outer = max(share, 1.0 - share)
    return math.ceil(math.log(tail) / math.log(outer))


def carried_size(share: float) -> int:
    """Return the smallest number of independent messages for which a percentile has a result.

    Both limits must exist. A percentile above the median also needs CLUSTERS_MIN messages above it.
    """
    tail_size = math.ceil(round(CLUSTERS_MIN / (1.0 - share), 6)) if share > 0.5 else 0
    return max(two_sided_size(share), tail_size)
