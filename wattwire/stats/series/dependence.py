"""Estimate the effective sample size of a dependent series, and count its separate bursts.

What it computes: the effective sample size of a series, and the number of clusters above a
threshold.
How: the integrated autocorrelation time by the initial positive sequence (sums of neighbouring
pairs of autocorrelations until a sum is negative), with autocovariances by FFT, and clusters by
runs declustering. For a series longer than SEGMENT_MAX, the autocovariances are means over adjacent
segments of equal length, about the mean of the whole series. This limits time and memory.
What it misses: dependence over longer ranges than the series or a segment. A whole segment then
counts as dependent, and the size is at least about the number of segments. A trend counts as
dependence. Values left over after the last segment affect only the mean and the variance.
Reference: Geyer 1992, Statistical Science 7:473; Coles 2001, An Introduction to Statistical
Modeling of Extreme Values, 5.3.2 (runs declustering).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

SEGMENT_MAX = 1 << 20
"""Maximum number of values in a computation of autocovariances: about 100 MB."""


def effective_size(series: FloatArray | NDArray[np.bool_]) -> float:
    """Return the effective number of independent values in `series` (n,), between 1 and n.

    A constant series has no dependence, so the result is n. Infinite values are replaced by the
    largest finite value.
    """
    values = bounded(series)
    count = values.size
    if count < 4:
        return float(count)
    mean = np.mean(values)
    segments = -(-count // SEGMENT_MAX)
    length = count // segments
    autocovariance_sums, squares = np.zeros(length), 0.0
    padded_length = 1 << int(np.ceil(np.log2(2 * length)))
    for begin in range(0, count, length):
        centred = values[begin : begin + length] - mean
        squares += float(centred @ centred)
        if centred.size == length:
            spectrum = np.fft.rfft(centred, padded_length)
            autocovariance_sums += np.fft.irfft(np.abs(spectrum) ** 2, padded_length)[:length]
    variance = squares / count
    if variance <= np.finfo(np.float64).tiny:
        return float(count)
    correlation = autocovariance_sums / (segments * length * variance)
    pairs = correlation[: length - length % 2].reshape(-1, 2).sum(axis=1)
    negative = np.flatnonzero(pairs <= 0)
    positive_pairs = pairs[: int(negative[0])] if negative.size else pairs
    autocorrelation_time = max(1.0, 2.0 * float(np.sum(positive_pairs)) - 1.0)
    return max(1.0, count / autocorrelation_time)


def bounded(series: FloatArray | NDArray[np.bool_]) -> FloatArray:
    """Return `series` with +inf replaced by the largest finite value, or by 1.0 without one."""
    values = np.asarray(series, dtype=np.float64)
    finite = np.isfinite(values)
    if finite.all():
        return values
    highest = float(np.max(values, where=finite, initial=-np.inf)) if finite.any() else 1.0
    return np.where(finite, values, highest)


def clusters_above(series: FloatArray | NDArray[np.bool_], threshold: float, gap: int) -> int:
    """Return the number of clusters of values above `threshold`.

    More than `gap` values below the threshold separate two clusters. Raise ValueError for a gap
    below 1.
    """
    if gap < 1:
        raise ValueError(f"gap: found {gap}; allowed: at least 1")
    above = np.flatnonzero(np.asarray(series, dtype=np.float64) > threshold)
    if above.size == 0:
        return 0
    return int(1 + np.sum(np.diff(above) > gap))
