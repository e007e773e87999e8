"""Compare two unpaired samples by ranks: Hodges–Lehmann shift or ratio, and Cliff's delta.

What it computes: the typical difference or ratio of two samples, and Cliff's delta, P(upper >
lower) − P(upper < lower).
How: the shift is the median of all pairwise differences. Its confidence limits are the differences
at the ranks where the exact rank-sum test changes its decision. The reported level is therefore
exact, or a lower bound if values are tied. The limits of delta solve the score-like equation with
Hanley and McNeil's variance, in which the mean of both sample sizes replaces each size.
What it misses: blocks. If the runs of a block share its level, the interval is wider than the
interval of a paired contrast. For distributions of different shapes, the shift has no simple
meaning. With five or six runs, the coverage of a delta near ±1 is slightly below its level.
Reference: Hodges & Lehmann 1963, Annals of Mathematical Statistics 34:598; Hollander, Wolfe &
Chicken, Nonparametric Statistical Methods, 4.2 and 4.3; Cliff 1993, Psychological Bulletin 114:494;
Newcombe 2006, Statistics in Medicine 25:559 (method 5).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import special

from wattwire.stats.results import Interval, NotComputable, TooFew

FloatArray = NDArray[np.float64]
Unanswered = TooFew | NotComputable

SHIFT_RUNS_MIN = 4
DELTA_RUNS_MIN = 5
EXACT_PAIRS_MAX = 10_000
"""Pairs of values above which the normal approximation of the rank sum is practically exact."""
BISECTIONS = 60
TOO_LARGE = "the difference exceeds the range of floating-point numbers"


@lru_cache(maxsize=256)
def rank_sum_distribution(first_size: int, second_size: int) -> FloatArray:
    """Return the exact null probabilities of the Mann–Whitney count, without ties.

    The counts range from 0 to the product of both sample sizes.
    """
    counts = np.zeros((first_size + 1, first_size * second_size + 1))
    counts[0, 0] = 1.0
    # If the p-th smallest value is the j-th of the first sample, it exceeds p − j values of the
    # second.
    for rank in range(first_size + second_size):
        for in_first in range(min(first_size, rank + 1), 0, -1):
            beaten = rank + 1 - in_first
            if beaten <= second_size:
                counts[in_first, beaten:] += counts[in_first - 1, : counts.shape[1] - beaten]
    return np.asarray(counts[first_size] / counts[first_size].sum(), dtype=np.float64)


def _cut(upper_size: int, lower_size: int, confidence: float) -> tuple[int, float, str]:
    """Return the rank of the limits among the sorted differences, the level and the method.

    The rank is counted from either end.
    """
    if upper_size * lower_size <= EXACT_PAIRS_MAX:
        tail = np.cumsum(
            rank_sum_distribution(min(upper_size, lower_size), max(upper_size, lower_size))
        )
        allowed = np.flatnonzero(2.0 * tail <= 1.0 - confidence)
        cut = int(allowed[-1]) + 1 if allowed.size else 1
        return cut, 1.0 - 2.0 * float(tail[cut - 1]), "by rank inversion"
    deviation = np.sqrt(upper_size * lower_size * (upper_size + lower_size + 1) / 12.0)
    quantile = float(special.ndtri(0.5 + confidence / 2))
    cut = max(1, int(np.floor(upper_size * lower_size / 2.0 - quantile * deviation)))
    return cut, confidence, "by rank inversion, normal limit"


def shift_by_ranks(
    upper: Sequence[float] | FloatArray,
    lower: Sequence[float] | FloatArray,
    confidence: float = 0.95,
) -> Interval | Unanswered:
    """Return the typical difference upper − lower of two independent samples, in their unit.

    The `level` of the interval is exact. It is the smallest possible level that is at least
    `confidence`, or else the level of the widest interval. With tied values, it is a lower bound.
    """
    above, below = np.asarray(upper, dtype=np.float64), np.asarray(lower, dtype=np.float64)
    refusal = _refusal(above, below, SHIFT_RUNS_MIN, "for a rank interval")
    if refusal is not None:
        return refusal
    if not (np.isfinite(above).all() and np.isfinite(below).all()):
        return NotComputable("a value is infinite, so there is no typical difference")
    with np.errstate(over="ignore"):
        differences = np.sort(np.subtract.outer(above, below), axis=None)
    if not np.isfinite(differences).all():
        return NotComputable(TOO_LARGE)
    cut, level, method = _cut(above.size, below.size, confidence)
    all_values = np.concatenate([above, below])
    tie_note = ", at least, because of ties" if np.unique(all_values).size < all_values.size else ""
    return Interval(
        float(np.median(differences)),
        float(differences[cut - 1]),
        float(differences[differences.size - cut]),
        level,
        int(all_values.size),
        f"Hodges–Lehmann {method}{tie_note}",
    )


def ratio_by_ranks(
    upper: Sequence[float] | FloatArray,
    lower: Sequence[float] | FloatArray,
    confidence: float = 0.95,
) -> Interval | Unanswered:
    """Return the typical ratio upper/lower of two independent samples of positive values."""
    above, below = np.asarray(upper, dtype=np.float64), np.asarray(lower, dtype=np.float64)
    if (above <= 0).any() or (below <= 0).any():
        return NotComputable("a value is zero or negative")
    shift = shift_by_ranks(np.log(above), np.log(below), confidence)
    if not isinstance(shift, Interval):
        return shift
    with np.errstate(over="ignore"):
        limits = np.exp([shift.estimate, shift.low, shift.high])
    if not (np.isfinite(limits) & (limits > 0)).all():
        return NotComputable(TOO_LARGE)
    estimate, low, high = (float(limit) for limit in limits)
    return Interval(estimate, low, high, shift.level, shift.count, shift.method)


def cliffs_delta(
    upper: Sequence[float] | FloatArray,
    lower: Sequence[float] | FloatArray,
    confidence: float = 0.95,
) -> Interval | Unanswered:
    """Return Cliff's delta (−1 … 1) of two independent samples; +inf (a loss) ranks highest."""
    above, below = np.asarray(upper, dtype=np.float64), np.asarray(lower, dtype=np.float64)
    refusal = _refusal(above, below, DELTA_RUNS_MIN, "for Cliff's delta")
    if refusal is not None:
        return refusal
    share = superiority(above, below)
    low, high = newcombe_limits(np.array([share]), above.size, below.size, confidence)
    return Interval(
        2.0 * share - 1.0,
        2.0 * float(low[0]) - 1.0,
        2.0 * float(high[0]) - 1.0,
        confidence,
        int(above.size + below.size),
        "Cliff's delta, Newcombe's method 5",
    )


