"""Percentiles that the data can carry, with order-statistic intervals.

What: one percentile of one run's series, in time order, lost messages standing as +inf.
How: nearest rank. The effective size is the smaller of the series' and of the indicator's of
exceeding the percentile; an interval is printed from the size at which an order statistic
limits each side at 95 %, called stable from the size at which the tail's count is known to
a quarter, and refused with fewer than ten clusters above the percentile.
What it misses: it describes this run only; a treatment's interval is over its runs.
Reference: Hahn & Meeker, Statistical Intervals, 5.2; thresholds 368 / 3,688 / 36,888 and
6,086 / 61,405 / 614,595 for p99 / p99.9 / p99.99.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import special
from scipy import stats as scipy_stats

from wattwire.stats.results import Interval, TooFew
from wattwire.stats.series.dependence import clusters_above, effective_size

FloatArray = NDArray[np.float64]

# The normal quantile as the thresholds were laid down with it; 1.959964 would move two by one.
Z_TWO_SIDED = 1.96
TAIL_COUNT_PRECISION = 0.25
CLUSTERS_MIN = 10


@dataclass(frozen=True)
class Percentile:
    """A percentile of one run in the unit of the series; `stable` by the tail's count."""

    share: float
    interval: Interval
    effective_count: float
    clusters: int
    stable: bool


def two_sided_size(share: float) -> int:
    """Smallest effective size at which both limits of percentile `share` exist at 95 %."""
    tail = float(special.ndtr(-Z_TWO_SIDED))
    outer = max(share, 1.0 - share)
    return math.ceil(math.log(tail) / math.log(outer))


def stable_size(share: float) -> int:
    """Effective size from which the count above `share` is known to ± 25 % at 95 %."""
    return math.ceil((Z_TWO_SIDED / TAIL_COUNT_PRECISION) ** 2 * _odds(share))


def carried_size(share: float) -> int:
    """Return the fewest independent messages of which `percentile` gives percentile `share`.

    Both limits must exist, and above the median there must be CLUSTERS_MIN messages beyond it.
    """
    beyond = math.ceil(round(CLUSTERS_MIN / (1.0 - share), 6)) if share > 0.5 else 0
    return max(two_sided_size(share), beyond)


def _odds(share: float) -> float:
    # 0.99/0.01 must be 99 and not 98.99…: round away the binary representation of the share.
    return round(share / (1.0 - share), 6)


def nearest_rank(sorted_values: FloatArray, share: float) -> float:
    """The ceil(share·n)-th smallest of ascending values; +inf where it falls on a loss."""
    count = sorted_values.size
    rank = min(count, max(1, math.ceil(round(share * count, 9))))
    return float(sorted_values[rank - 1])


def percentile(
    series: Sequence[float] | FloatArray, share: float, confidence: float = 0.95
) -> Percentile | TooFew:
    """Percentile `share` (0 … 1) of `series` (n,) in time order, by the rule of enough samples.

    Returns `TooFew` with what was found where the rule refuses. Raises ValueError for a share
    outside (0, 1) or NaN in the series.
    """
    if not 0.0 < share < 1.0:
        raise ValueError(f"share: {share} found, between 0 and 1 is allowed")
    values = np.asarray(series, dtype=np.float64)
    if np.isnan(values).any():
        raise ValueError("series: NaN found; a lost message is +inf, anything else is left out")
    needed = two_sided_size(share)
    if values.size < needed:
        return TooFew(values.size, needed, "messages")
    ordered = np.sort(values)
    centre = nearest_rank(ordered, share)
    # Where the percentile falls on a loss nothing is above it: the losses are its tail.
    above = np.isinf(values) if math.isinf(centre) else values > centre
    series_size = effective_size(values)
    size = min(series_size, effective_size(above))
    if size < needed:
        return TooFew(math.floor(size), needed, "independent messages (effective)")
    gap = max(1, math.ceil(values.size / series_size))
    clusters = clusters_above(above, 0.5, gap)
    if share > 0.5 and clusters < CLUSTERS_MIN:
        return TooFew(clusters, CLUSTERS_MIN, "separate clusters above it")
    low, high, level = _limits(ordered, share, size, confidence)
    interval = Interval(centre, low, high, level, int(values.size), "order statistics")
    return Percentile(share, interval, size, clusters, size >= stable_size(share))


def _limits(
    ordered: FloatArray, share: float, size: float, confidence: float
) -> tuple[float, float, float]:
    """Order statistics at the binomial ranks of an independent sample of `size` values."""
    whole = math.floor(size)
    below, above, level = _binomial_ranks(whole, share, confidence)
    low_rank = max(1, math.floor(below / whole * ordered.size))
    high_rank = min(ordered.size, math.ceil(above / whole * ordered.size))
    return float(ordered[low_rank - 1]), float(ordered[high_rank - 1]), level


@lru_cache(maxsize=4096)
def _binomial_ranks(count: int, share: float, confidence: float) -> tuple[int, int, float]:
    """Lower rank, upper rank and exact level of an order-statistic interval."""
    tail = (1.0 - confidence) / 2.0
    below = int(scipy_stats.binom.ppf(tail, count, share))
    above = int(scipy_stats.binom.ppf(1.0 - tail, count, share)) + 1
    held = scipy_stats.binom.cdf(np.array([below - 1, above - 1]), count, share)
    return below, above, float(np.diff(held)[0])
