"""Contrasts inside blocks, many at once: their means with t intervals, and the sign test.

What: for each group of contrasts (one number per block), its mean with limits.
How: t with the error pooled over the groups, as in a block analysis of variance, but never less
than the group's own. Where the groups' variances differ by more than chance allows (Bartlett's
test), each stands on its own: noisy groups are not lent the others' precision.
What it misses: with fewer than BLOCKS_MIN blocks there is no interval; heavy tails widen it.
Reference: Montgomery, Design and Analysis of Experiments, ch. 4; Conover, Practical
Nonparametric Statistics, 3.4 (sign test); Bartlett 1937, Proc. Royal Society A 160:268.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import special
from scipy import stats as scipy_stats

from wattwire.stats.results import Interval, TooFew

FloatArray = NDArray[np.float64]
BLOCKS_MIN = 3
DIFFERENT_P = 0.2


def block_intervals(
    groups: Sequence[Sequence[float] | FloatArray], confidence: float
) -> list[Interval | TooFew]:
    """Mean of each group (one finite value per block) at `confidence` for that one interval."""
    data = [np.asarray(group, dtype=np.float64) for group in groups]
    counted = [group for group in data if group.size >= BLOCKS_MIN]
    pooled, degrees = _pooled(counted)
    found: list[Interval | TooFew] = []
    for group in data:
        if group.size < BLOCKS_MIN:
            found.append(TooFew(group.size, BLOCKS_MIN, "blocks"))
            continue
        variance = max(pooled, float(np.var(group, ddof=1)))
        own = degrees if pooled >= variance else group.size - 1
        half = float(special.stdtrit(own, 0.5 + confidence / 2) * np.sqrt(variance / group.size))
        mean = float(group.mean())
        found.append(
            Interval(mean, mean - half, mean + half, confidence, int(group.size), "t over blocks",
                     float(own))
        )  # fmt: skip
    return found


def _pooled(groups: Sequence[FloatArray]) -> tuple[float, int]:
    """Variance within groups and its degrees; 0, 0 where the groups differ in it.

    A group without any scatter says nothing about that of the others, and is left out.
    """
    groups = [group for group in groups if float(np.ptp(group)) > 0]
    if len(groups) < 2 or float(scipy_stats.bartlett(*groups).pvalue) < DIFFERENT_P:
        return 0.0, 0
    degrees = sum(group.size - 1 for group in groups)
    squares = sum(float(np.sum((group - group.mean()) ** 2)) for group in groups)
    return squares / degrees, degrees


def sign_p(higher: int, pairs: int) -> float:
    """Exact one-sided p of `higher` or more of `pairs` by chance; ties count as not higher.

    Raises ValueError unless 0 ≤ higher ≤ pairs.
    """
    if not 0 <= higher <= pairs:
        raise ValueError(f"higher, pairs: {higher}, {pairs} found, 0 ≤ higher ≤ pairs is allowed")
    return float(scipy_stats.binom.sf(higher - 1, pairs, 0.5))
