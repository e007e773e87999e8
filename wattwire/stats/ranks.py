"""Estimate blocked contrasts by ranks: Hodges–Lehmann with its exact interval.

What it computes: the typical difference or ratio of paired values (one pair per block), without
assuming normal errors.
How: the median of the Walsh averages of the differences, or of the log ratios. The confidence
limits are the Walsh averages at the ranks where the signed-rank test changes its decision, so the
reported level is exact. With more than EXACT_MAX pairs, the level comes from the normal
distribution, with an error of at most 2e-4.
What it misses: fewer than six pairs do not reach a useful level; asymmetric differences.
Reference: Hodges & Lehmann 1963, Annals of Mathematical Statistics 34:598; Hollander, Wolfe &
Chicken, Nonparametric Statistical Methods, 3.2 and 3.3.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import special

from wattwire.stats.results import Interval, NotComputable, TooFew

FloatArray = NDArray[np.float64]
PAIRS_MIN = 6
EXACT_MAX = 300
PAIRS_MAX = 2_000
"""Maximum number of pairs. Sorting more than their 2 million Walsh averages would be too slow."""


def signed_rank_distribution(count: int) -> FloatArray:
    """Return the exact null probabilities of the signed-rank sums 0 … count·(count+1)/2."""
    chances = np.zeros(count * (count + 1) // 2 + 1)
    chances[0] = 1.0
    for rank in range(1, count + 1):
        shifted = np.zeros_like(chances)
        shifted[rank:] = chances[:-rank]
        chances = (chances + shifted) / 2.0
    return chances


@lru_cache(maxsize=64)
def rank_cut(count: int, confidence: float) -> tuple[int, float]:
    """Return the rank of the limits among `count` pairs' Walsh averages, and the exact level.

    The rank is counted from either end. The level is the smallest possible level that is at least
    `confidence`. If there is none, it is the level of the widest interval.
    """
    if count <= EXACT_MAX:
        # P(T+ <= k) for k = 0, 1, …; the (k+1)-th Walsh average from an end excludes k averages.
        tail = np.cumsum(signed_rank_distribution(count))
        allowed = np.flatnonzero(2.0 * tail <= 1.0 - confidence)
        cut = int(allowed[-1]) + 1 if allowed.size else 1
        return cut, 1.0 - 2.0 * float(tail[cut - 1])
    mean = count * (count + 1) / 4.0
    deviation = math.sqrt(count * (count + 1) * (2 * count + 1) / 24.0)
    quantile = float(special.ndtri(0.5 - confidence / 2.0))
    cut = math.floor(mean + quantile * deviation - 0.5) + 1
    return cut, 1.0 - 2.0 * float(special.ndtr((cut - 0.5 - mean) / deviation))


def paired_shift_by_ranks(
    upper: Sequence[float] | FloatArray,
    lower: Sequence[float] | FloatArray,
    confidence: float = 0.95,
) -> Interval | TooFew | NotComputable:
    """Return the typical difference upper − lower over pairs, in their unit.

    Both arrays have shape (blocks,). The `level` of the interval is exact. It is the smallest
    possible level that is at least `confidence`, or else the level of the widest interval. Raise
    ValueError if the shapes differ.
    """
    above, below = np.asarray(upper, dtype=np.float64), np.asarray(lower, dtype=np.float64)
    if above.shape != below.shape:
        raise ValueError(
            f"found {above.size} upper and {below.size} lower values; "
            "allowed: the same number of each"
        )
    if above.size < PAIRS_MIN:
        return TooFew(above.size, PAIRS_MIN, "blocks for a rank interval")
    if not (np.isfinite(above).all() and np.isfinite(below).all()):
        return NotComputable("a value is missing or infinite in a block")
    if above.size > PAIRS_MAX:
        return NotComputable(
            f"{above.size} blocks; ranks are computed for up to {PAIRS_MAX} blocks"
        )
    shifts = above - below
    first, second = np.triu_indices(shifts.size)
    walsh = np.sort((shifts[first] + shifts[second]) / 2.0)
    cut, level = rank_cut(shifts.size, confidence)
    return Interval(
        float(np.median(walsh)),
        float(walsh[cut - 1]),
        float(walsh[walsh.size - cut]),
        level,
        int(shifts.size),
        "Hodges–Lehmann by rank inversion",
    )


def paired_ratio_by_ranks(
    upper: Sequence[float] | FloatArray,
    lower: Sequence[float] | FloatArray,
    confidence: float = 0.95,
) -> Interval | TooFew | NotComputable:
    """Return the typical ratio upper/lower over pairs of positive values.

    The level is determined as in `paired_shift_by_ranks`.
    """
    above, below = np.asarray(upper, dtype=np.float64), np.asarray(lower, dtype=np.float64)
    if above.size >= PAIRS_MIN and ((above <= 0).any() or (below <= 0).any()):
        return NotComputable("a value is zero or negative in a block")
    with np.errstate(divide="ignore", invalid="ignore"):
        shift = paired_shift_by_ranks(np.log(above), np.log(below), confidence)
    if not isinstance(shift, Interval):
        return shift
    with np.errstate(over="ignore"):
        ends = np.exp([shift.estimate, shift.low, shift.high])
    estimate, low, high = (float(end) for end in ends)
    return Interval(estimate, low, high, shift.level, shift.count, shift.method)
