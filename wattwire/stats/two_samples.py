"""Two unpaired samples by ranks: the Hodges–Lehmann shift or ratio, and Cliff's delta.

What: by how much (or how many times) one sample typically exceeds the other, and how often: delta
is P(upper > lower) − P(upper < lower).
How: the shift is the median of all pairwise differences; its limits are the differences at the
ranks where the exact rank-sum test turns, so the printed level is exact, and at least that where
values are tied. Delta's limits solve the score-like equation with Hanley and McNeil's variance, in
which both sample sizes stand as their mean.
What it misses: blocks. Where the runs of a block share its level, the limits are wider than those
of a paired contrast. Samples of other shapes make the shift a shift of nothing in particular. At
five and six runs a delta near ±1 is held a little less often than the level says.
Reference: Hodges & Lehmann 1963, Annals of Mathematical Statistics 34:598; Hollander, Wolfe &
Chicken, Nonparametric Statistical Methods, 4.2 and 4.3; Cliff 1993, Psychological Bulletin
114:494; Newcombe 2006, Statistics in Medicine 25:559 (method 5).
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
"""Above so many pairs of values the rank sum's own normal limit is as good as exact."""
BISECTIONS = 60
TOO_LARGE = "the two differ by more than a number can say"


@lru_cache(maxsize=256)
def rank_sum_distribution(one: int, other: int) -> FloatArray:
    """Exact null probabilities of the Mann–Whitney count 0 … one·other, without ties."""
    ways = np.zeros((one + 1, one * other + 1))
    ways[0, 0] = 1.0
    # The value at place p of all joins the first sample as its j-th and beats p − j of the other.
    for place in range(one + other):
        for chosen in range(min(one, place + 1), 0, -1):
            beaten = place + 1 - chosen
            if beaten <= other:
                ways[chosen, beaten:] += ways[chosen - 1, : ways.shape[1] - beaten]
    return np.asarray(ways[one] / ways[one].sum(), dtype=np.float64)


def _cut(one: int, other: int, confidence: float) -> tuple[int, float, str]:
    """How many differences from either end a limit stands, and the level that gives."""
    if one * other <= EXACT_PAIRS_MAX:
        tail = np.cumsum(rank_sum_distribution(min(one, other), max(one, other)))
        allowed = np.flatnonzero(2.0 * tail <= 1.0 - confidence)
        cut = int(allowed[-1]) + 1 if allowed.size else 1
        return cut, 1.0 - 2.0 * float(tail[cut - 1]), "by rank inversion"
    spread = np.sqrt(one * other * (one + other + 1) / 12.0)
    quantile = float(special.ndtri(0.5 + confidence / 2))
    cut = max(1, int(np.floor(one * other / 2.0 - quantile * spread)))
    return cut, confidence, "by rank inversion, normal limit"


def shift_by_ranks(
    upper: Sequence[float] | FloatArray,
    lower: Sequence[float] | FloatArray,
    confidence: float = 0.95,
) -> Interval | Unanswered:
    """Typical difference upper − lower of two independent samples, in their unit.

    The interval's `level` is exact: the smallest attainable one that is at least `confidence`, or
    the widest interval's where none is. With tied values it is held at least as often.
    """
    above, below = np.asarray(upper, dtype=np.float64), np.asarray(lower, dtype=np.float64)
    refused = _refused(above, below, SHIFT_RUNS_MIN, "for a rank interval")
    if refused is not None:
        return refused
    if not (np.isfinite(above).all() and np.isfinite(below).all()):
        return NotComputable("a value is infinite: there is no typical difference")
    with np.errstate(over="ignore"):
        differences = np.sort(np.subtract.outer(above, below), axis=None)
    if not np.isfinite(differences).all():
        return NotComputable(TOO_LARGE)
    cut, level, how = _cut(above.size, below.size, confidence)
    everything = np.concatenate([above, below])
    tied = ", at least, for ties" if np.unique(everything).size < everything.size else ""
    return Interval(
        float(np.median(differences)),
        float(differences[cut - 1]),
        float(differences[differences.size - cut]),
        level,
        int(everything.size),
        f"Hodges–Lehmann {how}{tied}",
    )


def ratio_by_ranks(
    upper: Sequence[float] | FloatArray,
    lower: Sequence[float] | FloatArray,
    confidence: float = 0.95,
) -> Interval | Unanswered:
    """Typical ratio upper/lower of two independent samples of positive values."""
    above, below = np.asarray(upper, dtype=np.float64), np.asarray(lower, dtype=np.float64)
    if (above <= 0).any() or (below <= 0).any():
        return NotComputable("a value is zero or negative")
    found = shift_by_ranks(np.log(above), np.log(below), confidence)
    if not isinstance(found, Interval):
        return found
    with np.errstate(over="ignore"):
        limits = np.exp([found.estimate, found.low, found.high])
    if not (np.isfinite(limits) & (limits > 0)).all():
        return NotComputable(TOO_LARGE)
    estimate, low, high = (float(limit) for limit in limits)
    return Interval(estimate, low, high, found.level, found.count, found.method)


def cliffs_delta(
    upper: Sequence[float] | FloatArray,
    lower: Sequence[float] | FloatArray,
    confidence: float = 0.95,
) -> Interval | Unanswered:
    """Cliff's delta, −1 … 1, of two independent samples; +inf (a loss) ranks above the rest."""
    above, below = np.asarray(upper, dtype=np.float64), np.asarray(lower, dtype=np.float64)
    refused = _refused(above, below, DELTA_RUNS_MIN, "for Cliff's delta")
    if refused is not None:
        return refused
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
    """Share of pairs in which `above` is the greater, ties counted half: (delta + 1)/2."""
    # Infinities subtract to NaN: compare, don't subtract.
    greater = float(np.mean(above[:, None] > below[None, :]))
    equal = float(np.mean(above[:, None] == below[None, :]))
    return greater + equal / 2.0


def newcombe_limits(
    shares: FloatArray, one: int, other: int, confidence: float
) -> tuple[FloatArray, FloatArray]:
    """Limits of P(upper > lower), shape as `shares`, for samples of `one` and `other` values."""
    quantile = float(special.ndtri(0.5 + confidence / 2))
    more = (one + other) / 2.0 - 1.0

    def error(at: FloatArray) -> FloatArray:
        factor = 1.0 + more * (1.0 - at) / (2.0 - at) + more * at / (1.0 + at)
        return quantile * np.sqrt(at * (1.0 - at) * factor / (one * other))

    def outwards(end: float) -> FloatArray:
        inside, outside = shares.astype(np.float64), np.full(shares.shape, end)
        for _ in range(BISECTIONS):
            middle = (inside + outside) / 2.0
            held = np.abs(shares - middle) <= error(middle)
            inside, outside = np.where(held, middle, inside), np.where(held, outside, middle)
        return (inside + outside) / 2.0

    return outwards(0.0), outwards(1.0)


def _refused(above: FloatArray, below: FloatArray, needed: int, what: str) -> Unanswered | None:
    smaller = min(above.size, below.size)
    if smaller < needed:
        return TooFew(smaller, needed, f"runs a side {what}")
    both = np.concatenate([above, below])
    if np.isnan(both).any() or np.isneginf(both).any():
        return NotComputable("a value is missing in a run")
    if (both == both[0]).all():
        return NotComputable("every value is the same")
    return None
