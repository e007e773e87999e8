"""Estimate means of groups of contrasts within blocks with t intervals, and the sign test.

What it computes: the mean of each group of contrasts (one number per block), with a confidence
interval.
How: a t interval with the error pooled over the groups, as in a block analysis of variance. The
variance is never less than the variance of the group itself. If the variances differ significantly
(Bartlett's test), each group uses its own variance, so that noisy groups do not borrow the
precision of others.
What it misses: with fewer than BLOCKS_MIN blocks, there is no interval. Heavy tails widen it.
Reference: Montgomery, Design and Analysis of Experiments, ch. 4; Conover, Practical Nonparametric
Statistics, 3.4 (sign test); Bartlett 1937, Proc. Royal Society A 160:268.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy import special

from wattwire.stats.results import Interval, TooFew

FloatArray = NDArray[np.float64]
BLOCKS_MIN = 3
DIFFERENT_P = 0.2


def block_intervals(
    groups: Sequence[Sequence[float] | FloatArray], confidence: float
) -> list[Interval | TooFew]:
    """Return each group's mean with a t interval, each at `confidence`.

    A group has one finite value per block.
    """
    data = [np.asarray(group, dtype=np.float64) for group in groups]
    large_enough = [group for group in data if group.size >= BLOCKS_MIN]
    pooled_variance, degrees = _pooled(large_enough)
    intervals: list[Interval | TooFew] = []
    for group in data:
        if group.size < BLOCKS_MIN:
            intervals.append(TooFew(group.size, BLOCKS_MIN, "blocks"))
            continue
        variance = max(pooled_variance, float(np.var(group, ddof=1)))
        is_pooled = degrees > 0 and pooled_variance >= variance
        group_degrees = degrees if is_pooled else group.size - 1
        margin = float(
            special.stdtrit(group_degrees, 0.5 + confidence / 2) * np.sqrt(variance / group.size)
        )
        mean = float(group.mean())
        intervals.append(
            Interval(mean, mean - margin, mean + margin, confidence, int(group.size),
                     "t over blocks", float(group_degrees))
        )  # fmt: skip
    return intervals


def _pooled(groups: Sequence[FloatArray]) -> tuple[float, int]:
    """Return the pooled variance within groups and its degrees of freedom.

    Both are 0 if the variances differ significantly. Groups without scatter are excluded, because
    they carry no information about the scatter of others.
    """
    groups = [group for group in groups if float(np.ptp(group)) > 0]
    if len(groups) < 2 or float(scipy.stats.bartlett(*groups).pvalue) < DIFFERENT_P:
        return 0.0, 0
    degrees = sum(group.size - 1 for group in groups)
    squares = sum(float(np.sum((group - group.mean()) ** 2)) for group in groups)
    return squares / degrees, degrees


def sign_p(higher: int, pairs: int) -> float:
    """Return the exact one-sided p-value of at least `higher` of `pairs`; ties count as not higher.

    Raise ValueError unless 0 ≤ higher ≤ pairs.
    """
    if not 0 <= higher <= pairs:
        raise ValueError(f"higher, pairs: found {higher}, {pairs}; allowed: 0 ≤ higher ≤ pairs")
    return float(special.betainc(higher, pairs - higher + 1, 0.5))
