"""Compute the empirical distribution with losses, downsampled for plots.

What it computes: the share of the expected messages that arrived within a given time.
How: a step function over the sorted finite values. The denominator includes lost messages (+inf),
so the curve ends at the share that arrived. Downsampling selects evenly spaced ranks and both ends,
with a fifth of the points in the top percent.
What it misses: detail between the selected ranks. Each selected point is exact.
Reference: van der Vaart, Asymptotic Statistics, ch. 19.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Ecdf:
    """Points (value, share of values ≤ value) in ascending order; `expected` includes losses."""

    values: FloatArray
    shares: FloatArray
    expected: int
    lost: int
    thinned: bool


def ecdf(series: FloatArray, points_max: int = 400) -> Ecdf:
    """Return the ECDF of `series` (n,) with at most `points_max` points; lost messages are +inf.

    Raise ValueError for NaN, or if `points_max` is below 20.
    """
    if points_max < 20:
        raise ValueError(f"points_max: found {points_max}; allowed: at least 20")
    values = np.asarray(series, dtype=np.float64)
    if np.isnan(values).any():
        raise ValueError("series: found NaN; allowed: numbers, and +inf for lost messages")
    finite = values[np.isfinite(values)]
    finite.sort()
    expected = int(values.size)
    if finite.size == 0:
        return Ecdf(finite, finite.copy(), expected, expected, False)
    thinned = finite.size > points_max
    if not thinned:
        ranks = np.arange(1, finite.size + 1)
    else:
        tail_points = points_max // 5
        body_ranks = np.linspace(1, finite.size, points_max - tail_points)
        tail_ranks = np.linspace(0.99 * finite.size, finite.size, tail_points)
        ranks = np.unique(np.rint(np.concatenate([body_ranks, tail_ranks])).astype(np.int64))
    return Ecdf(finite[ranks - 1], ranks / expected, expected, expected - finite.size, thinned)
