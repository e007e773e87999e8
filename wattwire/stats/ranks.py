"""The rank companion of the blocked ratio: Hodges–Lehmann with its rank-inversion interval.

What: the typical ratio of paired values (one pair per block), without assuming normal errors.
How: median of the Walsh averages of the log ratios; limits are the Walsh averages at the ranks
where the exact signed-rank test turns, so the printed level is exact.
What it misses: below six pairs no useful level exists; asymmetry of the differences.
Reference: Hodges & Lehmann 1963, Annals of Mathematical Statistics 34:598; Hollander, Wolfe &
Chicken, Nonparametric Statistical Methods, 3.2 and 3.3.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from wattwire.stats.results import Interval, NotComputable, TooFew

FloatArray = NDArray[np.float64]
PAIRS_MIN = 6
PAIRS_MAX = 5_000


def signed_rank_distribution(count: int) -> FloatArray:
    """Exact null probabilities of the signed-rank sum 0 … count·(count+1)/2."""
    ways = np.zeros(count * (count + 1) // 2 + 1)
    ways[0] = 1.0
    for rank in range(1, count + 1):
        shifted = np.zeros_like(ways)
        shifted[rank:] = ways[:-rank]
        ways = (ways + shifted) / 2.0
    return ways


def paired_ratio_by_ranks(
    upper: Sequence[float] | FloatArray,
    lower: Sequence[float] | FloatArray,
    confidence: float = 0.95,
) -> Interval | TooFew | NotComputable:
    """Typical ratio upper/lower over pairs, shape (blocks,) each, positive.

    The interval's `level` is exact: the smallest attainable one that is at least `confidence`,
    or the widest interval's where none is.
    """
    above, below = np.asarray(upper, dtype=np.float64), np.asarray(lower, dtype=np.float64)
    if above.shape != below.shape:
        raise ValueError(f"{above.size} upper and {below.size} lower values; one pair per block")
    if above.size < PAIRS_MIN:
        return TooFew(above.size, PAIRS_MIN, "blocks for a rank interval")
    if not (np.isfinite(above).all() and np.isfinite(below).all()):
        return NotComputable("a value is missing or infinite in a block")
    if above.size > PAIRS_MAX:
        return NotComputable(f"{above.size} blocks: ranked up to {PAIRS_MAX}")
    if (above <= 0).any() or (below <= 0).any():
        return NotComputable("a value is zero or negative in a block")
    logs = np.log(above) - np.log(below)
    first, second = np.triu_indices(logs.size)
    walsh = np.sort((logs[first] + logs[second]) / 2.0)
    # P(T+ <= k) for k = 0, 1, …: the (k+1)-th Walsh average from either end leaves out k each.
    tail = np.cumsum(signed_rank_distribution(logs.size))
    allowed = np.flatnonzero(2.0 * tail <= 1.0 - confidence)
    cut = int(allowed[-1]) + 1 if allowed.size else 1
    level = 1.0 - 2.0 * float(tail[cut - 1])
    return Interval(
        float(np.exp(np.median(walsh))),
        float(np.exp(walsh[cut - 1])),
        float(np.exp(walsh[walsh.size - cut])),
        level,
        int(logs.size),
        "Hodges–Lehmann by rank inversion",
    )
