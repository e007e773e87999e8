"""How much a series of dependent values is worth, and how many separate bursts it holds.

What: the effective sample size of a series, and the number of clusters above a threshold.
How: integrated autocorrelation time by the initial positive sequence (sums of neighbouring
pairs of autocorrelations until one is negative), autocovariances by FFT; clusters by runs
declustering. Of a series longer than SEGMENT_MAX, autocovariances are means over segments of
equal length, side by side, about the mean of the whole: time and memory of each are bounded.
What it misses: dependence longer than the series, or than a segment (then all of a segment counts
as dependent, so that the size is about the number of segments or more); a trend counts as
dependence. Fewer values than there are segments, at the end, are in the mean and variance only.
Reference: Geyer 1992, Statistical Science 7:473; Coles 2001, An Introduction to Statistical
Modeling of Extreme Values, 5.3.2 (runs declustering).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

SEGMENT_MAX = 1 << 20
"""Values whose autocovariances are worked out at a time: some 100 MB."""


def effective_size(series: FloatArray | NDArray[np.bool_]) -> float:
    """Effective number of independent values in `series` (n,), between 1 and n.

    A constant series carries no dependence that could be seen: it counts in full. Infinite
    values stand as the largest finite one.
    """
    data = bounded(series)
    count = data.size
    if count < 4:
        return float(count)
    mean = np.mean(data)
    segments = -(-count // SEGMENT_MAX)
    length = count // segments
    sums, squares = np.zeros(length), 0.0
    padded = 1 << int(np.ceil(np.log2(2 * length)))
    for begin in range(0, count, length):
        centred = data[begin : begin + length] - mean
        squares += float(centred @ centred)
        if centred.size == length:
            spectrum = np.fft.rfft(centred, padded)
            sums += np.fft.irfft(np.abs(spectrum) ** 2, padded)[:length]
    variance = squares / count
    if variance <= np.finfo(np.float64).tiny:
        return float(count)
    correlation = sums / (segments * length * variance)
    pairs = correlation[: length - length % 2].reshape(-1, 2).sum(axis=1)
    negative = np.flatnonzero(pairs <= 0)
    kept = pairs[: int(negative[0])] if negative.size else pairs
    time = max(1.0, 2.0 * float(np.sum(kept)) - 1.0)
    return max(1.0, count / time)


def bounded(series: FloatArray | NDArray[np.bool_]) -> FloatArray:
    """`series` with +inf replaced by the largest finite value (1.0 where there is none)."""
    data = np.asarray(series, dtype=np.float64)
    known = np.isfinite(data)
    if known.all():
        return data
    highest = float(np.max(data, where=known, initial=-np.inf)) if known.any() else 1.0
    return np.where(known, data, highest)


def clusters_above(series: FloatArray | NDArray[np.bool_], threshold: float, gap: int) -> int:
    """Number of clusters of values above `threshold`; more than `gap` values below part two.

    Raises ValueError for a gap below 1.
    """
    if gap < 1:
        raise ValueError(f"gap: {gap} found, at least 1 is allowed")
    above = np.flatnonzero(np.asarray(series, dtype=np.float64) > threshold)
    if above.size == 0:
        return 0
    return int(1 + np.sum(np.diff(above) > gap))
