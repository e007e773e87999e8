"""Estimate the association of two quantities: correlations, proportionality, Pareto fronts.

What it computes: Pearson's r, Spearman's ρ and Kendall's τ-b; the exponent b of y ∝ x^b; the points
that no other point dominates in two quantities.
How: correlation intervals use Fisher's z, with Bonett and Wright's variances for ranks. The p-value
of a rank correlation is exact for few values without ties. The exponent is the least-squares slope
of the logarithms, with a t interval.
What it misses: association does not imply proportionality or causation. Values derived from each
other (energy attributed by CPU time) always correlate. Error in x biases the exponent towards zero.
Points that share a machine or an hour are not independent.
Reference: Fisher 1921, Metron 1:3; Bonett & Wright 2000, Psychometrika 65:23; Kendall 1938,
Biometrika 30:81; Spearman 1904, American J. of Psychology 15:72.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy import special

from wattwire.stats.results import Interval, NotComputable, TooFew

FloatArray = NDArray[np.float64]
Unanswered = TooFew | NotComputable
Values = Sequence[float] | FloatArray

POINTS_MIN = 4
RANK_INTERVAL_MIN = 10
SPEARMAN_EXACT_MAX = 9
ROUNDING = 1e-12


@dataclass(frozen=True)
class Association:
    """A coefficient between −1 and 1 with its two-sided p-value and an optional interval.

    `count` is the number of points. `p_method` is the method that computed p.
    """

    name: str
    estimate: float
    p: float
    p_method: str
    interval: Interval | Unanswered
    count: int


def pearson(x: Values, y: Values, confidence: float = 0.95) -> Association | Unanswered:
    """Return Pearson's correlation of finite x and y, shape (n,), n ≥ 4, with Fisher's interval.

    What it misses: associations that are not linear. A single outlier can produce a correlation.
    """
    pair = _pair(x, y)
    if not isinstance(pair, tuple):
        return pair
    r, p = scipy.stats.pearsonr(_unit(pair[0]), _unit(pair[1]))
    count = pair[0].size
    interval = _fisher(r, 1.0 / (count - 3), count, confidence, "Pearson")
    return Association("Pearson", r, p, "t distribution", interval, count)


def spearman(x: Values, y: Values, confidence: float = 0.95) -> Association | Unanswered:
    """Return Spearman's rank correlation of x and y, shape (n,), n ≥ 4.

    The p-value is exact up to 9 points. The interval requires 10 points. Infinite values rank as
    extremes.
    What it misses: associations that are not monotonic.
    """
    pair = _pair(x, y, finite=False)
    if not isinstance(pair, tuple):
        return pair
    first, second = (scipy.stats.rankdata(values) for values in pair)
    count = first.size
    rho, _ = scipy.stats.pearsonr(first, second)
    if count <= SPEARMAN_EXACT_MAX:
        p, method = _spearman_p(tuple(first), tuple(second)), "exact, all orders counted"
    else:
        with np.errstate(divide="ignore"):
            score = rho * np.sqrt((count - 2) / np.maximum(0.0, (1 - rho) * (1 + rho)))
        p = 2 * float(special.stdtr(count - 2, -abs(score)))
        method = "t approximation"
    interval = (
        _fisher(rho, (1 + rho**2 / 2) / (count - 3), count, confidence, "Spearman")
        if count >= RANK_INTERVAL_MIN
        else TooFew(count, RANK_INTERVAL_MIN, "points for an interval of ranks")
    )
    return Association("Spearman", rho, p, method, interval, count)


def kendall(x: Values, y: Values, confidence: float = 0.95) -> Association | Unanswered:
    """Return Kendall's τ-b of x and y, shape (n,), n ≥ 4.

    The p-value is exact for up to 33 points without ties. Infinite values rank as extremes.
    """
    pair = _pair(x, y, finite=False)
    if not isinstance(pair, tuple):
        return pair
    first, second = (scipy.stats.rankdata(values) for values in pair)
    count = first.size
    ties = np.unique(first).size < count or np.unique(second).size < count
    exact = not ties and count <= 33
    test = scipy.stats.kendalltau(first, second, method="exact" if exact else "asymptotic")
    tau = float(test.statistic)
    interval = (
        _fisher(tau, 0.437 / (count - 4), count, confidence, "Kendall")
        if count >= RANK_INTERVAL_MIN
        else TooFew(count, RANK_INTERVAL_MIN, "points for an interval of ranks")
    )
    method = "exact" if exact else "normal approximation"
    return Association("Kendall", tau, float(test.pvalue), method, interval, count)


def within_groups(
    x: Values, y: Values, groups: Sequence[Hashable], confidence: float = 0.95
) -> Association | Unanswered:
    """Return the linear correlation of x and y, shape (n,), after subtracting the group means.

    What it computes: whether runs of one treatment that used more of x also used more of y. Each
    group costs one degree of freedom.
    What it misses: associations that are masked by measurement error in x and y.
    """
    first, second = _arrays(x, y)
    if len(groups) != first.size:
        raise ValueError(
            f"found {len(groups)} groups for {first.size} points; allowed: one group per point"
        )
    group_number = {group: number for number, group in enumerate(dict.fromkeys(groups))}
    count = first.size - max(0, len(group_number) - 1)
    if count < POINTS_MIN:
        return TooFew(count, POINTS_MIN, "points within the groups")
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        return NotComputable("a value is missing or infinite")
    group_of_point = np.array([group_number[group] for group in groups])
    sizes = np.bincount(group_of_point)
    residuals = []
    for values in (_unit(first), _unit(second)):
        centred = values - (np.bincount(group_of_point, weights=values) / sizes)[group_of_point]
        if float(np.max(np.abs(centred))) <= ROUNDING:
            return NotComputable("one of the two quantities does not vary within the groups")
        residuals.append(centred)
    norms = [float(np.sqrt(np.sum(values**2))) for values in residuals]
    r = float(np.clip(np.sum(residuals[0] / norms[0] * (residuals[1] / norms[1])), -1.0, 1.0))
    with np.errstate(divide="ignore"):
        score = r * np.sqrt((count - 2) / np.maximum(0.0, (1 - r) * (1 + r)))
    p = 2 * float(special.stdtr(count - 2, -abs(score)))
    interval = _fisher(r, 1.0 / (count - 3), count, confidence, "Pearson inside groups")
    return Association("Pearson inside groups", r, p, "t distribution", interval, count)


def exponent(x: Values, y: Values, confidence: float = 0.95) -> Interval | Unanswered:
    """Return the exponent b of y ∝ x^b over positive points, shape (n,), n ≥ 4.

    An exponent of 1 means that y is proportional to x.
    What it misses: error in x and a constant part of y, which both bias b towards 0.
    """
    pair = _pair(x, y)
    if not isinstance(pair, tuple):
        return pair
    if (pair[0] <= 0).any() or (pair[1] <= 0).any():
        return NotComputable("a value is zero or negative, so it has no logarithm")
    first, second = np.log(pair[0]), np.log(pair[1])
    if float(np.ptp(first)) <= ROUNDING:
        return NotComputable("all values of one quantity are equal")
    (variance_x, covariance), (_, variance_y) = np.cov(first, second, bias=True)
    slope, degrees = float(covariance / variance_x), first.size - 2
    r = (
        float(np.clip(covariance / np.sqrt(variance_x * variance_y), -1.0, 1.0))
        if variance_y > 0
        else 0.0
    )
    error = float(np.sqrt((1.0 - r**2) * variance_y / variance_x / degrees))
    margin = float(special.stdtrit(degrees, 0.5 + confidence / 2)) * error
    return Interval(
        slope, slope - margin, slope + margin, confidence, first.size, "t, log–log", float(degrees)
    )


def pareto_front(first: Values, second: Values) -> NDArray[np.bool_]:
    """Return which points no other point dominates, shape (n,).

    A point dominates another if it is smaller in at least one quantity and greater in none. Points
    with a missing or infinite value are never on the front.
    """
    first_values, second_values = _arrays(first, second)
    finite = np.isfinite(first_values) & np.isfinite(second_values)
    front = finite.copy()
    for point in np.flatnonzero(finite):
        no_worse = (
            finite & (first_values <= first_values[point]) & (second_values <= second_values[point])
        )
        better = (first_values < first_values[point]) | (second_values < second_values[point])
        front[point] = not bool(np.any(no_worse & better))
    return front


def _arrays(x: Values, y: Values) -> tuple[FloatArray, FloatArray]:
    first = np.asarray(x, dtype=np.float64).ravel()
    second = np.asarray(y, dtype=np.float64).ravel()
    if first.shape != second.shape:
        raise ValueError(
            f"found {first.size} and {second.size} values; allowed: the same number of each"
        )
    return first, second


def _pair(x: Values, y: Values, finite: bool = True) -> tuple[FloatArray, FloatArray] | Unanswered:
    first, second = _arrays(x, y)
    if first.size < POINTS_MIN:
        return TooFew(first.size, POINTS_MIN, "points")
    missing = int(np.sum(np.isnan(first) | np.isnan(second)))
    if missing:
        return NotComputable(f"a value is missing in {missing} of {first.size} points")
    if finite and not (np.isfinite(first).all() and np.isfinite(second).all()):
        return NotComputable("a value is infinite, which only ranks can represent")
    for values in (first, second):
        bounded = values[np.isfinite(values)]
        constant = float(np.ptp(_unit(bounded))) <= ROUNDING if bounded.size else True
        if constant and (finite or np.unique(values).size < 2):
            return NotComputable("all values of one quantity are equal")
    return first, second


def _unit(values: FloatArray) -> FloatArray:
    """Return values shifted and scaled to −1 … 1, so that squares cannot overflow.

    This does not change correlations.
    """
    largest = float(np.max(np.abs(values))) or 1.0
    shifted = values / largest - float(np.median(values / largest))
    spread = float(np.max(np.abs(shifted)))
    return shifted / spread if spread > ROUNDING else np.zeros_like(shifted)


def _fisher(
    estimate: float, variance: float, count: int, confidence: float, name: str
) -> Interval | Unanswered:
    if abs(estimate) > 1 - 1e-12:
        return NotComputable("a perfect association, whose interval would have no width")
    margin = float(special.ndtri(0.5 + confidence / 2)) * float(np.sqrt(variance))
    centre = float(np.arctanh(estimate))
    low, high = float(np.tanh(centre - margin)), float(np.tanh(centre + margin))
    return Interval(estimate, low, high, confidence, count, f"{name}, Fisher's z")


@lru_cache(maxsize=64)
def _spearman_p(first: tuple[float, ...], second: tuple[float, ...]) -> float:
    """Return the share of all permutations with at least the observed |Σ products of ranks|.

    The ranks are centred.
    """
    first_scores, second_scores = np.array(first), np.array(second)
    first_scores, second_scores = (
        2 * (first_scores - first_scores.mean()),
        2 * (second_scores - second_scores.mean()),
    )  # the products are integers or halves
    sums = second_scores[_orders(first_scores.size)] @ first_scores
    return float(np.mean(np.abs(sums) >= abs(float(first_scores @ second_scores)) - 1e-9))


@lru_cache(maxsize=SPEARMAN_EXACT_MAX)
def _orders(count: int) -> NDArray[np.int8]:
    """Return all permutations of 0 … count − 1, shape (count!, count)."""
    orders = np.zeros((1, 1), dtype=np.int8)
    for size in range(2, count + 1):
        new_element = np.full((len(orders), 1), size - 1, dtype=np.int8)
        orders = np.concatenate(
            [
                np.hstack([orders[:, :position], new_element, orders[:, position:]])
                for position in range(size)
            ]
        )
    return orders
