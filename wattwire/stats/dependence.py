"""How much a series of dependent values is worth, and how many separate bursts it holds.

What: the effective sample size of a series, and the number of clusters above a threshold.
How: integrated autocorrelation time by the initial positive sequence (sums of neighbouring
pairs of autocorrelations until one is negative), autocovariances by FFT; clusters by runs
declustering.
What it misses: dependence longer than the series; a trend counts as dependence.
Reference: Geyer 1992, Statistical Science 7:473; Coles 2001, An Introduction to Statistical
Modeling of Extreme Values, 5.3.2 (runs declustering).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


def effective_size(series: FloatArray) -> float:
    """Effective number of independent values in `series` (n,), between 1 and n.

    A constant series carries no dependence that could be seen: it counts in full. Infinite
    values stand as the largest finite one.
    """
    data = bounded(series)
    count = data.size
    if count < 4:
        return float(count)
    centred = data - np.mean(data)
    variance = float(centred @ centred) / count
    if variance <= np.finfo(np.float64).tiny:
        return float(count)
    padded = 1 << int(np.ceil(np.log2(2 * count)))
    spectrum = np.fft.rfft(centred, padded)
    correlation = np.fft.irfft(np.abs(spectrum) ** 2, padded)[:count] / (count * variance)
    pairs = correlation[: count - count % 2].reshape(-1, 2).sum(axis=1)
    negative = np.flatnonzero(pairs <= 0)
    kept = pairs[: int(negative[0])] if negative.size else pairs
    time = max(1.0, 2.0 * float(np.sum(kept)) - 1.0)
    return max(1.0, count / time)


def bounded(series: FloatArray) -> FloatArray:
    """`series` with +inf replaced by the largest finite value (1.0 where there is none)."""
    data = np.asarray(series, dtype=np.float64)
    finite = data[np.isfinite(data)]
    highest = float(np.max(finite)) if finite.size else 1.0
    return np.where(np.isfinite(data), data, highest)


def clusters_above(series: FloatArray, threshold: float, gap: int) -> int:
    """Number of clusters of values above `threshold`; more than `gap` values below part two.

    Raises ValueError for a gap below 1.
    """
    if gap < 1:
        raise ValueError(f"gap: {gap} found, at least 1 is allowed")
    above = np.flatnonzero(np.asarray(series) > threshold)
    if above.size == 0:
        return 0
    return int(1 + np.sum(np.diff(above) > gap))