def superiority(above: FloatArray, below: FloatArray) -> float:
    """Return the share of pairs in which `above` is greater: (delta + 1)/2. Ties count half."""
    # A difference of infinities is NaN, so compare the values instead of subtracting them.
    greater = float(np.mean(above[:, None] > below[None, :]))
    equal = float(np.mean(above[:, None] == below[None, :]))
    return greater + equal / 2.0


def newcombe_limits(
    shares: FloatArray, upper_size: int, lower_size: int, confidence: float
) -> tuple[FloatArray, FloatArray]:
    """Return the limits of P(upper > lower) for samples of these sizes.

    Both limits have the shape of `shares`.
    """
    quantile = float(special.ndtri(0.5 + confidence / 2))
    mean_size_less_one = (upper_size + lower_size) / 2.0 - 1.0

    def error(share: FloatArray) -> FloatArray:
        factor = (
            1.0
            + mean_size_less_one * (1.0 - share) / (2.0 - share)
            + mean_size_less_one * share / (1.0 + share)
        )
        return quantile * np.sqrt(share * (1.0 - share) * factor / (upper_size * lower_size))

    def limit_towards(end: float) -> FloatArray:
        inside, outside = shares.astype(np.float64), np.full(shares.shape, end)
        for _ in range(BISECTIONS):
            centre = (inside + outside) / 2.0
            covered = np.abs(shares - centre) <= error(centre)
            inside, outside = np.where(covered, centre, inside), np.where(covered, outside, centre)
        return (inside + outside) / 2.0

    return limit_towards(0.0), limit_towards(1.0)


def _refusal(above: FloatArray, below: FloatArray, needed: int, purpose: str) -> Unanswered | None:
    smaller_size = min(above.size, below.size)
    if smaller_size < needed:
        return TooFew(smaller_size, needed, f"runs per side {purpose}")
    all_values = np.concatenate([above, below])
    if np.isnan(all_values).any() or np.isneginf(all_values).any():
        return NotComputable("a value is missing in a run")
    if (all_values == all_values[0]).all():
        return NotComputable("all values are equal")
    return None
