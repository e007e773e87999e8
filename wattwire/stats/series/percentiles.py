"""Estimate percentiles of sufficiently long series, with order-statistic intervals.

What it computes: one percentile of a run's series in time order; lost messages are +inf.
How: nearest rank. The effective size is the smaller of the effective sizes of the series and of the
indicator that a value exceeds the percentile. An interval is reported from the size at which order
statistics give both limits at 95 %. The percentile is called stable from the size at which the
number of values in the tail is known to ± 25 %. It is refused with fewer than ten clusters above
the percentile.
What it misses: scatter between runs. The interval of a treatment is computed over its runs.
Reference: Hahn & Meeker, Statistical Intervals, 5.2; thresholds 368 / 3,688 / 36,888 and 6,086 /
61,405 / 614,595 for p99 / p99.9 / p99.99.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import special

from wattwire.model.quantiles import CLUSTERS_MIN, Z_TWO_SIDED, carried_size, two_sided_size
from wattwire.stats.results import Interval, TooFew
from wattwire.stats.series.dependence import clusters_above, effective_size

FloatArray = NDArray[np.float64]

TAIL_COUNT_PRECISION = 0.25


@dataclass(frozen=True)
class Percentile:
    """A percentile of one run, in the unit of the series. `stable` depends on the tail's size."""

    share: float
    interval: Interval
    effective_count: float
    clusters: int
    stable: bool


def stable_size(share: float) -> int:
    """Return the effective size at which the count above `share` is known to ± 25 % at 95 %."""
    return math.ceil((Z_TWO_SIDED / TAIL_COUNT_PRECISION) ** 2 * _odds(share))


def _odds(share: float) -> float:
    # 0.99/0.01 must be 99, not 98.99…, so round off the error of the binary representation.
    return round(share / (1.0 - share), 6)


def nearest_rank(sorted_values: FloatArray, share: float) -> float:
    """Return the ceil(share·n)-th smallest of ascending values. A loss counts as +inf."""
    count = sorted_values.size
    rank = min(count, max(1, math.ceil(round(share * count, 9))))
    return float(sorted_values[rank - 1])


def percentile(
    series: Sequence[float] | FloatArray, share: float, confidence: float = 0.95
) -> Percentile | TooFew:
    """Return percentile `share` (0 … 1) of `series` (n,) in time order.

    If there are too few samples, return `TooFew` with their number. Raise ValueError for a share
    outside (0, 1) or NaN in the series.
    """
    if not 0.0 < share < 1.0:
        raise ValueError(f"share: found {share}; allowed: a number between 0 and 1")
    values = np.asarray(series, dtype=np.float64)
    if np.isnan(values).any():
        raise ValueError("series: found NaN; allowed: numbers, and +inf for lost messages")
    needed = two_sided_size(share)
    if values.size < carried_size(share):
        return TooFew(values.size, carried_size(share), "messages")
    ordered = np.sort(values)
    centre = nearest_rank(ordered, share)
    # If the percentile is infinite, no value exceeds it, and the losses are its tail.
    above = np.isinf(values) if math.isinf(centre) else values > centre
    series_size = effective_size(values)
    effective = min(series_size, effective_size(above))
    if effective < needed:
        return TooFew(math.floor(effective), needed, "messages in the effective sample")
    gap = max(1, math.ceil(values.size / series_size))
    clusters = clusters_above(above, 0.5, gap)
    if share > 0.5 and clusters < CLUSTERS_MIN:
        return TooFew(clusters, CLUSTERS_MIN, "clusters of messages above it")
    low, high, level = _limits(ordered, share, effective, confidence)
    interval = Interval(centre, low, high, level, int(values.size), "order statistics")
    return Percentile(share, interval, effective, clusters, effective >= stable_size(share))


def _limits(
    ordered: FloatArray, share: float, size: float, confidence: float
) -> tuple[float, float, float]:
    """Return the lower limit, the upper limit and their level.

    The limits are order statistics at the binomial ranks of an independent sample of `size` values.
    """
    sample_size = math.floor(size)
    sample_low, sample_high, level = _binomial_ranks(sample_size, share, confidence)
    low_rank = max(1, math.floor(sample_low / sample_size * ordered.size))
    high_rank = min(ordered.size, math.ceil(sample_high / sample_size * ordered.size))
    return float(ordered[low_rank - 1]), float(ordered[high_rank - 1]), level


@lru_cache(maxsize=4096)
def _binomial_ranks(count: int, share: float, confidence: float) -> tuple[int, int, float]:
    """Return the lower rank, upper rank and exact level of an order-statistic interval."""
    tail = (1.0 - confidence) / 2.0
    # bdtrik solves P(X ≤ k) = tail for a real k, so the quantile is the next integer.
    lower_rank = math.ceil(special.bdtrik(tail, count, share))
    upper_rank = math.ceil(special.bdtrik(1.0 - tail, count, share)) + 1
    # P(X < rank) is the regularised incomplete beta function, which bdtr computes less precisely.
    ranks = np.array([lower_rank, upper_rank])
    cumulative = special.betaincc(ranks, count - ranks + 1, share)
    return lower_rank, upper_rank, float(np.diff(cumulative)[0])
