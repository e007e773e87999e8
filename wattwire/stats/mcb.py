"""Determine which alternatives may be the lowest, by multiple comparisons with the best.

What it computes: for each combination of levels of the given factors, whether it may be the lowest,
and the upper limit of its ratio to the lowest, all at one simultaneous confidence level.
How: each alternative in turn is assumed to be the lowest and compared with all others by one-sided
t limits with the error of each difference (`contrast_errors.py`). The limits are Bonferroni-
corrected, so they are valid for any design. The alternatives that are not significantly higher than
another form a set that contains the lowest alternative. The limit of an alternative is its largest
distance to a member of that set. Only comparisons with the true lowest must be correct, so the
correction is for k − 1 comparisons, not for all pairs.
What it misses: Bonferroni's limits are slightly wider than Dunnett's limits. If several
alternatives are exactly equal and lowest, only one of them is certain to be in the set.
Reference: Hsu 1984, Annals of Statistics 12:1136; Hsu 1996, Multiple Comparisons: Theory and
methods, ch. 4; Edwards & Hsu 1983, JASA 78:965 (unequal variances of differences); Dunn 1961, JASA
56:52.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy import special

from wattwire.stats.blocked import (
    Fit,
    Level,
    Unanswered,
    contrast_error,
    contrast_weights,
    is_estimable,
    is_within,
    pooled_error,
)
from wattwire.stats.results import NotComputable, TooFew

FloatArray = NDArray[np.float64]
ALTERNATIVES_MAX = 200
"""Maximum number of alternatives. The pairs of more would take too long."""


@dataclass(frozen=True)
class Alternative:
    """One combination of levels. `over_lowest` and `at_most` are ratios of at least 1.

    `over_lowest` is the ratio of its estimate to the lowest estimate. `at_most` is the upper limit
    of its ratio to the true lowest alternative. `may_be_lowest` is true if no other alternative is
    significantly lower.
    """

    levels: tuple[Level, ...]
    over_lowest: float
    at_most: float
    may_be_lowest: bool


@dataclass(frozen=True)
class Ranking:
    """Alternatives in ascending order of their estimates, with simultaneous confidence `level`."""

    factors: tuple[str, ...]
    alternatives: tuple[Alternative, ...]
    level: float
    degrees: int
    run_count: int
    block_count: int


def lowest_of(fit: Fit, factors: Sequence[str], confidence: float = 0.95) -> Ranking | Unanswered:
    """Rank the combinations of `factors` by a log-scale fit, averaged over its other factors.

    Raise ValueError for a plain fit.
    """
    if fit.scale != "log":
        raise ValueError(f"fit: found the {fit.scale} scale; allowed: the log scale, for ratios")
    fitted_factors = tuple(name for name in factors if name in fit.factors)
    if not fitted_factors:
        return NotComputable("only one alternative remains, so there is nothing to compare")
    if fit.kind != "treatments" and len(fitted_factors) > 1:
        return TooFew(1, 2, "blocks to separate combinations of factors")
    if fit.degrees < 1 or not fit.variance > 0:
        return TooFew(fit.run_count, fit.run_count - fit.degrees + 1, "runs for an error estimate")
    combinations = _combinations(fit, fitted_factors)
    if len(combinations) > ALTERNATIVES_MAX:
        return NotComputable(
            f"{len(combinations)} alternatives; at most {ALTERNATIVES_MAX} are compared"
        )
    differences_and_margins = _differences(fit, fitted_factors, combinations, confidence)
    if isinstance(differences_and_margins, NotComputable):
        return differences_and_margins
    differences, margins = differences_and_margins
    count = len(combinations)
    may_be_lowest = np.asarray(np.all(differences - margins <= 0, axis=1), dtype=np.bool_)
    if not may_be_lowest.any():
        return NotComputable("the alternatives cannot be ordered, because runs are missing")
    limits = np.array(
        [_farthest(index, differences, margins, may_be_lowest) for index in range(count)]
    )
    # With unequal combinations of other factors, differences may be inconsistent, so sort by means.
    means = differences.mean(axis=1)
    order = np.argsort(means, kind="stable")
    lowest = order[0]
    alternatives = tuple(
        Alternative(
            combinations[index],
            math.exp(differences[index, lowest]),
            math.exp(limits[index]),
            bool(may_be_lowest[index]),
        )
        for index in order
    )
    return Ranking(
        fitted_factors, alternatives, confidence, fit.degrees, fit.run_count, fit.block_count
    )


def lower_at(
    fit: Fit,
    factors: Sequence[str],
    levels: tuple[Level, ...],
    within: tuple[str, Level],
    confidence: float = 0.95,
) -> list[tuple[tuple[Level, ...], float]]:
    """Return the alternatives that are significantly lower than `levels` at one level of a factor.

    `within` is the other factor and its level. The comparisons are those of `lowest_of`. Each
    alternative has the ratio of `levels` to it, largest first. The result is empty with one block.
    """
    if fit.kind != "treatments":
        return []
    others = [other for other in _combinations(fit, factors) if other != levels]
    lower = []
    for other in others:
        weights, strata = _weights(fit, factors, levels, other, within)
        if not strata or not is_estimable(fit, weights):
            continue
        error, degrees = _error(fit, weights)
        margin = float(special.stdtrit(degrees, 1.0 - (1.0 - confidence) / len(others))) * error
        log_difference = float(weights @ fit.coefficients)
        if log_difference > margin:
            lower.append((other, math.exp(log_difference)))
    return sorted(lower, key=lambda pair: -pair[1])


@lru_cache
def disjoint_confidence(intervals: int, alarm_rate: float) -> float:
    """Return the level at which two of `intervals` are disjoint by chance at `alarm_rate`, 0 … 1.

    The intervals are independent and have the same true value. Two intervals of z standard errors
    are disjoint if the estimates are more than 2·z apart, and the range of all estimates exceeds q
    standard errors at `alarm_rate`, so z is q/2. Bonferroni's level is higher, because it ensures
    that every interval holds the true value. Source: Tukey 1949, Biometrics 5:99 (studentized
    range); Goldstein & Healy 1995, JRSS A 158:175 (overlap of intervals); `bench/README.md` has a
    simulation with few degrees of freedom. Raise ValueError for fewer than two intervals.
    """
    if intervals < 2:
        raise ValueError(f"intervals: found {intervals}; allowed: at least 2")
    quantile = float(scipy.stats.studentized_range.isf(alarm_rate, intervals, math.inf))
    return float(2.0 * special.ndtr(quantile / 2.0) - 1.0)


def _farthest(
    index: int, differences: FloatArray, margins: FloatArray, may_be_lowest: NDArray[np.bool_]
) -> float:
    """Return the upper limit of the log distance of one alternative to the lowest, at least 0."""
    candidates = np.flatnonzero(may_be_lowest)
    candidates = candidates[candidates != index]
    return max(
        0.0, float(np.max(differences[index, candidates] + margins[index, candidates], initial=0.0))
    )


def _combinations(fit: Fit, factors: Sequence[str]) -> list[tuple[Level, ...]]:
    """Return the combinations of levels that occur in treatments, in order of appearance."""
    places = [list(fit.factors).index(name) for name in factors]
    return list(
        dict.fromkeys(tuple(treatment[place] for place in places) for treatment in fit.treatments)
    )


def _differences(
    fit: Fit, factors: Sequence[str], combinations: Sequence[tuple[Level, ...]], confidence: float
) -> tuple[FloatArray, FloatArray] | NotComputable:
    """Return the log differences (row − column) and the margins of their limits, (k, k) each."""
    differences, margins = (np.zeros((len(combinations), len(combinations))) for _ in range(2))
    share = 1.0 - (1.0 - confidence) / (len(combinations) - 1)
    for row, column in itertools.combinations(range(len(combinations)), 2):
        weights, strata = _weights(fit, factors, combinations[row], combinations[column])
        if strata == 0 or not is_estimable(fit, weights):
            sides = [" ".join(map(str, combinations[index])) for index in (row, column)]
            return NotComputable(f"no block and no combination links {sides[0]} and {sides[1]}")
        log_difference = float(weights @ fit.coefficients)
        differences[row, column], differences[column, row] = log_difference, -log_difference
        error, degrees = _error(fit, weights)
        if not error >= 0:
            return NotComputable("too few blocks for the error of a difference")
        margins[row, column] = margins[column, row] = special.stdtrit(degrees, share) * error
    return differences, margins


def _error(fit: Fit, weights: FloatArray) -> tuple[float, float]:
    """Return the error of a difference and its degrees of freedom.

    The error is pooled if neither side scatters: no scatter in a few runs is no certainty.
    """
    error, degrees = contrast_error(fit, weights)
    return pooled_error(fit, weights) if error == 0 else (error, degrees)


def _weights(
    fit: Fit,
    factors: Sequence[str],
    upper: tuple[Level, ...],
    lower: tuple[Level, ...],
    within: tuple[str, Level] | None = None,
) -> tuple[FloatArray, int]:
    """Return the weights on the fit's coefficients, and the number of strata with both sides.

    A stratum is a combination of levels of the other factors.
    """
    if len(factors) == 1:
        return contrast_weights(fit, factors[0], upper[0], lower[0], within)
    places = [list(fit.factors).index(name) for name in factors]
    sides: list[dict[tuple[Level, ...], int]] = [{}, {}]
    for treatment_index, treatment in enumerate(fit.treatments):
        if not is_within(fit, treatment, within):
            continue
        own_levels = tuple(treatment[place] for place in places)
        other_levels = tuple(level for place, level in enumerate(treatment) if place not in places)
        for side, side_levels in zip(sides, (upper, lower), strict=True):
            if own_levels == side_levels:
                side[other_levels] = treatment_index
    shared = [other_levels for other_levels in sides[0] if other_levels in sides[1]]
    weights = np.zeros(fit.design.shape[1])
    for other_levels in shared:
        weights[sides[0][other_levels]] += 1.0 / len(shared)
        weights[sides[1][other_levels]] -= 1.0 / len(shared)
    return weights, len(shared)
