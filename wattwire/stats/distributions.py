"""What tests and intervals ask of scipy.stats, without loading it where a page needs no more.

What: the tails and quantiles of t, normal, F, χ² and beta, mean ranks, Pearson's r and Royston's
W, by the special functions that scipy.stats calls for them: the same numbers. Anything else is
taken from scipy.stats when it is first asked for; loading that takes as long as half of a page.
What it misses: arguments are not checked; who calls keeps to finite parameters above zero.
Reference: Royston 1995, Applied Statistics 44:547 (algorithm R94).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

FloatArray = NDArray[np.float64]

LEAST_P = 1e-99
"""Royston's p where W is smaller than his approximation reaches."""
# Polynomials of algorithm R94, highest power first.
LARGEST = (-2.706056, 4.434685, -2.07119, -0.147981, 0.221157, 0.0)
SECOND = (-3.582633, 5.682633, -1.752461, -0.293762, 0.042981, 0.0)
SMALL_LIMIT = (0.459, -2.273)
SMALL_MEAN = (-6.714e-4, 0.025054, -0.39978, 0.544)
SMALL_DEVIATION = (-0.0020322, 0.062767, -0.77857, 1.3822)
MEAN = (0.0038915, -0.083751, -0.31082, -1.5861)
DEVIATION = (0.0030302, -0.082676, -0.4803)
SMALL_MAX = 11


def __getattr__(name: str) -> Any:
    """A member of scipy.stats that is not here."""
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from scipy import stats  # noqa: PLC0415 - slow to load, and most pages do without

    return getattr(stats, name)


class t:  # noqa: N801 - named as in scipy.stats, whose place it takes
    """Student's t with `degrees` of freedom."""

    @staticmethod
    def ppf(share: Any, degrees: Any) -> Any:
        return special.stdtrit(degrees, share)

    @staticmethod
    def sf(value: Any, degrees: Any) -> Any:
        return special.stdtr(degrees, -value)


class norm:  # noqa: N801
    """The standard normal distribution."""

    @staticmethod
    def ppf(share: Any) -> Any:
        return special.ndtri(share)

    @staticmethod
    def cdf(value: Any) -> Any:
        return special.ndtr(value)

    @staticmethod
    def sf(value: Any) -> Any:
        return special.ndtr(-value)


class f:  # noqa: N801
    """Fisher's F with degrees above and below the line."""

    @staticmethod
    def sf(value: Any, above: Any, below: Any) -> Any:
        # Rounding can leave a sum of squares, and so an F, just below zero.
        return special.fdtrc(above, below, np.maximum(value, 0.0))


class chi2:  # noqa: N801
    """χ² with `degrees` of freedom."""

    @staticmethod
    def ppf(share: Any, degrees: Any) -> Any:
        return 2.0 * special.gammaincinv(np.asarray(degrees) / 2.0, share)

    @staticmethod
    def sf(value: Any, degrees: Any) -> Any:
        return special.chdtrc(degrees, np.maximum(value, 0.0))


def beta_isf(share: float, first: float, second: float) -> float:
    """The value that a beta variable exceeds with chance `share`."""
    return float(special.betainccinv(first, second, share))


COUNTED_MAX = 64
"""Values a row up to which comparing each with each is faster than sorting row by row."""


def rankdata(values: Any, axis: int | None = None) -> FloatArray:
    """Ranks from 1, ties sharing their mean: of all values, or (axis=1) inside each row; no NaN."""
    data = np.asarray(values, dtype=np.float64)
    if axis is None:
        return _ranks(data.ravel())
    if axis != 1 or data.ndim != 2:
        raise ValueError(f"axis: {axis} of {data.ndim} found; None, or 1 of 2, is allowed")
    if data.shape[1] > COUNTED_MAX:
        return np.array([_ranks(row) for row in data], dtype=np.float64).reshape(data.shape)
    # Short rows are ranked all at once: a value's rank counts those below it, and half its ties.
    ranks = np.full(data.shape, 0.5)
    for column in data.T:
        ranks += (data > column[:, None]) + 0.5 * (data == column[:, None])
    return ranks


def _ranks(values: FloatArray) -> FloatArray:
    order = np.argsort(values, kind="stable")
    ascending = values[order]
    differs = ascending[1:] != ascending[:-1]
    begins = np.flatnonzero(np.append(True, differs)[: values.size])
    counts = np.diff(np.append(begins, values.size))
    ranks = np.empty(values.size)
    ranks[order] = np.repeat(begins + (counts + 1) / 2.0, counts)
    return ranks


def kruskal_h(ranked: FloatArray, sizes: tuple[int, ...]) -> tuple[float, float]:
    """Kruskal and Wallis's H of mean ranks, group after group, and its p by χ²."""
    count = ranked.size
    ties = np.unique(ranked, return_counts=True)[1].astype(np.float64)
    sums = [float(np.sum(part)) for part in np.split(ranked, np.cumsum(sizes)[:-1])]
    between = sum(one**2 / size for one, size in zip(sums, sizes, strict=True))
    plain = 12.0 / (count * (count + 1)) * between - 3 * (count + 1)
    statistic = plain / (1.0 - float(np.sum(ties**3 - ties)) / (count**3 - count))
    return statistic, float(chi2.sf(statistic, len(sizes) - 1))


def pearson(x: FloatArray, y: FloatArray) -> tuple[float, float]:
    """Pearson's r of x and y (n,), n ≥ 3, neither of them constant, and its two-sided p."""
    units = []
    for values in (x, y):
        centred = values - values.mean()
        largest = np.max(np.abs(centred))
        units.append(centred / (largest * np.linalg.norm(centred / largest)))
    r = float(np.clip(np.sum(units[0] * units[1]), -1.0, 1.0))
    half = x.size / 2.0 - 1.0
    return r, min(1.0, 2.0 * float(special.betaincc(half, half, (abs(r) + 1.0) / 2.0)))


def royston(values: FloatArray) -> tuple[float, float]:
    """Shapiro and Wilk's W of values (n,), 3 ≤ n ≤ 5,000, not all equal, and its p."""
    data = np.sort(values)
    count = data.size
    weights = _normal_scores(count)
    centred = data - data.mean()
    scale = float(np.max(np.abs(centred)))
    centred = centred / scale
    half = count // 2
    along = float(weights @ (centred[::-1][:half] - centred[:half]))
    unit = along / float(np.sqrt(2.0 * (weights @ weights)))
    # 1 - W from the residual: W itself is near 1, and its logarithm is what p comes from.
    residual = centred.copy()
    direction = np.zeros(count)
    direction[:half], direction[::-1][:half] = -weights, weights
    direction /= np.sqrt(2.0 * (weights @ weights))
    residual -= unit * direction
    left = float(residual @ residual / (centred @ centred))
    return 1.0 - left, _royston_p(left, count)


def _normal_scores(count: int) -> FloatArray:
    """Weights of the upper half of the sorted values, the largest first, shape (count // 2,)."""
    if count == 3:
        return np.array([np.sqrt(0.5)])
    places = np.arange(1, count // 2 + 1)
    scores = -special.ndtri((places - 0.375) / (count + 0.25))
    total = 2.0 * float(scores @ scores)
    root = 1.0 / np.sqrt(count)
    weights = scores.copy()
    weights[0] = np.polyval(LARGEST, root) + scores[0] / np.sqrt(total)
    above, below = total - 2.0 * scores[0] ** 2, 1.0 - 2.0 * weights[0] ** 2
    fixed = 1
    if count > 5:
        weights[1] = np.polyval(SECOND, root) + scores[1] / np.sqrt(total)
        above, below = above - 2.0 * scores[1] ** 2, below - 2.0 * weights[1] ** 2
        fixed = 2
    weights[fixed:] = scores[fixed:] / np.sqrt(above / below)
    return np.asarray(weights, dtype=np.float64)


def _royston_p(left: float, count: int) -> float:
    """The p of W = 1 - `left` over `count` values."""
    if count == 3:
        angle = np.arcsin(np.sqrt(1.0 - left)) - np.arcsin(np.sqrt(0.75))
        return float(np.clip(6.0 / np.pi * angle, 0.0, 1.0))
    if left <= 0.0:
        return 1.0
    low, size = np.log(left), np.log(count)
    if count <= SMALL_MAX:
        limit = np.polyval(SMALL_LIMIT, count)
        if low >= limit:
            return LEAST_P
        low = -np.log(limit - low)
        mean = np.polyval(SMALL_MEAN, count)
        deviation = np.exp(np.polyval(SMALL_DEVIATION, count))
    else:
        mean, deviation = np.polyval(MEAN, size), np.exp(np.polyval(DEVIATION, size))
    return float(special.ndtr((mean - low) / deviation))
